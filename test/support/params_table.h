// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "plugin/msfrs_plugin.h"

namespace msfrs::test {

/// A parameter of each type, for a fictitious plugin.
inline const msfrs_param Table[] = {
    {"count", MSFRS_INT, "items", "7", -5, 1e6, nullptr, ""},
    {"share", MSFRS_REAL, "%", "0.5", 0, 100, nullptr, ""},
    {"ecn", MSFRS_BOOL, "", "off", 0, 0, nullptr, ""},
    {"mode", MSFRS_CHOICE, "", "two", 0, 0, "one|two|three", ""},
    {"big", MSFRS_INT, "", "0", -9.3e18, 9.3e18, nullptr, ""},
};

} // namespace msfrs::test
