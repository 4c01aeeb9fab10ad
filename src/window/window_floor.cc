// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace msfrs {

constexpr msfrs_time Memory = 6'000'000'000;    ///< time constant of means
constexpr msfrs_time Grows = 2 * Memory;        ///< in which windows grow by what is missing, so the mean keeps up
constexpr msfrs_time Compared = 6 * Memory;     ///< until a long queue has drained

static double PartOf(const msfrs_time elapsed, const msfrs_time memory)
{
    return std::min(1.0, static_cast<double>(elapsed) / static_cast<double>(memory));
}

void WindowFloor::notice(const Interval &last)
{
    const double part = PartOf(last.elapsed, Memory);
    own_ += part * (last.own - own_);
    waiting_ += part * (last.fullShare - waiting_);
    if (last.queue >= 0)
        queue_ += part * (static_cast<double>(last.queue) - queue_);
    others_ += part * (last.utilisation - last.own - others_);
}

void WindowFloor::enter(const Phase phase)
{
    if (phase == Phase::Without)
        grown_ = queue_;
    phase_ = phase;
    since_ = 0;
}

void WindowFloor::follow(const Phase phase)
{
    if (phase != phase_)
        enter(phase);
    follows_ = true;
}

void WindowFloor::advance(const bool beside, const double floor)
{
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
            enter(asLong() ? Phase::Kept : Phase::Vain);
        break;
    case Phase::Vain:
        if (since_ >= Lasts || asLong())
            enter(Phase::None);
        break;
    }
}

void WindowFloor::update(const Interval &last, const double floor)
{
    since_ += last.elapsed;
    if (last.own >= 0)
        notice(last);
    if (!std::exchange(follows_, false))
        advance(last.own >= 0 && others_ >= Alike && waiting_ >= 0.5, floor);
    const bool grown = phase_ == Phase::Trial || phase_ == Phase::Kept;
    const double missing = std::pow(floor / std::max(own_, 0.01), PartOf(last.elapsed, Grows));
    factor_ = grown ? std::clamp(factor_ * missing, 1.0, double{MostTimes}) : 1;
}

} // namespace msfrs
