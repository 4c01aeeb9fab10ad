// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// q*, the target of the queueing delay at the bottleneck. Responses are released so as to reach it (FlightCredit).
///
/// A standing queue of q* keeps the link busy when bytes arrive late or not at all. If it is too short, the link is
/// idle while requests wait; if it is too long, they wait at the provider. So q* is controlled by utilisation,
///
///     dq*/dt = Gain (unused share of C - tolerated share),  0 <= q* <= MostTimes q0
///
/// and grows only while requests wait: capacity without demand may stay unused. Once no request waits, it is reset to
/// q0. If RTT samples show a longer queue than is allowed, q* is reduced by the excess instead: however much is unused
/// then, C is too high. On a variable-rate link q* is 0, since the rate will soon fall again.
#pragma once

#include "window/thresholds.h"

#include <algorithm>
#include <optional>

namespace msfrs {

class QueueTarget {
public:
    /// Seconds of q* per second in which all of C is unused: on a link that carries 4 % less than it should, q* is
    /// 20 ms longer after a second. docs/lab/results.md has lower and higher gains.
    static constexpr double Gain = 0.5;
    /// The part of q0 by which the allowed queue is longer, since arrival bursts cause a queue that q* is not to blame
    /// for, or shorter where C is estimated: C is slightly too high there, and raises q* to the allowed queue.
    static constexpr double Slack = 0.5;

    /// \param first ns >= 0, initial q*
    explicit QueueTarget(const msfrs_time first): target_(first) {}

    msfrs_time get() const { return target_; } ///< q*, ns

    /// q0, and the state of the bottleneck queue.
    struct Path {
        msfrs_time first;                ///< q0, ns > 0
        std::optional<msfrs_time> queue; ///< ns >= 0, queueing delay seen in RTT samples; empty: not known
        bool found = false;              ///< C is estimated
        bool varies = false;             ///< it is a variable-rate link
    };

    /// Updates q* at the end of an interval.
    /// \param interval ns
    /// \param waiting share of it in which requests waited
    /// \param unused share of C that the link did not carry in that time, or in all of it if none waited; at most 1
    /// \param tolerated share of C
    void update(const msfrs_time interval, const double waiting, const double unused, const double tolerated,
                const Path &path)
    {
        const double allowed = (path.found ? 1 - Slack : 1 + Slack) * static_cast<double>(path.first);
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
        target_ = std::clamp<msfrs_time>(target_, 0, MostTimes * path.first);
    }

private:
    msfrs_time target_;
};

} // namespace msfrs
