// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/json.h"

#include "report/utf8.h"

#include <cmath>
#include <cstdio>

namespace msfrs::page {

std::string JsonString(std::string_view text)
{
    std::string json = "\"";
    while (!text.empty()) {
        const auto length = FirstCharacter(text).length;
        const auto first = static_cast<unsigned char>(text[0]);
        // U+2028 and U+2029 end a line in JavaScript.
        if (length == 0 || text.substr(0, 2) == "\xE2\x80") {
            json += length == 0 ? "\\ufffd"
                : text[2] == '\xA8' ? "\\u2028"
                : text[2] == '\xA9' ? "\\u2029"
                                    : std::string(text.substr(0, length));
        } else if (first < 0x20 || first == 0x7F || first == '"' || first == '\\' || first == '<' || first == '>' ||
                   first == '&' || first == '\'') {
            char escape[8];
            std::snprintf(escape, sizeof(escape), "\\u%04x", first);
            json += escape;
        } else {
            json += text.substr(0, length);
        }
        text.remove_prefix(length ? length : 1);
    }
    return json + '"';
}

std::string JsonNumber(const double value)
{
    if (!std::isfinite(value))
        return "null";
    char text[32];
    std::snprintf(text, sizeof(text), "%.5g", value);
    return text;
}

// Not inline: GCC 12 with sanitizers would warn that the value of an empty one is used.
Json &Json::number(const std::optional<double> &value) { return raw(value ? JsonNumber(*value) : "null"); }

} // namespace msfrs::page
