// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Estimates the bottleneck queue at the provider: RTT samples of connections to servers, less the base RTT of the same
/// server. Passive: it sends nothing. Not in the paper.
///
/// The bottleneck queue delays packets from every server. A delay to some servers only is on their own paths.
#pragma once

#include "window/thresholds.h"

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

namespace msfrs {

/// The bottleneck queue as RTT samples show it.
struct QueueSeen {
    uint64_t trips = 0;     ///< number of RTT samples
    msfrs_time queue = 0;   ///< ns >= 0: a low quantile of their excess over the base RTT
    msfrs_time base = 0;    ///< ns >= 0: mean base RTT; 0: not known

    bool enough() const { return trips >= 4; } ///< whether `queue` is reliable
};

/// Combines the estimates of several parties that each see their own connections: means, weighted by RTT samples. The
/// quantiles are low ones already, and the least of them comes from a party that never saw the path without a queue.
QueueSeen Together(const std::vector<QueueSeen> &);

class QueueEstimate {
public:
    /// Adds an RTT sample of a connection.
    /// \param server key of the server's address: connections to it have the same base RTT
    /// \param rtt ns > 0, the latest
    /// \param least ns > 0, the least of this connection
    void seen(uint64_t server, msfrs_time rtt, msfrs_time least, msfrs_time now);

    /// The queueing delay: a low quantile of the latest RTT samples, since a server's processing time or a slow client
    /// makes samples longer, and nothing makes them shorter. `base` is meanBase().
    /// \param lately age up to which a sample counts, ns, from 0 to SampleLasts
    /// \param share the quantile, from 0 to below 1
    QueueSeen seen(msfrs_time now, msfrs_time lately = SampleLasts, double share = 0.25) const;
    /// The least over the servers, each by its latest RTT sample: a queue that one of them does not see is not at the
    /// provider, however many samples are of others. With a single server it is the least of its samples: some take
    /// another path, or met no queue.
    /// \param lately as above
    QueueSeen atAll(msfrs_time now, msfrs_time lately) const;

    /// \returns the mean base RTT of the samples of the last two seconds, ns; 0: there are none
    msfrs_time meanBase(msfrs_time now) const;

    /// \returns the base RTT to a server: the least sample in one to two times basesLast(), ns; 0: not known
    msfrs_time base(uint64_t server) const;

    /// \param lasts how long base RTTs last from now on, ns > 0: longer where a queue may never be empty
    void basesLast(msfrs_time lasts) { basesLast_ = lasts; }

    static constexpr size_t MostServers = 1024, MostSamples = 256;
    static constexpr msfrs_time SampleLasts = 2'000'000'000; ///< ns

private:
    /// The least RTT sample of this period of basesLast() and of the one before, ns. Older ones expire, since a route
    /// may become longer.
    struct Base {
        msfrs_time now, before, since;
        msfrs_time least() const { return now < before ? now : before; }
    };
    struct Sample {
        msfrs_time at, base, queue;
        uint64_t server;
    };
    Base &baseOf(uint64_t server, msfrs_time now);

    msfrs_time basesLast_ = Remembered;
    std::unordered_map<uint64_t, Base> bases_;
    std::deque<Sample> samples_;
};

} // namespace msfrs
