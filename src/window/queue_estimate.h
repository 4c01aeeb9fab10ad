// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How long the queue at the provider is, as the connections to servers see it: their round trips over the least that
/// was seen to the same server. Passive: nothing is sent to find out.
#ifndef MSFRS_WINDOW_QUEUE_ESTIMATE_H
#define MSFRS_WINDOW_QUEUE_ESTIMATE_H

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace msfrs {

class QueueEstimate {
public:
    /// A connection has a round trip of `rtt` ns > 0 just now, and had `least` ns > 0 at some time.
    /// \param server a key of its address: round trips to it have the same base
    void seen(uint64_t server, msfrs_time rtt, msfrs_time least, msfrs_time now);

    /// What the queue adds to a round trip, ns: a low quantile of what was seen lately, since a server that thinks or a
    /// client that is slow makes round trips longer, and nothing makes them shorter. Nothing while too little was seen.
    /// \param lately for how long a round trip counts, ns, from 0 to SampleLasts
    /// \param share which quantile, from 0 to below 1
    std::optional<msfrs_time> queue(msfrs_time now, msfrs_time lately = SampleLasts, double share = 0.25) const;

    /// The mean of the bases of what was seen in the last two seconds, ns; 0: nothing was.
    msfrs_time meanBase(msfrs_time now) const;

    /// The least round trip to a server of the last minute or two, ns; 0: not known.
    msfrs_time base(uint64_t server) const;

    static constexpr size_t MostServers = 1024, MostSamples = 256;
    static constexpr msfrs_time SampleLasts = 2'000'000'000; ///< ns

private:
    /// The least round trip of this minute and of the one before: a route that has become longer is noticed.
    struct Base {
        msfrs_time now, before, since;
        msfrs_time least() const { return now < before ? now : before; }
    };
    struct Sample {
        msfrs_time at, base, queue;
    };
    Base &baseOf(uint64_t server, msfrs_time now);

    std::unordered_map<uint64_t, Base> bases_;
    std::deque<Sample> samples_;
};

} // namespace msfrs

#endif
