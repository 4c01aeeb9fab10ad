// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/fields.h"

#include "plugin/number.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <tuple>

namespace msfrs {

namespace {

struct Unit {
    const char *name;
    double scale;
};

/// Parses a number with a unit into a whole number.
template <size_t N>
int64_t Quantity(const Field &f, const Unit (&units)[N], const char *const example, const int64_t least,
                 const int64_t most, const char *const allowed)
{
    const auto text = f.value;
    double value = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value, std::chars_format::fixed);
    const std::string_view unit(read.ptr, static_cast<size_t>(end - read.ptr));
    const auto known = std::find_if(units, units + N, [&](const Unit &u) { return unit == u.name; });
    if (read.ec != std::errc() || known == units + N) {
        std::string names;
        for (const auto &u : units)
            names += (names.empty() ? "" : ", ") + std::string(u.name);
        f.refuse("not a number with a unit (" + names + "); allowed are " + allowed + ", as in " + example);
    }
    const double whole = std::round(value * known->scale);
    if (!(whole >= static_cast<double>(least) && whole <= static_cast<double>(most))) // refuses NaN, too
        f.refuse("allowed are " + std::string(allowed));
    return static_cast<int64_t>(whole);
}

Field::AddressRange OneAddress(const Field &f, const std::string_view text, const char *const allowed)
{
    uint8_t bytes[16];
    const std::string terminated(text);
    // An embedded 0 would end the text early.
    const bool whole = text.find('\0') == text.npos;
    for (const auto &[known, family, size] : {std::tuple{AF_INET, Family::V4, 4u}, {AF_INET6, Family::V6, 16u}}) {
        if (whole && inet_pton(known, terminated.c_str(), bytes) == 1) {
            const auto a = AddressOf(bytes, size);
            return {family, {a, a}};
        }
    }
    f.refuse("not an address; allowed are " + std::string(allowed) + " of IPv4 or IPv6");
}

} // namespace

std::string Printable(const std::string_view text)
{
    std::string shown(text);
    for (auto &c : shown) {
        if (c < ' ' || c > '~')
            c = '?';
    }
    return shown;
}

std::string Shown(const std::string_view text)
{
    constexpr size_t Most = 60; // characters
    return Printable(text.substr(0, Most)) + (text.size() > Most ? "..." : "");
}

std::string_view NextWord(std::string_view &line)
{
    constexpr const char *Blank = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(Blank), line.size()));
    const auto word = line.substr(0, line.find_first_of(Blank));
    line.remove_prefix(word.size());
    return word;
}

std::string Listed(const std::vector<const char *> &names)
{
    std::string all;
    for (size_t n = 0; n < names.size(); ++n)
        all += (n == 0 ? "" : n + 1 == names.size() ? " and " : ", ") + std::string(names[n]);
    return all;
}

std::optional<uint32_t> WholeNumber(const std::string_view text, const uint32_t most)
{
    uint32_t n = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, n);
    if (read.ec != std::errc() || read.ptr != end || n > most)
        return {};
    return n;
}

bool GoodName(const std::string_view text)
{
    return !text.empty() && text.size() <= MostNameLength && std::all_of(text.begin(), text.end(), [](const char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
            c == '.';
    });
}

std::ifstream OpenFile(const std::string &path)
{
    std::ifstream in(path);
    if (!in)
        throw RuleError(path + ": cannot be opened: " + std::strerror(errno));
    return in;
}

bool Lines::read()
{
    ++number_;
    line_.clear();
    for (int c; (c = in_.get()) != std::char_traits<char>::eof();) {
        if (c == '\n')
            return true;
        if (line_.size() == MostLineLength)
            throw RuleError(where() + ": longer than " + std::to_string(MostLineLength) + " characters");
        line_ += static_cast<char>(c);
    }
    return !line_.empty();
}

bool Lines::next(std::string_view &line)
{
    while (read()) {
        line = std::string_view(line_).substr(0, line_.find('#'));
        if (auto rest = line; !NextWord(rest).empty())
            return true;
    }
    if (in_.bad())
        throw RuleError(file_ + ": cannot be read");
    return false;
}

void Field::refuse(const std::string &what) const
{
    throw RuleError(where + ": " + std::string(name) + "=" + Shown(value) + ": " + what);
}

Field::AddressRange Field::addresses() const
{
    constexpr const char *Allowed = "any, ADDRESS, ADDRESS/LENGTH and FIRST-LAST";
    if (const auto dash = value.find('-'); dash != value.npos) {
        const auto first = OneAddress(*this, value.substr(0, dash), Allowed);
        const auto last = OneAddress(*this, value.substr(dash + 1), Allowed);
        if (first.family != last.family)
            refuse("the ends of a range are both IPv4 or both IPv6");
        if (last.range.last < first.range.first)
            refuse("the range ends before it begins");
        return {first.family, {first.range.first, last.range.last}};
    }
    return prefix(Allowed);
}

