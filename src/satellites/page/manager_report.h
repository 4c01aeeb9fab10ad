// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What only the manager's YAML tells: why requests are held, who waits, who the users are, and how the link was used
/// from interval to interval. Of YAML this is what
/// Report.cc writes: one row a line, strings in double quotes.
#ifndef MSFRS_PAGE_MANAGER_REPORT_H
#define MSFRS_PAGE_MANAGER_REPORT_H

#include "satellites/page/scanner.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace msfrs::page {

constexpr size_t MostRows = 200'000; ///< of users, and of who is held

/// A request that waits for a turn.
struct HeldRow {
    std::string user, cls, host;
    std::string what;  ///< request, exchange or response
    double waited = 0; ///< s
    std::string id;    ///< of the transaction, as %master_xaction of logformat
};

struct UserRow {
    std::string user, cls;
    double bytes = 0; ///< since the user was first seen
    double queued = 0, inFlight = 0;
};

/// A class's quota, and who had most of it.
struct QuotaRow {
    struct User {
        std::string name;
        double bytes = 0;             ///< in this period
    };
    std::string cls, over;            ///< the class, and the one in which those go on who have had all
    std::string period;               ///< hour, day, week or month
    double bytes = 0;                 ///< of each user in a period
    double endsIn = 0;                ///< s, until the period ends
    double users = 0, usersOver = 0;  ///< who had any; of these who had all
    std::vector<User> most;           ///< the most first
};

/// An interval of the window.
struct IntervalRow {
    double ago = 0;            ///< s since its end
    double utilisation = 0;    ///< share of the link
    std::optional<double> own; ///< of that, what responses had
};

struct ManagerReport {
    std::vector<std::string> because; ///< of each worker: why requests are held, or none is
    std::vector<HeldRow> held;        ///< the longest first
    std::vector<UserRow> users;       ///< a user of several workers is one
    std::vector<QuotaRow> quotas;     ///< of the classes that have one
    std::vector<IntervalRow> intervals; ///< since the last configuration, the latest last
    double interval = 0;              ///< s, how long each is; 0: not said
};

/// Reads mgr:msfrs or mgr:msfrs-users. Lines that it does not know are passed over, so that Squid may be newer.
/// \throws PageError a row that is none, or more than MostRows
ManagerReport ReadManagerReport(std::string_view text);

} // namespace msfrs::page

#endif
