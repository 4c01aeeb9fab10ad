// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Detects a variable-rate link by the course of C.
///
/// A swing is a fall of C by 30 %, caused by a bottleneck queue, after a rise by as much. A variable-rate link has
/// several in a minute; a step, the busy hour of a cell and the handover of a satellite have one or none. The caller
/// discards falls that turn out to be a longer path.
#pragma once

#include "window/thresholds.h"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace msfrs {

class Swings {
public:
    static constexpr size_t Several = 4; ///< swings while one is Remembered
    static constexpr msfrs_time Longest = Remembered / (2 * msfrs_time{Several}); ///< ns of half a swing
    static constexpr double Fall = 0.7; ///< C over its earlier value: the link has become slower

    /// Adds a value of C, bit/s > 0, taken while requests wait.
    /// \param queue whether there is a standing queue at the bottleneck
    void seen(const double rate, const bool queue, const msfrs_time now)
    {
        const bool turns = falling_ ? rate * Fall > extreme_ : queue && rate < Fall * extreme_;
        if (!turns) {
            extreme_ = falling_ ? std::min(extreme_, rate) : std::max(extreme_, rate);
            return;
        }
        falling_ = !falling_;
        extreme_ = rate;
        if (!falling_)
            return;
        falls_.push_back(now);
        if (falls_.size() > Several)
            falls_.pop_front();
    }
    /// Whether there were several lately.
    bool varies(const msfrs_time now) const { return falls_.size() >= Several && now - falls_.front() <= Remembered; }

private:
    bool falling_ = false;
    double extreme_ = 0;           ///< bit/s: greatest C since it began to rise, or least since it began to fall
    std::deque<msfrs_time> falls_; ///< ns, the latest last, at most Several
};

} // namespace msfrs
