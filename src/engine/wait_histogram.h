// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Quantiles of times held over the last five to ten minutes, and the bytes delivered with them, in fixed memory.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <array>
#include <cstdint>

namespace msfrs {

/// Bucket widths grow by 2^(1/8), so a quantile is at most 9 % too high; the first bucket holds all below 1 ms. Two
/// halves of five minutes each; the older is cleared when the younger is full.
class WaitHistogram {
public:
    /// \param wait ns, >= 0 \param bytes >= 0, delivered to the request that waited
    void add(msfrs_time wait, int64_t bytes, msfrs_time now);
    /// \param q 0 < q <= 1
    /// \returns seconds, the upper end of the quantile's bucket (0: below 1 ms, or no waits)
    double quantile(double q, msfrs_time now) const;
    uint64_t count() const { return count_; }  ///< of all times
    double sum() const { return static_cast<double>(sum_) * 1e-6; } ///< of all times, seconds

    struct Lately { double seconds = 0, bytes = 0; };
    Lately lately(msfrs_time now) const;       ///< sums over the time that quantile() covers

private:
    static constexpr size_t Buckets = 8 * 24 + 1; ///< up to 2^24 ms, 4.7 hours
    static constexpr msfrs_time HalfTime = 300'000'000'000;
    struct Half {
        std::array<uint32_t, Buckets> counts{};
        Lately sums;
        msfrs_time begin = 0;

        bool recent(const msfrs_time now) const { return now - begin < 2 * HalfTime; }
    };
    static size_t BucketOf(msfrs_time wait);
    static double UpperEnd(size_t bucket);

    std::array<Half, 2> halves_;
    size_t young_ = 0;
    uint64_t count_ = 0;
    uint64_t sum_ = 0; ///< us: an integer, so that another order of additions does not give less
};

} // namespace msfrs
