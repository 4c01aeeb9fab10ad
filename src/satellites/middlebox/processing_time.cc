// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/processing_time.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace msfrs::middlebox {

int64_t ProcessingTime::estimate(const size_t bytes) const
{
    constexpr double UnitsPerMicrosecond = 1e4;
    return std::llround(UnitsPerMicrosecond * microseconds(static_cast<double>(bytes)));
}

ProcessingTime Fit(const std::vector<TimeOfSize> &samples)
{
    double x = 0, y = 0;
    for (const auto &s : samples)
        x += s.bytes, y += s.microseconds;
    const auto n = static_cast<double>(samples.size());
    x /= n, y /= n;
    // Relative to the means, so that no precision is lost if sizes are large and times small.
    double xx = 0, xy = 0, throughOrigin = 0, squares = 0;
    for (const auto &s : samples) {
        xx += (s.bytes - x) * (s.bytes - x);
        xy += (s.bytes - x) * (s.microseconds - y);
        throughOrigin += s.bytes * s.microseconds;
        squares += s.bytes * s.bytes;
    }
    if (!(xx > 0))
        throw std::invalid_argument("a line needs two different packet sizes");
    ProcessingTime best{xy / xx, y - xy / xx * x};
    // The sum of squares is convex: if its minimum is outside, the constrained one has alpha or beta equal to 0.
    if (best.alpha < 0)
        best = {0, std::max(y, 0.0)};
    else if (best.beta < 0)
        best = {std::max(throughOrigin / squares, 0.0), 0};
    return best;
}

double GreatestError(const ProcessingTime &line, const std::vector<TimeOfSize> &samples)
{
    double most = 0;
    for (const auto &s : samples)
        most = std::max(most, std::abs(line.microseconds(s.bytes) - s.microseconds) / s.microseconds);
    return most;
}

} // namespace msfrs::middlebox
