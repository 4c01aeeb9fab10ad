// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "config/fields.h"

#include <string>

namespace msfrs::test {

/// The message with which `read` refuses its input, or "accepted".
template <class Read>
std::string RefusalOf(const Read &read)
{
    try {
        read();
    } catch (const RuleError &e) {
        return e.what();
    }
    return "accepted";
}

} // namespace msfrs::test