Field::Prefix Field::prefix(const char *const allowed) const
{
    const auto slash = value.find('/');
    const auto all = OneAddress(*this, value.substr(0, slash), allowed);
    const unsigned bits = all.family == Family::V4 ? 32 : 128;
    const auto length = slash == value.npos ? bits : WholeNumber(value.substr(slash + 1), bits);
    if (!length)
        refuse("the length of a prefix is 0 to " + std::to_string(bits));
    const auto mask = LastBits(bits - *length);
    const auto &first = all.range.first;
    if ((first.high & mask.high) || (first.low & mask.low))
        refuse("the bits after the first " + std::to_string(*length) + " must be 0");
    return {{all.family, {first, {first.high | mask.high, first.low | mask.low}}}, *length};
}

Range<uint32_t> Field::range(const uint32_t most, const char *const noun) const
{
    const auto dash = value.find('-');
    const auto first = WholeNumber(value.substr(0, dash), most);
    const auto last = dash == value.npos ? first : WholeNumber(value.substr(dash + 1), most);
    if (!first || !last)
        refuse("not a " + std::string(noun) + "; allowed are any, 0 to " + std::to_string(most) + " and FIRST-LAST");
    if (*last < *first)
        refuse("the range ends before it begins");
    return {*first, *last};
}

int64_t Field::rate(const int64_t least, const int64_t most, const char *const allowed) const
{
    constexpr Unit Rates[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
    return Quantity(*this, Rates, "2Mbit", least, most, allowed);
}

int64_t Field::size(const int64_t least, const int64_t most, const char *const allowed) const
{
    constexpr Unit Sizes[] = {{"B", 1}, {"KB", 1024}, {"MB", 1048576}};
    return Quantity(*this, Sizes, "15KB", least, most, allowed);
}

int64_t Field::time(const int64_t least, const int64_t most, const char *const allowed) const
{
    constexpr Unit Times[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    return Quantity(*this, Times, "100ms", least, most, allowed);
}

int64_t Field::number(const int64_t least, const int64_t most) const
{
    int64_t n = 0;
    const auto end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, n);
    if (read.ec != std::errc() || read.ptr != end || n < least || n > most)
        refuse("allowed are " + std::to_string(least) + " to " + std::to_string(most));
    return n;
}

double Field::decimal(const std::string_view unit, const double least, const double most) const
{
    double n = 0;
    const auto end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, n, std::chars_format::fixed);
    const std::string_view behind(read.ptr, static_cast<size_t>(end - read.ptr));
    if (read.ec != std::errc() || behind != unit || !(n >= least && n <= most)) // refuses NaN, too
        refuse("allowed are " + Number(least) + std::string(unit) + " to " + Number(most) + std::string(unit));
    return n;
}

bool Field::onOff() const
{
    if (value != "on" && value != "off")
        refuse("allowed are on and off");
    return value == "on";
}

Fields::Fields(std::string where, std::vector<const char *> names, std::string_view line):
    where_(std::move(where)), names_(std::move(names))
{
    for (std::string_view word; !(word = NextWord(line)).empty();)
        add(word);
}

void Fields::add(const std::string_view word)
{
    const auto equals = word.find('=');
    if (equals == word.npos || equals + 1 == word.size())
        refuse("\"" + Shown(word) + "\": expected FIELD=VALUE; the fields are " + Listed(names_));
    const auto name = word.substr(0, equals);
    const auto known = std::find(names_.begin(), names_.end(), name);
    if (known == names_.end())
        refuse("field \"" + Shown(name) + "\": unknown; the fields are " + Listed(names_));
    if (find(*known))
        refuse("field \"" + std::string(*known) + "\": given twice");
    given_.emplace_back(*known, word.substr(equals + 1));
}

std::optional<Field> Fields::find(const char *const name) const
{
    for (const auto &[known, value] : given_) {
        if (std::string_view(known) == name)
            return Field{known, value, where_};
    }
    return {};
}

std::optional<Field> Fields::limiting(const char *const name) const
{
    const auto field = find(name);
    return field && field->value != "any" ? field : std::nullopt;
}

Field Fields::need(const char *const name, const std::string &why) const
{
    if (const auto field = find(name))
        return *field;
    refuse(std::string(name) + " is missing" + why);
}

} // namespace msfrs
