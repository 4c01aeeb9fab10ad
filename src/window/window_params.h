// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The parameters of msfrs_window.
#pragma once

#include "plugin/msfrs_plugin.h"

namespace msfrs {

/// The condition for releasing the next response: bytes in flight (FlightCredit), or W < W+ (PaperWindow).
enum class WindowLaw { Bytes, Paper };

/// The configuration checks the ranges; there are no checks here.
struct WindowParams {
    double target = 0.99;               ///< U+, share of C, 0 < U+ < 1
    msfrs_time interval = 1'000'000'000; ///< T in ns, > 0
    double growth = 2.0;                ///< K, > 1
    double reserve = 0.5;               ///< share of W+, or of C, kept open for first quanta, >= 0
    double floor = 0.6;                 ///< share of C kept beside other traffic, 0 <= floor < 1; 0: none
    msfrs_time queue = 0;               ///< q0 in ns >= 0, allowed standing queue at the bottleneck
    WindowLaw law = WindowLaw::Bytes;   ///< Bytes needs quanta
};

} // namespace msfrs
