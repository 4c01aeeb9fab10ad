// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/utf8.h"

#include "report/utf8.h"
#include "satellites/page/ascii.h"

#include <cstdio>

namespace msfrs::page {

bool IsUtf8(std::string_view text)
{
    while (!text.empty()) {
        const auto length = FirstCharacter(text).length;
        if (!length)
            return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string Utf8(uint32_t code)
{
    if (!IsCharacter(code))
        code = 0xFFFD;
    if (code < 0x80)
        return {static_cast<char>(code)};
    std::string text;
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned Heads[] = {0, 0xC0, 0xE0, 0xF0};
    text += static_cast<char>(Heads[more] | code >> (6 * more));
    for (int n = more - 1; n >= 0; --n)
        text += static_cast<char>(0x80 | (code >> (6 * n) & 0x3F));
    return text;
}

std::string PercentEncoded(const std::string_view text)
{
    std::string encoded;
    for (const char c : text) {
        char escape[4];
        std::snprintf(escape, sizeof(escape), "%%%02X", static_cast<unsigned char>(c));
        encoded += IsOfNames(c) ? std::string(1, c) : escape;
    }
    return encoded;
}

std::optional<std::string> PercentDecoded(const std::string_view text)
{
    std::string decoded;
    for (size_t n = 0; n < text.size(); ++n) {
        if (text[n] != '%') {
            decoded += text[n];
            continue;
        }
        const auto high = n + 2 < text.size() ? HexDigit(text[n + 1]) : std::nullopt;
        const auto low = n + 2 < text.size() ? HexDigit(text[n + 2]) : std::nullopt;
        if (!high || !low)
            return {};
        decoded += static_cast<char>(*high << 4 | *low);
        n += 2;
    }
    return decoded;
}

} // namespace msfrs::page
