// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// q*, the queueing delay at the bottleneck that responses are released for (FlightCredit).
///
/// A queue of q* makes up for bytes that come late or not at all: with too short a one the link is idle while requests
/// wait, with too long a one they wait at the provider. So q* follows what the link carries,
///
///     dq*/dt = Gain (unused share of C - tolerated share),  0 <= q* <= longest
///
/// and grows only while requests wait: what nobody wants may stay unused.
///
/// Where C is found, what is unused of a C that is too high would let q* grow for nothing. There a queue that is seen
/// beyond the allowed one, q0, shortens q* by as much, on a variable-rate link q* does not grow, and
/// q0 / 2 <= q* <= 4 q0.
#ifndef MSFRS_WINDOW_QUEUE_TARGET_H
#define MSFRS_WINDOW_QUEUE_TARGET_H

#include "plugin/msfrs_plugin.h"

#include <algorithm>
#include <optional>

namespace msfrs {

class QueueTarget {
public:
    /// Seconds of q* per second in which all of C is unused: a link that carries 4 % less than it should has 20 ms more
    /// after a second. docs/results.md has less and more.
    static constexpr double Gain = 0.5;

    /// \param first ns >= 0, where q* starts
    explicit QueueTarget(const msfrs_time first): target_(first) {}

    msfrs_time get() const { return target_; } ///< q*, ns

    /// An interval has ended.
    /// \param interval ns
    /// \param waiting share of it in which requests waited
    /// \param unused share of C that the link did not carry then, or in all of it if none waited; at most 1
    /// \param tolerated share of C
    /// \param longest ns
    void update(const msfrs_time interval, const double waiting, const double unused, const double tolerated,
                const msfrs_time longest)
    {
        const double missing = unused - tolerated;
        const double step = Gain * static_cast<double>(interval) * missing * (missing > 0 ? waiting : 1);
        target_ = std::clamp<msfrs_time>(target_ + static_cast<msfrs_time>(step), 0, longest);
    }

    /// What is seen of the bottleneck queue where C is found.
    struct Path {
        std::optional<msfrs_time> queue; ///< ns >= 0; empty: not known
        msfrs_time allowed;              ///< q0, ns > 0
        bool varies;                     ///< the link's rate does
    };

    /// The same where C is found; parameters as of update().
    void updateFound(const msfrs_time interval, const double waiting, const double unused, const double tolerated,
                     const Path &path)
    {
        if (path.queue && *path.queue > path.allowed)
            target_ -= *path.queue - path.allowed;
        else if (path.varies)
            target_ = std::min(target_, path.allowed / 2);
        else
            update(interval, waiting, unused, tolerated, 4 * path.allowed);
        target_ = std::clamp(target_, path.allowed / 2, 4 * path.allowed);
    }

private:
    msfrs_time target_;
};

} // namespace msfrs

#endif
