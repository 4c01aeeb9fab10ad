// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The verdict on the whole gateway, in plain words.
#pragma once

#include "satellites/page/situation.h"

namespace msfrs::page {

/// For how long the link has been full: the number of whole minutes up to now, each with a mean utilisation of at least
/// Full. A pause of some seconds between two pages does not end it.
/// \param utilisation means of slots, latest last; NaN: unknown \param perMinute slots
size_t MinutesFull(const std::vector<float> &utilisation, size_t perMinute);

/// Says how full the link is, who waits, and what is wrong, if anything.
/// \param since when the link became full, such as "since 14:02"; empty: less than a minute ago
std::string Overall(const Situation &, const std::string &since);

} // namespace msfrs::page
