// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The state of a gateway from which its report is made.
#pragma once

#include "engine/request_scheduler.h"
#include "quota/quotas.h"

namespace msfrs::report {

/// A party of the ledger: one of several schedulers on the downlink.
struct PartySnapshot {
    uint32_t slot = 0;     ///< its ledger slot; worker n has slot n-1
    std::string kind;      ///< worker, edge or gateway
    bool live = false;     ///< it has a heartbeat; false only for a worker that should run
    bool leads = false;    ///< all parties use its W+
    uint64_t pid = 0;
    uint64_t config = 0;   ///< a hash of its configuration
    uint32_t places = 0;   ///< responses in service: its part of W
    uint64_t waiting = 0;  ///< requests that wait for a slot there
    double demand = 0;     ///< by the weights of its active users
    double share = 0;      ///< of the link, by demand
};

/// Excessive traffic that was reported to Squid, since it started.
struct ExcessCounts {
    uint64_t lines = 0;    ///< accepted
    uint64_t bytes = 0;    ///< charged to a class
    uint64_t noClass = 0;  ///< bytes for receivers of no class
    uint64_t refused = 0;  ///< malformed lines, and datagrams that are too long
};

/// The state of one process, or of one of its links.
struct Snapshot {
    /// Rows: bound the report; those with least are left out. MostUsers is five times what is shown, since a report of
    /// several workers adds up users of each.
    static constexpr size_t MostHeld = 50, MostUsers = 50, MostOfQuota = 10;

    bool scheduling = false;         ///< if not, only `failed` is set
    bool failed = false;             ///< not scheduling because the scheduler failed
    msfrs_time now = 0;              ///< ns, of the scheduler's clock
    std::string link;                ///< its name among several of the process; empty: there is one
    RequestConfig config;
    WindowReport window;
    ExcessCounts excess;
    std::string excessSocket;        ///< empty: none
    std::vector<ClassReport> classes;
    std::vector<HeldReport> held;    ///< longest wait first, at most MostHeld
    std::vector<UserReport> users;   ///< most bytes first, at most MostUsers
    std::vector<QuotaReport> quotas; ///< one for each class, with MostOfQuota users; none without quotas
    std::vector<PartySnapshot> parties; ///< by slot; none while this process schedules alone
    std::string alone;               ///< why it does not share the link although it should; empty: it does
};

} // namespace msfrs::report
