/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "cache_cf.h"
#include "ConfigParser.h"
#include "debug/Stream.h"
#include "globals.h"
#include "msfrs/Options.h"

#include "plugin/loader.h"

#include <net/if.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ostream>
#include <sstream>
#include <strings.h>

namespace
{

struct Unit {
    const char *name;
    double factor;
};

/// smallest first; "" marks a number that needs no unit
const std::vector<Unit> &
UnitsOf(const Msfrs::Spec::Kind kind)
{
    using Kind = Msfrs::Spec::Kind;
    static const std::vector<Unit> rates = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
    static const std::vector<Unit> sizes = {{"bytes", 1}, {"KB", 1024}, {"MB", 1048576}, {"GB", 1073741824}};
    static const std::vector<Unit> times = {{"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}};
    static const std::vector<Unit> percents = {{"%", 1}}; // converted in steps that do not round
    static const std::vector<Unit> plain = {{"", 1}};
    switch (kind) {
    case Kind::Rate:
        return rates;
    case Kind::Size:
        return sizes;
    case Kind::Time:
        return times;
    case Kind::Percent:
        return percents;
    default:
        return plain;
    }
}

/// the number in the largest unit that leaves at least 1 of it
std::string
Print(double number, const Msfrs::Spec::Kind kind)
{
    if (kind == Msfrs::Spec::Percent)
        number *= 100;
    const auto &units = UnitsOf(kind);
    auto unit = units.front();
    for (const auto &u: units) {
        if (number >= u.factor)
            unit = u;
    }
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number / unit.factor,
                                   std::chars_format::general, 10).ptr;
    // squid.conf writes sizes with a blank
    const auto blank = kind == Msfrs::Spec::Size ? " " : "";
    return std::string(digits.data(), end) + blank + unit.name;
}

/// what the options of a directive are called in messages
std::string
Listed(const std::vector<std::string> &names, const char *conjunction)
{
    std::string text;
    for (size_t i = 0; i < names.size(); ++i) {
        if (i > 0)
            text += i + 1 < names.size() ? std::string(", ") : " " + std::string(conjunction) + " ";
        text += names[i];
    }
    return text;
}

bool
ValidInterface(const std::string &name)
{
    return !name.empty() && name.size() < IFNAMSIZ && name != "." && name != ".." &&
           name.find_first_of("/: \t") == std::string::npos;
}

} // namespace

Msfrs::Place::Place():
    directive_(cfg_directive ? cfg_directive : ""),
    file_(cfg_filename ? cfg_filename : ""),
    line_(config_lineno),
    text_(config_input_line)
{
}

std::string
Msfrs::Place::where() const
{
    return file_ + ":" + std::to_string(line_);
}

void
Msfrs::Place::refuse(const std::string &sentence) const
{
    // A refusal may come after the whole file was read. self_destruct() then reports what these variables
    // say, which is why the name has to outlive this object.
    static std::string file;
    file = file_;
    cfg_filename = file.c_str();
    config_lineno = line_;
    xstrncpy(config_input_line, text_.c_str(), sizeof(config_input_line));
    throw msfrs::ConfigError(where() + ": " + directive_ + ": " + sentence);
}

void
Msfrs::Place::warn(const std::string &sentence) const
{
    debugs(97, DBG_PARSE_NOTE(DBG_IMPORTANT), "WARNING: " << where() << ": " << directive_ << ": " << sentence);
}

std::string
Msfrs::Allowed(const Spec &spec)
{
    if (spec.kind == Spec::Interface)
        return "the name of a network interface, at most " + std::to_string(IFNAMSIZ - 1) + " characters, as in " +
               spec.example;

    std::string text;
    if (spec.kind == Spec::Percent) {
        text = "a percentage";
    } else {
        text = spec.kind == Spec::Count ? "a whole number" : "a number";
        std::vector<std::string> names;
        for (const auto &unit: UnitsOf(spec.kind))
            names.push_back(unit.name);
        if (!names.front().empty())
            text += " with the unit " + Listed(names, "or");
    }
    return text + " from " + Print(spec.min, spec.kind) + " to " + Print(spec.max, spec.kind) + ", as in " +
           spec.example;
}

double
Msfrs::Number(const Spec &spec, const std::string &value, const std::string &shown, const Place &place,
              const std::string &orElse)
{
    double number = 0;
    const auto end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, number, std::chars_format::fixed);
    const auto digits = !value.empty() && (xisdigit(value[0]) || value[0] == '-'); // from_chars() knows "inf", too
    if (digits && parsed.ec == std::errc()) {
        auto unit = parsed.ptr;
        while (unit < end && xisspace(*unit))
            ++unit;
        const std::string unitName(unit, end);
        for (const auto &known: UnitsOf(spec.kind)) {
            const auto bareZero = spec.kind == Spec::Percent && number == 0 && unitName.empty();
            if (!bareZero && strcasecmp(unitName.c_str(), known.name) != 0)
                continue;
            number = spec.kind == Spec::Percent ? number / 100 : number * known.factor;
            const auto rounding = 1e-12; // 99.9% is a little more than the limit 0.999
            if (number < spec.min - rounding*std::abs(spec.min) || number > spec.max + rounding*std::abs(spec.max))
                break;
            if (spec.kind == Spec::Count && number != std::floor(number))
                break;
            return number;
        }
    }
    place.refuse(shown + " is not allowed; give " + orElse + Allowed(spec));
}

