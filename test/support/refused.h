// SPDX-License-Identifier: GPL-2.0-or-later
#ifndef MSFRS_TEST_SUPPORT_REFUSED_H
#define MSFRS_TEST_SUPPORT_REFUSED_H

#include "config/fields.h"

#include <string>

namespace msfrs::test {

/// What `read` refuses its input with, or "accepted".
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

#endif
