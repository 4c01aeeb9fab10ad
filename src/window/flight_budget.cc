// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/flight_budget.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

namespace {
constexpr msfrs_time Memory = 3'000'000'000; ///< quanta make U of one interval uneven
constexpr double Gain = 2, MostStep = 0.06; ///< phi changes by so many times what U misses, at most by this
} // namespace

void FlightBudget::update(const msfrs_time elapsed, const double utilisation, const double fullShare,
                          const double target)
{
    if (fullShare < 0.5)
        return; // what the link did not carry, nobody has asked for
    gathered_ += elapsed;
    carried_ += utilisation * static_cast<double>(elapsed);
    if (gathered_ < Memory)
        return;
    // Just below the target: U cannot exceed 1, so that a mean of the target itself has a long queue behind it.
    const double room = 1 - target, missing = target - room / 2 - carried_ / static_cast<double>(gathered_);
    const double step = std::min(Gain * std::abs(missing), MostStep);
    if (std::abs(missing) > 0.2 * room)
        factor_ = std::clamp(factor_ * (missing > 0 ? 1 + step : 1 - step), Least, Most);
    gathered_ = 0;
    carried_ = 0;
}

} // namespace msfrs
