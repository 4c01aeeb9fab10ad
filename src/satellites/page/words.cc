// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/words.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace msfrs::page {

std::string Percent(const double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string Fixed(const double number, const int decimals)
{
    char text[400]; // enough for any double
    std::snprintf(text, sizeof(text), "%.*f", decimals, number);
    return text;
}

std::string Weight(const double weight)
{
    char text[32];
    std::snprintf(text, sizeof(text), "%g", weight);
    return text;
}

std::string Seconds(const double seconds)
{
    return seconds < Instant ? "less than 1 ms"
        : seconds < 1        ? Fixed(1000 * seconds) + " ms"
                             : Fixed(seconds, 1) + " s";
}

std::string Counted(const double n, const char *const one)
{
    return Fixed(n) + " " + one + (n == 1 ? "" : "s");
}

std::string Size(double bytes)
{
    constexpr const char *Units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 1023.5 && unit + 1 < std::size(Units); ++unit)
        bytes /= 1024;
    return Fixed(bytes, bytes < 9.95 && unit ? 1 : 0) + " " + Units[unit];
}

std::string Duration(const double seconds)
{
    const auto minutes = static_cast<size_t>(seconds / 60), hours = minutes / 60;
    return hours >= 48 ? Counted(static_cast<double>(hours / 24), "day")
        : hours        ? std::to_string(hours) + " h " + std::to_string(minutes % 60) + " min"
                       : std::to_string(minutes) + " min";
}

std::string RateText(const double rate)
{
    constexpr const char *Units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"};
    size_t unit = 0;
    double shown = rate;
    for (; shown >= 999.5 && unit + 1 < std::size(Units); ++unit)
        shown /= 1000;
    return Fixed(shown, shown < 9.95 && unit ? 1 : 0) + " " + Units[unit];
}

} // namespace msfrs::page
