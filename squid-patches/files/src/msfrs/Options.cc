/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "cache_cf.h"
#include "ConfigParser.h"
#include "debug/Stream.h"
#include "globals.h"
#include "msfrs/lib/plugin/loader.h"
#include "msfrs/lib/quota/quota_period.h"
#include "msfrs/Options.h"

#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <ostream>
#include <strings.h>

namespace msfrs::squid
{

namespace
{

static_assert(IFNAMSIZ == 16, "what directives.toml says of interfaces");

bool
ValidInterface(const std::string &name)
{
    return !name.empty() && name.size() < IFNAMSIZ && name != "." && name != ".." &&
           name.find_first_of("/: \t") == std::string::npos;
}

/// the unit of that name, or nil
const Unit *
UnitOf(const Spec &spec, const std::string &name)
{
    auto unit = spec.units;
    while (unit->name && strcasecmp(name.c_str(), unit->name) != 0)
        ++unit;
    return unit->name ? unit : nullptr;
}

/// the value in the unit in which it is stored; none if it is not allowed
std::optional<double>
Read(const Spec &spec, const std::string &value)
{
    if (spec.instead && value == spec.instead)
        return 0;
    if (spec.form == Spec::Interface)
        return ValidInterface(value) ? std::make_optional(0.0) : std::nullopt;
    if (spec.form == Spec::ClassName)
        return ValidClassName(value) ? std::make_optional(0.0) : std::nullopt;

    if (spec.form == Spec::Word) {
        const auto found = UnitOf(spec, value);
        return found ? std::make_optional(found->factor) : std::nullopt;
    }

    auto end = value.data() + value.size();
    if (spec.form == Spec::PerPeriod) {
        const auto slash = value.find('/');
        if (slash == std::string::npos || !QuotaPeriodOf(std::string_view(value).substr(slash + 1)))
            return std::nullopt;
        end = value.data() + slash;
    }
    double number = 0;
    const auto parsed = std::from_chars(value.data(), end, number, std::chars_format::fixed);
    const auto digits = !value.empty() && (xisdigit(value[0]) || value[0] == '-'); // from_chars() accepts "inf", too
    if (!digits || parsed.ec != std::errc())
        return std::nullopt;
    auto rest = parsed.ptr;
    while (rest < end && xisspace(*rest))
        ++rest;
    const std::string name(rest, end);
    const auto bareZero = spec.form == Spec::Percent && number == 0 && name.empty();
    const auto unit = bareZero ? spec.units : UnitOf(spec, name);
    if (!unit)
        return std::nullopt;
    number = spec.form == Spec::Percent ? number / 100 : number * unit->factor;
    const auto rounding = 1e-12; // of a limit in another unit
    if (number < spec.min - rounding*std::abs(spec.min) || number > spec.max + rounding*std::abs(spec.max))
        return std::nullopt;
    if (spec.form == Spec::Count && number != std::floor(number))
        return std::nullopt;
    return number;
}

/// the options of a directive, as messages list them
std::string
Names(const Spec * const *known)
{
    std::string text;
    for (auto spec = known; *spec; ++spec) {
        text += spec == known ? "" : *(spec + 1) ? ", " : " and ";
        text += (*spec)->name;
        text += (*spec)->form == Spec::Flag ? "" : "=";
    }
    return text;
}

const Spec *
Find(const Spec * const *known, const std::string &name)
{
    while (*known && name != (*known)->name)
        ++known;
    return *known;
}

} // namespace

bool
ValidClassName(const std::string &name)
{
    return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](const char c) {
        return xisalnum(c) || c == '-' || c == '_' || c == '.';
    });
}

Place::Place():
    directive_(cfg_directive ? cfg_directive : ""),
    file_(cfg_filename ? cfg_filename : ""),
    line_(config_lineno),
    text_(config_input_line)
{
}

std::string
Place::where() const
{
    return file_ + ":" + std::to_string(line_);
}

void
Place::refuse(const std::string &sentence) const
{
    // A refusal may come after the whole file was read. self_destruct() then reports these variables, which
    // is why the name has to outlive this object.
    static std::string file;
    file = file_;
    cfg_filename = file.c_str();
    config_lineno = line_;
    xstrncpy(config_input_line, text_.c_str(), sizeof(config_input_line));
    throw ConfigError(where() + ": " + directive_ + ": " + sentence);
}

void
Place::warn(const std::string &sentence) const
{
    debugs(97, DBG_PARSE_NOTE(DBG_IMPORTANT), "WARNING: " << where() << ": " << directive_ << ": " << sentence);
}

double
Number(const Spec &spec, const std::string &value, const Place &place)
{
    if (const auto number = Read(spec, value))
        return *number;
    const std::string name(spec.name);
    place.refuse((name.empty() ? "" : name + "=") + value + " is not allowed; give " + spec.allowed);
}

bool
NextOption(ConfigParser &, const Place &place, Option &option)
{
    const auto peeked = ConfigParser::PeekAtToken();
    if (!peeked)
        return false;

    const std::string word(peeked);
    const auto middle = word.find('=');
    // In strict mode, PeekAtToken() cannot parse name=98%, but NextKvPair() can.
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

Options::Options(ConfigParser &parser, const Place &place, const Spec * const * const known)
{
    Option option;
    while (NextOption(parser, place, option)) {
        const auto &[name, value] = option;
        const auto cut = value.empty() && name.back() == '=';
        const auto spec = Find(known, cut ? name.substr(0, name.size() - 1) : name);
        const auto isFlag = spec && spec->form == Spec::Flag;
        if (!spec || (isFlag && (cut || !value.empty())))
            place.refuse("option " + name + " is unknown; known are " + Names(known));
        if (const auto first = find(*spec))
            place.refuse("option " + name + " is given twice; " + spec->name + (isFlag ? "" : "=") + first->written +
                         " comes first");
        if (value.empty() && !isFlag)
            place.refuse(name + " has no value; give " + spec->allowed);
        given_.push_back({spec, value, isFlag ? 0 : Number(*spec, value, place)});
    }
    for (auto spec = known; *spec; ++spec) {
        if ((*spec)->required && !has(**spec))
            place.refuse(std::string((*spec)->name) + "= is missing; give " + (*spec)->allowed);
    }
}

const Options::Given *
Options::find(const Spec &spec) const
{
    for (const auto &option: given_) {
        if (option.spec == &spec)
            return &option;
    }
    return nullptr;
}

double
Options::number(const Spec &spec) const
{
    const auto option = find(spec);
    return option ? option->number : spec.byDefault;
}

std::string
Options::text(const Spec &spec) const
{
    const auto option = find(spec);
    return option ? option->written : std::string();
}

void
Options::print(std::ostream &os) const
{
    auto separator = "";
    for (const auto &option: given_) {
        os << separator << option.spec->name;
        if (option.spec->form != Spec::Flag)
            os << '=' << option.written;
        separator = " ";
    }
}

} // namespace msfrs::squid
