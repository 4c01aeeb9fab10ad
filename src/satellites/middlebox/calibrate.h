// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Measures how long each function takes on this machine, per packet size.
#pragma once

#include "satellites/middlebox/function.h"
#include "satellites/middlebox/processing_time.h"

#include <functional>
#include <iosfwd>
#include <vector>

namespace msfrs::middlebox {

/// The processing time of a function: for each size the median over `rounds` batches of 16 packets each.
///
/// Packets are of many flows, UDP over IPv4; half of the payloads are new, and half repeat one that is still in a
/// cache. Their generation is not timed. \param sizes bytes with headers, 64..65535
/// \param rounds > 0 \param now a clock's nanoseconds; of thread time, so that other processes affect it less
std::vector<TimeOfSize> Measure(Function &, const std::vector<size_t> &sizes, unsigned rounds, uint64_t seed,
                                const std::function<int64_t()> &now);

/// Measures all functions, and prints a line of configuration for each, in ATFQ's units (table II) and next to its
/// figures: `function NAME alpha=MICROSECONDS beta=MICROSECONDS`.
/// \returns 0, or 1 with a message if a clock does not advance
int Calibrate(std::ostream &, const FunctionOptions &, const std::function<int64_t()> &now);

} // namespace msfrs::middlebox
