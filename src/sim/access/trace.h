// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Links whose rate follows a trace: a file in Mahimahi's format, or one of four courses generated from a seed.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <string>
#include <vector>

namespace msfrs::sim::access {

/// From `at` on (ns) the link carries `rate` (bit/s, >= 0), up to the next one's `at`.
struct RateStep {
    msfrs_time at;
    double rate;
};
using RateTrace = std::vector<RateStep>; ///< the first at 0, each later than the one before

/// The rate of a link over time.
/// \param name one of
/// - `steps`: `rate` and a quarter of it in turn, 20 s each: a step test.
/// - `wave`: between `rate` and a third of it, once a minute: a cable segment or a cell through its busy hour, faster.
/// - `lte`: lognormal, the sum of a process with a half-life of 3 s and one without memory; mean `rate`, tenth
///   percentile 15 % of it, maximum four times it; new every 100 ms. The two figures are those of the public drive
///   through an AT&T network that comes with Mahimahi (4.6 Mbit/s on average, 0.7 in the tenth percentile).
/// - `leo`: a satellite network that reallocates every 15 s (Starlink; Mohan et al., WWW 2024): lognormal around `rate`
///   with a deviation of 0.4, varying by 10 % up and down within a slot, new every 500 ms; every other slot, at random,
///   begins with an outage of 50 to 250 ms.
/// - a path: a file of Mahimahi's: the ms of each packet of 1504 bytes that the link takes; read in steps of 50 ms.
///   It repeats at its end.
/// \param rate as above, bit/s > 0; not used with a file
/// \param seconds > 0: length of the course
/// \throws ConfigError
RateTrace MakeTrace(const std::string &name, double rate, double seconds, uint64_t seed);

/// Its mean from one second to another, bit/s.
double MeanRate(const RateTrace &, double from, double until);

} // namespace msfrs::sim::access
