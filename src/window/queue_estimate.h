// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// An estimate of the queue at the provider: the round-trip times of connections to servers, less the least one that
/// was seen to the same server. Passive: it sends nothing. Not in the paper.
///
/// A queue at the provider is in the way from every server. What is long to some of them only is their own path.
#ifndef MSFRS_WINDOW_QUEUE_ESTIMATE_H
#define MSFRS_WINDOW_QUEUE_ESTIMATE_H

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace msfrs {

/// What round trips say of the queue at the provider.
struct QueueSeen {
    uint64_t trips = 0;     ///< how many there were
    msfrs_time queue = 0;   ///< ns >= 0: a low quantile of what they were beyond their least
    msfrs_time base = 0;    ///< ns >= 0: mean of the least ones; 0: not known

    bool enough() const { return trips >= 4; } ///< to believe in `queue`
};

/// What several know together who each see connections of their own: means by their round trips. The quantiles are low
/// ones already, and the least of them is that of who never saw the way without a queue.
QueueSeen Together(const std::vector<QueueSeen> &);

class QueueEstimate {
public:
    /// A connection has measured a round trip.
    /// \param server key of the server's address: round trips to it have the same base
    /// \param rtt ns > 0, latest
    /// \param least ns > 0, least of this connection
    void seen(uint64_t server, msfrs_time rtt, msfrs_time least, msfrs_time now);

    /// What the queue adds to a round trip: a low quantile of what was seen lately, since a server that thinks or a
    /// client that is slow makes round trips longer, and nothing makes them shorter. `base` is meanBase().
    /// \param lately for how long a round trip counts, ns, from 0 to SampleLasts
    /// \param share which quantile, from 0 to below 1
    QueueSeen seen(msfrs_time now, msfrs_time lately = SampleLasts, double share = 0.25) const;
    /// The same, ns. Nothing while too little was seen.
    std::optional<msfrs_time> queue(msfrs_time now) const;
    /// The least over the servers, each counted by its latest round trip: a queue that one of them does not see is not
    /// at the provider, however many of the samples are of others. One server alone has nobody to agree with: a low
    /// quantile of its round trips.
    /// \param lately as above
    QueueSeen atAll(msfrs_time now, msfrs_time lately) const;

    /// \returns the mean base of the samples of the last two seconds, ns; 0: there are none
    msfrs_time meanBase(msfrs_time now) const;

    /// \returns the least round trip to a server in the last one to two minutes, ns; 0: not known
    msfrs_time base(uint64_t server) const;

    static constexpr size_t MostServers = 1024, MostSamples = 256;
    static constexpr msfrs_time SampleLasts = 2'000'000'000; ///< ns

private:
    /// The least round trip of this minute and of the one before, ns. Older ones expire, since a route may become
    /// longer.
    struct Base {
        msfrs_time now, before, since;
        msfrs_time least() const { return now < before ? now : before; }
    };
    struct Sample {
        msfrs_time at, base, queue;
        uint64_t server;
    };
    Base &baseOf(uint64_t server, msfrs_time now);

    std::unordered_map<uint64_t, Base> bases_;
    std::deque<Sample> samples_;
};

} // namespace msfrs

#endif
