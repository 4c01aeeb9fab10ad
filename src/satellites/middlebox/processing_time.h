// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// CPU time of a function for a packet of x bytes: alpha x + beta (ATFQ, section V-A).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msfrs::middlebox {

struct ProcessingTime {
    static constexpr double MaxAlpha = 1000, MaxBeta = 1e6;

    double alpha = 0; ///< microseconds per byte, 0..MaxAlpha
    double beta = 0;  ///< microseconds per packet, 0..MaxBeta

    double microseconds(const double bytes) const { return alpha * bytes + beta; }
    /// In the unit of msfrs_item::est: 10^-4 microseconds, rounded. \param bytes 0..2^32
    int64_t estimate(size_t bytes) const;
};

/// The measured time of packets of one size.
struct TimeOfSize {
    double bytes, microseconds;
};

/// The line with the least sum of squared errors among those with alpha and beta at least 0.
/// \throws std::invalid_argument fewer than two different sizes
ProcessingTime Fit(const std::vector<TimeOfSize> &);

/// The greatest deviation of a sample from the line, relative to the sample. \param samples with times > 0
double GreatestError(const ProcessingTime &, const std::vector<TimeOfSize> &samples);

} // namespace msfrs::middlebox
