// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/value.h"

#include <cstdio>
#include <cstring>

namespace msfrs::report {

namespace {

struct Character {
    uint32_t code; ///< the code point
    size_t size; ///< bytes; zero: not valid UTF-8
};

/// The UTF-8 character that begins at a position: shortest form, no surrogates, up to U+10FFFF (RFC 3629).
Character CharacterAt(const std::string &text, const size_t at)
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
bool Hidden(const uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200E && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF ||
           (code & 0xFFFE) == 0xFFFE;
}

} // namespace

std::string Quoted(const std::string &text)
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

std::string Map(const std::vector<std::pair<std::string, std::string>> &fields)
{
    std::string map;
    for (const auto &[key, value] : fields)
        map += (map.empty() ? "{" : ", ") + key + ": " + value;
    return map + '}';
}

std::string Fixed(const double number, const int decimals)
{
    char text[400]; // enough for any double
    std::snprintf(text, sizeof(text), "%.*f", decimals, number);
    return text;
}

double Value::number() const
{
    return type == Ratio ? real / divisor : type == Real ? real : static_cast<double>(whole);
}

void Value::join(const Join how, const Value &other)
{
    if ((how == Join::Known && !known()) || (how == Join::Most && number() < other.number()))
        *this = other;
    if (how != Join::Sum)
        return;
    whole += other.whole;
    real += other.real;
    divisor += other.divisor;
}

std::string Value::yaml(const int decimals) const
{
    if (!known())
        return "null";
    return type == Truth ? whole ? "true" : "false" : type == Text ? Quoted(text) : type > Text || type == Word ? text
                                                                                  : metric(decimals);
}

std::string Value::metric(const int decimals, const double scale) const
{
    return type == Truth || type == Whole ? std::to_string(whole) : Fixed(number() * scale, decimals);
}

void Value::write(std::string &bytes) const
{
    const auto put = [&](const auto &field) { bytes.append(reinterpret_cast<const char *>(&field), sizeof(field)); };
    put(type);
    put(whole);
    put(real);
    put(divisor);
    put(text.size());
    bytes += text;
}

bool Value::read(std::string_view &bytes)
{
    const auto take = [&](auto &field) {
        const bool enough = bytes.size() >= sizeof(field);
        if (enough) {
            std::memcpy(&field, bytes.data(), sizeof(field));
            bytes.remove_prefix(sizeof(field));
        }
        return enough;
    };
    size_t size = 0;
    if (!take(type) || !take(whole) || !take(real) || !take(divisor) || !take(size) || bytes.size() < size)
        return false;
    text = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return type <= List;
}

} // namespace msfrs::report
