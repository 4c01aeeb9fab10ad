// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/flight_budget.h"

#include <algorithm>

namespace msfrs {

namespace {
constexpr msfrs_time Memory = 3'000'000'000; ///< quanta make U of one interval uneven
constexpr double Wider = 1.02, Narrower = 0.98;
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
    const double mean = carried_ / static_cast<double>(gathered_);
    if (mean < target - 0.7 * (1 - target))
        factor_ = std::min(factor_ * Wider, Most);
    else if (mean > target - 0.3 * (1 - target))
        factor_ = std::max(factor_ * Narrower, Least);
    gathered_ = 0;
    carried_ = 0;
}

} // namespace msfrs
