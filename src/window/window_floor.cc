// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <algorithm>

namespace msfrs {

namespace {
constexpr double Step = 1.25;        ///< at most, in one interval: what has grown shows after round trips
constexpr double Back = 0.9;         ///< in one interval
constexpr double Near = 1.1;         ///< times the floor: nothing comes down
constexpr double LeastOwn = 1e-3;    ///< share of C
constexpr double Trial = 2, Gain = 1.25; ///< so many times the windows must bring so many times the share
constexpr msfrs_time Rest = 60'000'000'000;
constexpr double OthersMatter = 0.1; ///< share of C that is more than a wrong overhead
} // namespace

WindowFloor::Verdict WindowFloor::update(const Interval &last, const double floor)
{
    rest_ = std::max<msfrs_time>(rest_ - last.elapsed, 0);
    const bool others = last.own >= 0 && last.utilisation - last.own >= OthersMatter;
    if (!others || last.own >= Near * floor || last.fullShare < 0.5 || rest_ > 0) {
        tried_ = 0;
        factor_ = std::max(factor_ * Back, 1.0);
        return Verdict::Yield;
    }
    if (last.own >= floor)
        return Verdict::Stay;
    if (tried_ > 0 && factor_ >= Trial * tried_ && last.own < Gain * triedOwn_) {
        factor_ = tried_;
        tried_ = 0;
        rest_ = Rest;
        return Verdict::Yield;
    }
    if (tried_ == 0 || factor_ >= Trial * tried_) {
        tried_ = factor_;
        triedOwn_ = std::max(last.own, LeastOwn);
    }
    factor_ = std::min(factor_ * std::min(Step, floor / std::max(last.own, LeastOwn)), Most);
    return Verdict::Grow;
}

} // namespace msfrs
