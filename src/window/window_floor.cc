// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

constexpr msfrs_time Second = 1'000'000'000;
constexpr msfrs_time Memory = 6 * Second;       ///< time constant of the mean that windows follow
constexpr msfrs_time Uneven = 2 * Memory;       ///< of those that are compared: losses make single seconds uneven
constexpr msfrs_time Compared = 4 * Uneven;     ///< until such a mean has lost what was before a change of the windows
/// Ratio of own to other traffic without growth, of that with it, below which the others have taken what was given up.
/// Beside a constant stream of 80 % of C it is 0.8, since that loses packets in a full buffer.
constexpr double Taken = 0.65;

static double PartOf(const msfrs_time elapsed, const msfrs_time memory)
{
    return std::min(1.0, static_cast<double>(elapsed) / static_cast<double>(memory));
}

void WindowFloor::notice(const Interval &last)
{
    const double part = PartOf(last.elapsed, Uneven);
    own_ += part * (last.own - own_);
    waiting_ += part * (last.fullShare - waiting_);
    others_ += PartOf(last.elapsed, Memory) * (last.utilisation - last.own - others_);
}

void WindowFloor::enter(const Phase phase)
{
    phase_ = phase;
    since_ = 0;
    before_ = own_;
}

bool WindowFloor::fellTo(const double part) const
{
    return own_ * (1 - before_) < part * before_ * (1 - own_); // a full link
}

void WindowFloor::update(const Interval &last, const double floor)
{
    since_ += last.elapsed;
    if (last.own >= 0)
        notice(last);
    const bool beside = last.own >= 0 && others_ >= OthersMatter && waiting_ >= 0.5;
    switch (phase_) {
    case Phase::None:
        if (beside && own_ < floor)
            enter(Phase::Trial);
        break;
    case Phase::Trial:
    case Phase::Kept:
        if (!beside || (factor_ <= 1 && own_ >= floor))
            enter(Phase::None);
        else if (since_ >= (phase_ == Phase::Kept ? Lasts : Compared))
            enter(Phase::Without);
        break;
    case Phase::Without:
        if (since_ >= Compared)
            enter(fellTo(Taken) ? Phase::Kept : Phase::Vain);
        break;
    case Phase::Vain: // all the time, so only twice as much shows that other traffic has come
        if (since_ >= Lasts || fellTo(Taken * Taken))
            enter(Phase::None);
        break;
    }
    const bool grown = phase_ == Phase::Trial || phase_ == Phase::Kept;
    const double missing = std::pow(floor / std::max(own_, 0.01), PartOf(last.elapsed, Uneven));
    factor_ = grown ? std::clamp(factor_ * missing, 1.0, Most) : 1;
}

} // namespace msfrs
