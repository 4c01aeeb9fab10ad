// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/wait_histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

void WaitHistogram::add(const msfrs_time wait, const int64_t bytes, const msfrs_time now)
{
    if (now - halves_[young_].begin >= HalfTime) {
        young_ ^= 1;
        halves_[young_] = {{}, {}, now};
    }
    auto &[counts, sums, begin] = halves_[young_];
    const auto held = std::max<msfrs_time>(wait, 0);
    ++counts[BucketOf(held)];
    ++count_;
    sum_ += static_cast<uint64_t>(held / 1000);
    sums.seconds += static_cast<double>(held) * 1e-9;
    sums.bytes += static_cast<double>(bytes);
}

double WaitHistogram::quantile(const double q, const msfrs_time now) const
{
    std::array<uint64_t, Buckets> counts{};
    for (const auto &half : halves_) {
        for (size_t b = 0; b < Buckets && half.recent(now); ++b)
            counts[b] += half.counts[b];
    }
    const auto total = std::accumulate(counts.begin(), counts.end(), uint64_t(0));
    const auto wanted = static_cast<uint64_t>(std::ceil(q * static_cast<double>(total)));
    uint64_t seen = 0;
    for (size_t b = 0; b < Buckets && total; ++b) {
        if ((seen += counts[b]) >= wanted)
            return UpperEnd(b);
    }
    return 0;
}

WaitHistogram::Lately WaitHistogram::lately(const msfrs_time now) const
{
    Lately all;
    for (const auto &half : halves_) {
        if (half.recent(now))
            all = {all.seconds + half.sums.seconds, all.bytes + half.sums.bytes};
    }
    return all;
}

} // namespace msfrs