bool
Msfrs::NextOption(ConfigParser &, const Place &place, Option &option)
{
    const auto peeked = ConfigParser::PeekAtToken();
    if (!peeked)
        return false;

    const std::string word(peeked);
    const auto middle = word.find('=');
    // In strict mode, PeekAtToken() cannot see through name=98%, but NextKvPair() can.
    const auto opaque = ConfigParser::StrictMode && word[0] == '[';
    if (middle == 0)
        place.refuse(word + " has no name before the =");
    if (!opaque && (middle == std::string::npos || middle + 1 == word.size())) {
        (void)ConfigParser::NextToken();
        option = Option(word, "");
        return true;
    }

    char *name = nullptr;
    char *value = nullptr;
    if (!ConfigParser::NextKvPair(name, value) || !*value)
        place.refuse(word + " is not of the form name=value");
    option = Option(name, value);
    return true;
}

Msfrs::Options::Options(ConfigParser &parser, const Place &place, const std::vector<Spec> &known, const char *flag):
    place_(place),
    known_(known),
    flag_(flag)
{
    Option option;
    while (NextOption(parser, place_, option)) {
        const auto &[name, value] = option;
        const auto isFlag = value.empty() && flag_ && name == flag_;
        const auto rule = spec(value.empty() && name.back() == '=' ? name.substr(0, name.size() - 1) : name);
        if (!rule && !isFlag)
            place_.refuse("option " + name + " is unknown; known are " + names());
        if (const auto first = find(name.c_str()))
            place_.refuse("option " + name + " is given twice; " + name + (first->empty() ? "" : "=" + *first) +
                          " comes first");
        if (rule && value.empty())
            place_.refuse(name + " has no value; give " + Allowed(*rule));
        if (rule && rule->kind == Spec::Interface) {
            if (!ValidInterface(value))
                place_.refuse(name + "=" + value + " is not allowed; give " + Allowed(*rule));
        } else if (rule) {
            (void)Number(*rule, value, name + "=" + value, place_);
        }
        given_.push_back(option);
    }
}

const std::string *
Msfrs::Options::find(const char *name) const
{
    for (const auto &option: given_) {
        if (option.first == name)
            return &option.second;
    }
    return nullptr;
}

const Msfrs::Spec *
Msfrs::Options::spec(const std::string &name) const
{
    for (const auto &s: known_) {
        if (name == s.name)
            return &s;
    }
    return nullptr;
}

std::string
Msfrs::Options::names() const
{
    std::vector<std::string> all;
    for (const auto &s: known_)
        all.push_back(std::string(s.name) + "=");
    if (flag_)
        all.push_back(flag_);
    return Listed(all, "and");
}

double
Msfrs::Options::number(const char *name, const double otherwise) const
{
    const auto value = find(name);
    return value ? Number(*spec(name), *value, *value, place_) : otherwise;
}

std::string
Msfrs::Options::text(const char *name) const
{
    const auto value = find(name);
    return value ? *value : std::string();
}

void
Msfrs::Options::require(const char *name) const
{
    if (!has(name))
        place_.refuse(std::string(name) + "= is missing; give " + Allowed(*spec(name)));
}

void
Msfrs::Options::print(std::ostream &os) const
{
    auto separator = "";
    for (const auto &[name, value]: given_) {
        os << separator << name;
        if (!value.empty())
            os << '=' << value;
        separator = " ";
    }
}

