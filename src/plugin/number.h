// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdio>
#include <string>

namespace msfrs {

/// A number as a message shows it: twelve digits, no trailing zeros.
inline std::string Number(const double v)
{
    char text[32];
    std::snprintf(text, sizeof(text), "%.12g", v);
    return text;
}

} // namespace msfrs
