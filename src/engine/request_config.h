// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What a request scheduler's parameters may be.
#ifndef MSFRS_ENGINE_REQUEST_CONFIG_H
#define MSFRS_ENGINE_REQUEST_CONFIG_H

#include "engine/request_scheduler.h"

namespace msfrs {

/// Plugins and their settings are checked where they are loaded.
/// \throws ConfigError with a sentence naming the value and what is allowed
void CheckRequestConfig(const RequestConfig &);

/// The same, where C is found with what it begins with as the rate.
/// \throws ConfigError
RequestConfig Prepared(RequestConfig);

/// Bytes that the link carries in one round trip.
double BandwidthDelay(const RequestConfig &);

/// The window's parameters, those that follow from the others included. The paper's window knows no floor.
WindowParams WindowOf(const RequestConfig &);

} // namespace msfrs

#endif
