// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Information that only the manager's YAML has: why requests are held, which ones wait, the users, and the use of the
/// link in each interval. Only the YAML of src/report/ is supported: one row per line, strings in double quotes.
#pragma once

#include "satellites/page/scanner.h"

#include <map>
#include <optional>
#include <vector>

namespace msfrs::page {

constexpr size_t MostRows = 200'000; ///< of users, and of held requests

/// A request that waits for its release.
struct HeldRow {
    std::string user, cls, host;
    std::string what;  ///< request, exchange or response
    double waited = 0; ///< s
    std::string id;    ///< of the transaction, %master_xaction of logformat
};

struct UserRow {
    std::string user, cls;
    double bytes = 0; ///< since the user was first seen
    double queued = 0, inFlight = 0;
};

/// A class's quota, and its heaviest users.
struct QuotaRow {
    struct User {
        std::string name;
        double bytes = 0;             ///< in this period
    };
    std::string cls, over;            ///< the class, and the one to which users over quota are moved
    std::string period;               ///< hour, day, week or month
    double bytes = 0;                 ///< for each user in a period
    double endsIn = 0;                ///< s, until the period ends
    double users = 0, usersOver = 0;  ///< users with any usage; those over quota
    std::vector<User> most;           ///< largest first
};

/// An interval of the window.
struct IntervalRow {
    double ago = 0;            ///< s since its end
    double utilisation = 0;    ///< share of the link
    std::optional<double> own; ///< the part of it used by responses
};

struct ManagerReport {
    std::vector<std::string> because; ///< for each worker: why requests are held or not
    std::vector<HeldRow> held;        ///< longest wait first
    std::vector<UserRow> users;       ///< merged over the workers
    std::map<std::string, double> service; ///< SC by class; of several workers the first
    std::vector<QuotaRow> quotas;     ///< of classes with a quota
    std::vector<IntervalRow> intervals; ///< since the last configuration, latest last
    double interval = 0;              ///< s, length of each; 0: unknown
    double edgeShare = 0;             ///< share of the link that msfrs-edge has, by the demand of its users
};

/// Reads mgr:msfrs or mgr:msfrs-users. Unknown lines are skipped, so that Squid may be newer.
/// \throws PageError an invalid row, or more than MostRows
ManagerReport ReadManagerReport(std::string_view text);

} // namespace msfrs::page
