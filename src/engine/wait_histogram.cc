// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/wait_histogram.h"

#include <algorithm>
#include <cmath>

namespace msfrs {

size_t WaitHistogram::BucketOf(const msfrs_time wait)
{
    const double ms = static_cast<double>(wait) * 1e-6;
    if (ms < 1.0)
        return 0;
    return std::min(Buckets - 1, static_cast<size_t>(std::log2(ms) * 8) + 1);
}

double WaitHistogram::UpperEnd(const size_t bucket)
{
    return bucket ? std::exp2(static_cast<double>(bucket) / 8) * 1e-3 : 0.0;
}

void WaitHistogram::add(const msfrs_time wait, const msfrs_time now)
{
    if (now - begin_[young_] >= Half) {
        young_ ^= 1;
        halves_[young_].fill(0);
        begin_[young_] = now;
    }
    ++halves_[young_][BucketOf(std::max<msfrs_time>(wait, 0))];
    ++count_;
    sum_ += static_cast<double>(std::max<msfrs_time>(wait, 0)) * 1e-9;
}

double WaitHistogram::quantile(const double q, const msfrs_time now) const
{
    uint64_t total = 0;
    std::array<bool, 2> counts{};
    for (size_t h = 0; h < 2; ++h) {
        counts[h] = begin_[h] >= 0 && now - begin_[h] < 2 * Half;
        if (counts[h]) {
            for (const auto n : halves_[h])
                total += n;
        }
    }
    const auto wanted = static_cast<uint64_t>(std::ceil(q * static_cast<double>(total)));
    uint64_t seen = 0;
    for (size_t b = 0; b < Buckets && total; ++b) {
        for (size_t h = 0; h < 2; ++h)
            seen += counts[h] ? halves_[h][b] : 0;
        if (seen >= wanted)
            return UpperEnd(b);
    }
    return 0;
}

} // namespace msfrs
