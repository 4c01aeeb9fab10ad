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

/// How bad it is: nobody is scheduled or served; something to look at; all in order.
enum class Light { Red, Amber, Green };
const char *CodeOf(Light);

struct Judgement {
    Light light;
    std::string text;  ///< plain words for the administrator
    std::string state; ///< what they are about, for words to others: silent, unscheduled, rate, trouble, waits, full,
                       ///< room, or the code of a fault
};

/// The verdict: the worst known fault, else the use of the link and the users that wait. The first line of msfrsctl
/// status, of msfrsctl why and of the page; the users' page has words of its own for its state.
/// \param since when the link became full, such as "since 14:02"; empty: not known, or less than a minute ago
/// \param silent why there are no figures of Squid; empty: there are
Judgement Overall(const Situation &, const std::string &since, const std::string &silent = {});

} // namespace msfrs::page
