// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <algorithm>

namespace msfrs {

constexpr msfrs_time Second = 1'000'000'000;
constexpr msfrs_time Memory = 6 * Second;    ///< time constant of means: losses make single seconds uneven
constexpr msfrs_time Settle = 2 * Memory;    ///< until the mean reflects the share beside other traffic
constexpr msfrs_time Trial = 5 * Memory;
constexpr msfrs_time Lasts = 600 * Second;   ///< validity of a trial's result
/// Largest factor by which windows change in one interval, since effects take round trips to show; of a trial that is
/// worth it, the gain over the share before; and the multiple of the floor at which windows need no longer grow.
constexpr double Step = 1.2;
constexpr double Taken = 0.6;                ///< times the share when growth was given up: others have taken the rest

void WindowFloor::notice(const Interval &last)
{
    const double part = std::min(1.0, static_cast<double>(last.elapsed) / Memory);
    own_ += part * (last.own - own_);
    others_ += part * (last.utilisation - last.own - others_);
    waiting_ += part * (last.fullShare - waiting_);
}

void WindowFloor::yield() { factor_ = std::max(factor_ / Step, 1.0); }

void WindowFloor::update(const Interval &last, const double floor)
{
    rest_ = std::max<msfrs_time>(rest_ - last.elapsed, 0);
    if (last.own >= 0)
        notice(last);
    if (last.own < 0 || others_ < OthersMatter || waiting_ < 0.5) {
        short_ = 0;
        worth_ = false;
        return yield();
    }
    const bool taken = rest_ <= Lasts - Trial && own_ < Taken * before_;
    if (own_ >= Step * floor || (rest_ > 0 && !taken))
        return yield();
    if (rest_ > 0) {
        rest_ = 0;
        short_ = Settle;
        worth_ = true;
    }
    short_ += last.elapsed;
    if (short_ <= Settle) {
        before_ = own_;
        return;
    }
    if (short_ >= Settle + Trial && own_ >= Step * before_)
        worth_ = true;
    if (short_ >= Settle + (worth_ ? Lasts : Trial)) {
        before_ = own_;
        rest_ = Lasts;
        short_ = 0;
        worth_ = false;
        factor_ = 1;
        return;
    }
    if (own_ >= floor)
        return;
    factor_ = std::min(factor_ * std::min(Step, floor / own_), Most);
}

} // namespace msfrs
