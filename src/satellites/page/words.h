// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Figures as text for people.
#pragma once

#include <string>

namespace msfrs::page {

/// "35 %" of a share of 0.35.
std::string Percent(double share);
std::string Fixed(double number, int decimals = 0);
/// A weight without trailing zeros.
std::string Weight(double weight);
/// Times below this are "less than 1 ms", s: 0 ms would say that there is none.
constexpr double Instant = 0.0005;
/// "40 ms", "2.5 s"
std::string Seconds(double seconds);
/// "1 request", "2 requests"
std::string Counted(double n, const char *one);
/// Bytes: "4.7 GB", in steps of 1024.
std::string Size(double bytes);
/// "12 min", "3 h 20 min", "2 days"
std::string Duration(double seconds);
/// Bit/s: "1.5 Mbit/s".
std::string RateText(double rate);

} // namespace msfrs::page
