// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Checks of the parameters of a request scheduler.
#pragma once

#include "engine/request_scheduler.h"

namespace msfrs {

/// Checks the configuration, except for plugins and their settings, which are checked where they are loaded. Where C is
/// estimated, sets the rate to the initial estimate.
/// \throws ConfigError with a sentence naming the value and what is allowed
RequestConfig Prepared(RequestConfig);

/// Bandwidth-delay product: bytes that the link carries in one RTT.
double BandwidthDelay(const RequestConfig &);

/// The window's parameters, including derived ones. The paper's window has no floor.
WindowParams WindowOf(const RequestConfig &);

} // namespace msfrs
