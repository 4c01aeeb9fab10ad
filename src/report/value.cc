// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/value.h"

#include "report/utf8.h"

#include <cstdio>
#include <cstring>

namespace msfrs::report {

namespace {

/// Whether a character has to be escaped: controls, line breaks, direction and byte order marks, and noncharacters
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
    for (size_t at = 0; at < text.size();) {
        const auto [code, length] = FirstCharacter(std::string_view(text).substr(at));
        if (!length) {
            quoted += "\\uFFFD";
        } else if (code == '"' || code == '\\') {
            quoted += '\\';
            quoted += text[at];
        } else if (Hidden(code)) {
            char escape[16];
            std::snprintf(escape, sizeof(escape), code > 0xFFFF ? "\\U%08X" : "\\u%04X", code);
            quoted += escape;
        } else {
            quoted.append(text, at, length);
        }
        at += length ? length : 1;
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
