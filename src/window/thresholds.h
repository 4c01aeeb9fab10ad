// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Thresholds that several judgements of the link share. docs/lab/constants.md has the effect of half and double.
#pragma once

#include "plugin/msfrs_plugin.h"

namespace msfrs {

constexpr double Alike = 0.1; ///< relative difference, of rates, queues or shares, that measurements cannot tell
constexpr int MostTimes = 8; ///< the first value: how far feedback, which may be wrong, takes a target
constexpr msfrs_time Remembered = 60'000'000'000; ///< ns: older base RTTs and swings say nothing about the link

} // namespace msfrs
