// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Thresholds that several judgements of the link share. docs/lab/constants.md has the effect of half and double.
#pragma once

#include "plugin/msfrs_plugin.h"

namespace msfrs {

constexpr double Alike = 0.1; ///< relative difference, of rates, queues or shares, that measurements cannot tell
constexpr msfrs_time LeastQueue = 30'000'000; ///< ns: lower bound of q0, a harmless queueing delay
constexpr int MostTimes = 8; ///< its first value: feedback, which may be wrong, takes a target no further
constexpr msfrs_time Remembered = 60'000'000'000; ///< ns of base RTTs and swings; a longer RTT is no measurement

} // namespace msfrs
