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

void WaitHistogram::add(const msfrs_time wait, const int64_t bytes, const msfrs_time now)
{
    if (now - begin_[young_] >= Half) {
        young_ ^= 1;
        halves_[young_].fill(0);
        sums_[young_] = {};
        begin_[young_] = now;
    }
    const auto held = std::max<msfrs_time>(wait, 0);
    ++halves_[young_][BucketOf(held)];
    ++count_;
    sum_ += static_cast<uint64_t>(held / 1000);
    sums_[young_].seconds += static_cast<double>(held) * 1e-9;
    sums_[young_].bytes += static_cast<double>(bytes);
}

double WaitHistogram::quantile(const double q, const msfrs_time now) const
{
    uint64_t total = 0;
    for (size_t h = 0; h < 2; ++h) {
        if (counts(h, now)) {
            for (const auto n : halves_[h])
                total += n;
        }
    }
    const auto wanted = static_cast<uint64_t>(std::ceil(q * static_cast<double>(total)));
    uint64_t seen = 0;
    for (size_t b = 0; b < Buckets && total; ++b) {
        for (size_t h = 0; h < 2; ++h)
            seen += counts(h, now) ? halves_[h][b] : 0;
        if (seen >= wanted)
            return UpperEnd(b);
    }
    return 0;
}

WaitHistogram::Lately WaitHistogram::lately(const msfrs_time now) const
{
    Lately all;
    for (size_t h = 0; h < 2; ++h) {
        if (counts(h, now)) {
            all.seconds += sums_[h].seconds;
            all.bytes += sums_[h].bytes;
        }
    }
    return all;
}

} // namespace msfrs
