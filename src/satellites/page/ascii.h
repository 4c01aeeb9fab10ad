// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Characters of ASCII, whatever the locale is.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace msfrs::page {

inline char Lower(const char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string Lower(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](const char c) { return Lower(c); });
    return text;
}

inline bool IsDigit(const char c) { return c >= '0' && c <= '9'; }
inline bool IsControl(const char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

/// Whether a name of a host may have it: letters, digits, '-', '_' and '.'.
inline bool IsOfNames(const char c)
{
    return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'z') || c == '-' || c == '_' || c == '.';
}

inline std::string_view Trimmed(std::string_view text, const std::string_view blanks = " \t")
{
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    text.remove_suffix(text.size() - (text.find_last_not_of(blanks) + 1));
    return text;
}

} // namespace msfrs::page
