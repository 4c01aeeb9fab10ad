// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What only the manager's YAML tells: why requests are held, who waits, and who the users are. Of YAML this is what
/// Report.cc writes: one row a line, strings in double quotes.
#ifndef MSFRS_PAGE_MANAGER_REPORT_H
#define MSFRS_PAGE_MANAGER_REPORT_H

#include "page/scanner.h"

#include <cstdint>
#include <vector>

namespace msfrs::page {

constexpr size_t MostRows = 200'000; ///< of users, and of who is held

/// A request that waits for a turn.
struct HeldRow {
    std::string user, cls, host;
    std::string what;  ///< request, exchange or response
    double waited = 0; ///< s
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

struct ManagerReport {
    std::vector<std::string> holding; ///< of each worker: whether requests are held, and why
    std::vector<std::string> changed; ///< of each worker whose W+ has changed: why it did last
    std::vector<HeldRow> held;        ///< the longest first
    std::vector<UserRow> users;       ///< a user of several workers is one
    std::vector<QuotaRow> quotas;     ///< of the classes that have one
};

/// Reads mgr:msfrs or mgr:msfrs-users. Lines that it does not know are passed over, so that Squid may be newer.
/// \throws PageError a row that is none, or more than MostRows
ManagerReport ReadManagerReport(std::string_view text);

} // namespace msfrs::page

#endif
