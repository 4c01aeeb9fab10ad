// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace msfrs::page {

/// A JSON string with its quotation marks; its ASCII characters are escaped such that no text can end the string, or an
/// element of HTML around it. Each byte that is not UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);
/// A number with five digits; null if it is not finite.
std::string JsonNumber(double value);

/// Writes JSON from left to right; commas are inserted automatically.
class Json {
public:
    Json &object() { return open('{'); }
    Json &array() { return open('['); }
    Json &end(const char bracket)
    {
        text_ += bracket;
        comma_ = true;
        return *this;
    }
    Json &key(const std::string_view name)
    {
        item();
        text_ += JsonString(name) + ":";
        comma_ = false;
        return *this;
    }
    Json &string(const std::string_view text) { return raw(JsonString(text)); }
    Json &number(const double value) { return raw(JsonNumber(value)); }
    Json &number(const std::optional<double> &value); ///< null if empty
    Json &whole(const int64_t value) { return raw(std::to_string(value)); }
    Json &boolean(const bool value) { return raw(value ? "true" : "false"); }
    /// Inserts JSON that was written before.
    Json &raw(const std::string_view json)
    {
        item();
        text_ += json;
        return *this;
    }
    std::string take() { return std::move(text_); }

private:
    void item()
    {
        if (comma_)
            text_ += ',';
        comma_ = true;
    }
    Json &open(const char bracket)
    {
        item();
        text_ += bracket;
        comma_ = false;
        return *this;
    }

    std::string text_;
    bool comma_ = false;
};

} // namespace msfrs::page
