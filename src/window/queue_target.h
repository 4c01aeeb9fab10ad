// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// q*, the queueing delay at the bottleneck that responses are released for (FlightCredit).
///
/// A queue of q* makes up for bytes that come late or not at all: with too short a one the link is idle while requests
/// wait, with too long a one they wait at the provider. So q* follows what the link carries,
///
///     dq*/dt = Gain (unused share of C - tolerated share),  q0 / 4 <= q* <= 10 q0
///
/// and grows only while requests wait: what nobody wants may stay unused. Once nobody waits it is q0 again. Where round
/// trips show a longer queue than is allowed, q* is shorter by the excess instead: whatever is unused then, C is too
/// high. On a variable-rate link q* is 0, since its next fall is near.
#ifndef MSFRS_WINDOW_QUEUE_TARGET_H
#define MSFRS_WINDOW_QUEUE_TARGET_H

#include "plugin/msfrs_plugin.h"

#include <algorithm>
#include <optional>

namespace msfrs {

class QueueTarget {
public:
    /// Seconds of q* per second in which all of C is unused: a link that carries 4 % less than it should has 20 ms more
    /// after a second. docs/lab/results.md has less and more.
    static constexpr double Gain = 0.5;
    /// Times q0, the queue that is allowed where C is known, and where it is found. Bursts of arrivals make a queue that is
    /// no fault of q*. But a C that is found is a little too high, and makes q* what is allowed.
    static constexpr double AllowedKnown = 1.5, AllowedFound = 0.5;

    /// \param first ns >= 0, where q* starts
    explicit QueueTarget(const msfrs_time first): target_(first) {}

    msfrs_time get() const { return target_; } ///< q*, ns

    /// q0, and the rest of what is known of the bottleneck queue.
    struct Path {
        msfrs_time first;                ///< q0, ns > 0
        std::optional<msfrs_time> queue; ///< ns >= 0, what round trips show; empty: not known
        bool found = false;              ///< C is
        bool varies = false;             ///< the link's rate does
    };

    /// An interval has ended.
    /// \param interval ns
    /// \param waiting share of it in which requests waited
    /// \param unused share of C that the link did not carry then, or in all of it if none waited; at most 1
    /// \param tolerated share of C
    void update(const msfrs_time interval, const double waiting, const double unused, const double tolerated,
                const Path &path)
    {
        const double allowed = (path.found ? AllowedFound : AllowedKnown) * static_cast<double>(path.first);
        const auto over = path.queue.value_or(0) - static_cast<msfrs_time>(allowed);
        const double missing = unused - tolerated;
        if (over > 0)
            target_ -= over;
        else if (path.varies)
            target_ = 0;
        else if (waiting == 0)
            target_ = path.first;
        else
            target_ += static_cast<msfrs_time>(Gain * static_cast<double>(interval) * missing *
                                               (missing > 0 ? waiting : 1));
        target_ = std::clamp(target_, path.varies ? 0 : path.first / 4, most(path.first));
    }

    static msfrs_time most(const msfrs_time first) { return 10 * first; } ///< of q*, ns

private:
    msfrs_time target_;
};

} // namespace msfrs

#endif
