// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Parameter tables of plugins: from name=value pairs to checked values.
#include "plugin/loader.h"
#include "plugin/number.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace msfrs {

namespace {

std::vector<std::string> Choices(const msfrs_param &p)
{
    std::vector<std::string> all(1);
    for (const char *c = p.choices; c && *c; ++c) {
        if (*c == '|')
            all.emplace_back();
        else
            all.back() += *c;
    }
    return all;
}

std::string Allowed(const msfrs_param &p)
{
    const std::string unit = p.unit && *p.unit ? std::string(" ") + p.unit : "";
    switch (p.type) {
    case MSFRS_INT: return "a whole number from " + Number(p.min) + " to " + Number(p.max) + unit;
    case MSFRS_REAL: return "a number from " + Number(p.min) + " to " + Number(p.max) + unit;
    case MSFRS_BOOL: return "on or off";
    case MSFRS_CHOICE: break;
    }
    std::string text = "one of";
    for (const auto &choice : Choices(p))
        text += " " + choice;
    return text;
}

/// Decimal notation only: the C functions below also accept blanks, hexadecimal digits, "nan", and text before a NUL.
bool LooksDecimal(const std::string &text)
{
    return !text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string::npos;
}

bool Parse(const msfrs_param &p, const std::string &text, msfrs_value &out)
{
    const char *const begin = text.c_str();
    char *end = nullptr;
    errno = 0;
    switch (p.type) {
    case MSFRS_INT: {
        const long long v = std::strtoll(begin, &end, 10);
        out.i = v;
        return LooksDecimal(text) && !*end && errno == 0 && static_cast<double>(v) >= p.min &&
               static_cast<double>(v) <= p.max;
    }
    case MSFRS_REAL:
        if (text == "inf" && std::isinf(p.max)) {
            out.d = p.max;
            return true;
        }
        out.d = std::strtod(begin, &end);
        return LooksDecimal(text) && !*end && errno == 0 && out.d >= p.min && out.d <= p.max;
    case MSFRS_BOOL:
        out.i = text == "on";
        return text == "on" || text == "off";
    case MSFRS_CHOICE: {
        const auto all = Choices(p);
        for (size_t n = 0; n < all.size(); ++n) {
            if (all[n] == text) {
                out.i = static_cast<int64_t>(n);
                return true;
            }
        }
        return false;
    }
    }
    return false;
}

} // namespace

std::vector<msfrs_value> ParseParams(const msfrs_plugin &plugin, const std::vector<Setting> &settings)
{
    std::vector<msfrs_value> values(plugin.n_params);
    std::vector<bool> given(plugin.n_params, false);
    for (uint32_t n = 0; n < plugin.n_params; ++n) {
        const auto &p = plugin.params[n];
        auto asDefault = p;
        if (p.type == MSFRS_INT || p.type == MSFRS_REAL)
            asDefault.min = std::min(p.min, 0.0); // a default that nobody may write means "not given"
        if (!p.def || !Parse(asDefault, p.def, values[n])) {
            throw ConfigError(std::string("plugin ") + plugin.name + " has a bad default " + p.name + "=" +
                              (p.def ? p.def : "(none)"));
        }
    }
    for (const auto &setting : settings) {
        uint32_t n = 0;
        while (n < plugin.n_params && setting.name != plugin.params[n].name)
            ++n;
        if (n == plugin.n_params) {
            std::string known;
            for (uint32_t k = 0; k < plugin.n_params; ++k)
                known += std::string(k ? ", " : "") + plugin.params[k].name;
            throw ConfigError(std::string(plugin.name) + " has no parameter '" + setting.name + "'" +
                              (known.empty() ? "; it has none" : "; it has " + known));
        }
        const auto &p = plugin.params[n];
        if (given[n])
            throw ConfigError(std::string(plugin.name) + " parameter " + p.name + " is given twice; " + p.name + "=" +
                              std::find_if(settings.begin(), settings.end(), [&](const Setting &s) {
                                  return s.name == setting.name;
                              })->value + " comes first");
        given[n] = true;
        if (!Parse(p, setting.value, values[n])) {
            throw ConfigError(std::string(plugin.name) + " parameter " + p.name + "=" + setting.value +
                              " is not allowed: expected " + Allowed(p));
        }
    }
    return values;
}

std::string DescribeParams(const msfrs_plugin &plugin)
{
    std::vector<std::vector<std::string>> rows;
    size_t widths[2] = {};
    for (uint32_t n = 0; n < plugin.n_params; ++n) {
        const auto &p = plugin.params[n];
        const bool unset = p.min < p.max && std::strtod(p.def ? p.def : "0", nullptr) < p.min; // says "not given"
        const auto given = std::string(p.name) + "=" + (p.def ? p.def : "");
        rows.push_back({unset ? std::string(p.name) + " (not set)" : given, Allowed(p), p.help ? p.help : ""});
        for (size_t c = 0; c < std::size(widths); ++c)
            widths[c] = std::max(widths[c], rows.back()[c].size());
    }
    std::string text;
    for (auto &row : rows) {
        for (size_t c = 0; c < std::size(widths); ++c)
            row[c].resize(widths[c], ' ');
        text += "    " + row[0] + "  " + row[1] + "  " + row[2] + "\n";
    }
    return text.empty() ? "    no parameters\n" : text;
}

std::string PrintSettings(const std::vector<Setting> &settings)
{
    std::string text;
    for (const auto &setting : settings)
        text += (text.empty() ? "" : " ") + setting.name + "=" + setting.value;
    return text;
}

} // namespace msfrs
