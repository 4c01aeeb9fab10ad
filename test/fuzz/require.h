// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

/// What must hold for every input: libFuzzer keeps the input for which it does not.
inline void Require(const bool holds)
{
    if (!holds)
        __builtin_trap();
}
