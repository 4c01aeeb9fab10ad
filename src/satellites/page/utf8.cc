// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/utf8.h"

#include <cstdio>

namespace msfrs::page {

namespace {

bool IsCharacter(const uint32_t code) { return code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF); }

} // namespace

size_t CharacterLength(const std::string_view text)
{
    if (text.empty())
        return 0;
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x80)
        return 1;
    const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (!length || text.size() < length)
        return 0;
    uint32_t code = first & (0xFFu >> (length + 1));
    for (size_t n = 1; n < length; ++n) {
        const auto next = static_cast<unsigned char>(text[n]);
        if ((next & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (next & 0x3Fu);
    }
    constexpr uint32_t Least[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= Least[length] && IsCharacter(code) ? length : 0;
}

bool IsUtf8(std::string_view text)
{
    while (!text.empty()) {
        const auto length = CharacterLength(text);
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
        const bool kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
            c == '_' || c == '.';
        char escape[4];
        std::snprintf(escape, sizeof(escape), "%%%02X", static_cast<unsigned char>(c));
        encoded += kept ? std::string(1, c) : escape;
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
