/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "msfrs/Yaml.h"

#include <cstdint>
#include <cstdio>

namespace msfrs::squid
{

namespace
{

struct Character {
    uint32_t code; ///< the code point
    size_t size; ///< bytes; zero: not valid UTF-8
};

/// The UTF-8 character that begins at a position: shortest form, no surrogates, up to U+10FFFF (RFC 3629).
Character
CharacterAt(const std::string &text, const size_t at)
{
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80)
        return {first, 1};
    const size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (!size || text.size() - at < size)
        return {0, 0};
    uint32_t code = first & (0xFF >> (size + 1));
    for (size_t i = 1; i < size; ++i) {
        const auto next = static_cast<unsigned char>(text[at + i]);
        if ((next & 0xC0) != 0x80)
            return {0, 0};
        code = (code << 6) | (next & 0x3F);
    }
    const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return {0, 0};
    return {code, size};
}

/// whether a character has to be escaped: controls, line breaks, direction and byte order marks, and noncharacters
bool
Hidden(const uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200E && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF ||
           (code & 0xFFFE) == 0xFFFE;
}

} // namespace

std::string
Quoted(const std::string &text)
{
    std::string quoted = "\"";
    for (size_t at = 0; at < text.size(); ) {
        const auto [code, size] = CharacterAt(text, at);
        if (!size) {
            quoted += "\\uFFFD";
        } else if (code == '"' || code == '\\') {
            quoted += '\\';
            quoted += text[at];
        } else if (Hidden(code)) {
            char escape[16];
            snprintf(escape, sizeof(escape), code > 0xFFFF ? "\\U%08X" : "\\u%04X", code);
            quoted += escape;
        } else {
            quoted.append(text, at, size);
        }
        at += size ? size : 1;
    }
    return quoted + '"';
}

} // namespace msfrs::squid
