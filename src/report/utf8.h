// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace msfrs {

struct Character {
    uint32_t code;  ///< the code point
    size_t length;  ///< bytes; 0: not valid UTF-8
};

/// Whether a code point is a character: up to U+10FFFF, no surrogate.
inline bool IsCharacter(const uint32_t code) { return code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF); }

/// The UTF-8 character at the beginning of a text: shortest form only (RFC 3629).
inline Character FirstCharacter(const std::string_view text)
{
    if (text.empty())
        return {0, 0};
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x80)
        return {first, 1};
    const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (!length || text.size() < length)
        return {0, 0};
    uint32_t code = first & (0xFFu >> (length + 1));
    for (size_t n = 1; n < length; ++n) {
        const auto next = static_cast<unsigned char>(text[n]);
        if ((next & 0xC0) != 0x80)
            return {0, 0};
        code = code << 6 | (next & 0x3Fu);
    }
    constexpr uint32_t Least[] = {0, 0, 0x80, 0x800, 0x10000};
    return {code, code >= Least[length] && IsCharacter(code) ? length : 0};
}

} // namespace msfrs
