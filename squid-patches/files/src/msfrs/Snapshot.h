/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_PICTURE_H
#define SQUID_SRC_MSFRS_PICTURE_H

#include "engine/request_scheduler.h"
#include "msfrs/Excess.h"
#include "msfrs/forward.h"
#include "quota/quotas.h"

#include <string>
#include <vector>

namespace msfrs::squid
{

/// A party of the ledger: who spends the downlink beside others.
struct PartyPicture {
    uint32_t slot = 0; ///< its number there; worker n has slot n-1
    std::string kind; ///< worker, edge or gateway
    bool live = false; ///< its heart beats; false only for a worker that should be there
    bool leads = false; ///< all go by its W+
    uint64_t pid = 0;
    uint64_t config = 0; ///< NumberOf() its configuration
    uint32_t places = 0; ///< responses in service: its part of W
    uint64_t waiting = 0; ///< requests that wait for a place there
    double demand = 0; ///< by the weights of its active users
    double share = 0; ///< of the link, by demand
};

/// What reports say: the figures of one process, or of several workers together. Values alone, so that one process can
/// send it to another.
struct Picture {
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
    std::vector<QuotaReport> quotas; ///< as classes; none without quotas
    std::vector<PartyPicture> parties; ///< by slot; none while this process schedules alone
    std::string alone; ///< WhyLinkIsNotShared()

    /// Adds that of another worker. Counts add up: a user whose requests are at two workers counts at both. Quantiles
    /// of times held, and service counters, are the largest of all. The window is that of who leads; workers that do
    /// not share the link have one each, for a part of the rate, and their rates, W and W+ add up. Quotas are the same
    /// for all who share the link, and taken from the first.
    void add(const Picture &);

    /// as text for Read()
    std::string written() const;

    /// \returns an empty picture if the text is not what a process of the same program has written
    static Picture Read(const std::string &);
};

/// Tells configurations apart. Only processes of the same program have the same number for the same configuration.
uint64_t NumberOf(const RequestConfig &);

/// That of this process.
/// \param gateway nil when nothing is scheduled
Picture PictureOf(const Gateway *gateway);

/// Puts text into a file without a name, to be sent to another process.
/// \returns its descriptor, which the caller closes, or -1
int TextToFile(const std::string &);

/// \param fd of TextToFile(), perhaps in another process; will be closed
std::string TextFromFile(int fd);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_PICTURE_H */

