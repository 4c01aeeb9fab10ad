// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/capacity_day.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace msfrs {

constexpr msfrs_time Ms = 1'000'000, HourLasts = 3600 * 1000 * Ms;
constexpr double Slowest = 8000; ///< bit/s; slower rates count in the first step
constexpr double StepsInOctave = 8;

void CapacityDay::add(const double rate, const msfrs_time time, const msfrs_time now)
{
    latest_ = now / HourLasts;
    auto &hour = hours_[static_cast<size_t>(latest_) % Hours];
    if (hour.number != latest_)
        hour = {latest_, {}};
    const double step = std::log2(std::max(rate, Slowest) / Slowest) * StepsInOctave;
    hour.ms[std::min(static_cast<size_t>(step + 1e-9), Steps - 1)] += static_cast<uint32_t>(time / Ms);
}

bool CapacityDay::lately(const Hour &hour) const
{
    return hour.number >= 0 && hour.number <= latest_ && hour.number > latest_ - static_cast<int64_t>(Hours);
}

msfrs_time CapacityDay::known() const
{
    msfrs_time ms = 0;
    for (const auto &hour : hours_)
        ms += lately(hour) ? std::accumulate(hour.ms.begin(), hour.ms.end(), msfrs_time(0)) : 0;
    return ms * Ms;
}

double CapacityDay::least(const double share) const
{
    const double wanted = share * static_cast<double>(known() / Ms);
    double found = 0;
    for (size_t step = Steps; wanted > 0 && step-- > 0;) {
        for (const auto &hour : hours_)
            found += lately(hour) ? hour.ms[step] : 0;
        if (found >= wanted)
            return Slowest * std::exp2(static_cast<double>(step) / StepsInOctave);
    }
    return 0;
}

} // namespace msfrs
