// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The message of another gateway. It is refused with a printable reason, or read within its ranges; a message that was
/// read is written identically.
#include "require.h"
#include "satellites/share/message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using namespace msfrs::share;
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    std::string why;
    const auto sums = DecodeMessage(text, why);
    if (!sums) {
        Require(!why.empty() && why.size() < 200);
        for (const char c : why)
            Require(c >= ' ' && c <= '~');
        return 0;
    }
    Require(why.empty() && sums->places <= MostPlaces && sums->limit >= 1 && sums->demand >= 0);
    Require(sums->classes.size() <= MostClasses && sums->users.size() <= MostUsers);
    Require(EncodeMessage(*sums) == text);
    return 0;
}
