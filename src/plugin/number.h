// SPDX-License-Identifier: GPL-2.0-or-later
#ifndef MSFRS_PLUGIN_NUMBER_H
#define MSFRS_PLUGIN_NUMBER_H

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

#endif
