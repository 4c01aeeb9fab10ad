// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace msfrs::page {

/// Whether a whole text is UTF-8.
bool IsUtf8(std::string_view text);
/// A character as UTF-8; U+FFFD for an invalid one.
std::string Utf8(uint32_t code);

/// The value of a hexadecimal digit.
inline std::optional<unsigned> HexDigit(const char c)
{
    const auto at = std::string_view("0123456789abcdefABCDEF").find(c);
    if (at == std::string_view::npos)
        return {};
    return static_cast<unsigned>(at < 16 ? at : at - 6);
}

/// Encodes all but letters, digits, '-', '_' and '.' as %XX.
std::string PercentEncoded(std::string_view text);
/// Decodes %XX in a text. \returns nothing if a % is not followed by two digits
std::optional<std::string> PercentDecoded(std::string_view text);

} // namespace msfrs::page
