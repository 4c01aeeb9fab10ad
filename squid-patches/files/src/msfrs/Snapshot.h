/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_SNAPSHOT_H
#define SQUID_SRC_MSFRS_SNAPSHOT_H

#include "engine/request_scheduler.h"
#include "msfrs/Excess.h"
#include "msfrs/forward.h"
#include "quota/quotas.h"

#include <string>
#include <vector>

namespace msfrs::squid
{

/// A party of the ledger: one of several schedulers on the downlink.
struct PartySnapshot {
    uint32_t slot = 0; ///< its ledger slot; worker n has slot n-1
    std::string kind; ///< worker, edge or gateway
    bool live = false; ///< it has a heartbeat; false only for a worker that should run
    bool leads = false; ///< all parties use its W+
    uint64_t pid = 0;
    uint64_t config = 0; ///< NumberOf() its configuration
    uint32_t places = 0; ///< responses in service: its part of W
    uint64_t waiting = 0; ///< requests that wait for a slot there
    double demand = 0; ///< by the weights of its active users
    double share = 0; ///< of the link, by demand
};

/// A snapshot for reports: the figures of one process, or of several workers together. It has only values, so that one
/// process can send it to another.
struct Snapshot {
    static constexpr size_t MostHeld = 50, MostUsers = 50, MostOfQuota = 10;

    bool scheduling = false;
    bool failed = false; ///< not scheduling because the scheduler failed
    msfrs_time now = 0; ///< when it was taken, by Gateway::Now()
    RequestConfig config;
    WindowReport window;
    ExcessCounts excess;
    std::string excessSocket; ///< empty: none
    std::vector<ClassReport> classes;
    std::vector<HeldReport> held; ///< the longest wait first, at most MostHeld
    std::vector<UserReport> users; ///< most bytes first; at most MostUsers of each process
    std::vector<QuotaReport> quotas; ///< one for each class; none without quotas
    std::vector<PartySnapshot> parties; ///< by slot; none while this process schedules alone
    std::string alone; ///< WhyLinkIsNotShared()

    /// Adds the snapshot of another worker. Counts add up: a user with requests at two workers counts at both. Of
    /// quantiles of times held, and of service counters, the largest is kept. The window is the leader's; workers that
    /// do not share the link have one each, for a part of the rate, and their rates, W and W+ add up. Quotas are the
    /// same for all parties on the link, and taken from the first.
    void add(const Snapshot &);

    /// as text for Read()
    std::string written() const;

    /// \returns an empty snapshot if the text was not written by a process of the same program
    static Snapshot Read(const std::string &);
};

/// A hash to compare configurations. Only processes of the same program have the same hash of the same configuration.
uint64_t NumberOf(const RequestConfig &);

/// The snapshot of this process.
/// \param gateway nil when nothing is scheduled
Snapshot SnapshotOf(const Gateway *gateway);

/// Writes text into an unnamed file, to be sent to another process.
/// \returns its descriptor, which the caller closes, or -1
int TextToFile(const std::string &);

/// \param fd from TextToFile(), perhaps of another process; will be closed
std::string TextFromFile(int fd);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_SNAPSHOT_H */

