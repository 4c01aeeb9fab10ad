// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/fields.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cmath>
#include <istream>

namespace msfrs::edge {

namespace {

struct ProtocolName {
    const char *name;
    uint32_t number;
    bool ports;
};
// Not from the system's table: a rule file must mean the same everywhere.
constexpr ProtocolName ProtocolNames[] = {
    {"icmp", 1, false}, {"igmp", 2, false}, {"tcp", 6, true}, {"udp", 17, true}, {"dccp", 33, true},
    {"gre", 47, false}, {"esp", 50, false}, {"ah", 51, false}, {"icmpv6", 58, false}, {"ospf", 89, false},
    {"sctp", 132, true}, {"udplite", 136, true},
};

std::string ProtocolsWith(const bool portsOnly)
{
    std::string all;
    for (const auto &p : ProtocolNames) {
        if (p.ports || !portsOnly)
            all += (all.empty() ? "" : ", ") + std::string(p.name);
    }
    return all;
}

struct Unit {
    const char *name;
    double scale;
};

/// A number with a unit, as a whole number.
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
        f.refuse("a number with a unit is wanted: " + names + " (for example " + example + ")");
    }
    const double whole = std::round(value * known->scale);
    if (!(whole >= static_cast<double>(least) && whole <= static_cast<double>(most))) // refuses NaN, too
        f.refuse("allowed are " + std::string(allowed));
    return static_cast<int64_t>(whole);
}

Field::AddressRange OneAddress(const Field &f, const std::string_view text)
{
    uint8_t bytes[16];
    const std::string terminated(text);
    Address a;
    Family family = Family::V4;
    int n = 4;
    if (inet_pton(AF_INET, terminated.c_str(), bytes) != 1) {
        family = Family::V6;
        n = 16;
        // An embedded 0 would end the text early.
        if (inet_pton(AF_INET6, terminated.c_str(), bytes) != 1)
            n = 0;
    }
    if (n == 0 || text.find('\0') != text.npos)
        f.refuse("not an address; allowed are any, ADDRESS, ADDRESS/LENGTH and FIRST-LAST of IPv4 or IPv6");
    for (int i = 0; i < n; ++i) {
        a.high = a.high << 8 | a.low >> 56;
        a.low = a.low << 8 | bytes[i];
    }
    return {family, {a, a}};
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
    constexpr size_t Most = 60;
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
    if (const auto dash = value.find('-'); dash != value.npos) {
        const auto first = OneAddress(*this, value.substr(0, dash)), last = OneAddress(*this, value.substr(dash + 1));
        if (first.family != last.family)
            refuse("the ends of a range are both IPv4 or both IPv6");
        if (last.range.last < first.range.first)
            refuse("the range ends before it begins");
        return {first.family, {first.range.first, last.range.last}};
    }
    const auto slash = value.find('/');
    auto all = OneAddress(*this, value.substr(0, slash));
    if (slash == value.npos)
        return all;
    const unsigned bits = all.family == Family::V4 ? 32 : 128;
    const auto length = WholeNumber(value.substr(slash + 1), bits);
    if (!length)
        refuse("the length of a prefix is 0 to " + std::to_string(bits));
    const unsigned host = bits - *length;
    const Address mask{host > 64 ? UINT64_MAX >> (128 - host) : 0,
                       host == 0 ? 0 : host >= 64 ? UINT64_MAX : UINT64_MAX >> (64 - host)};
    auto &span = all.range;
    if ((span.first.high & mask.high) || (span.first.low & mask.low))
        refuse("has bits set beyond its length of " + std::to_string(*length));
    span.last = {span.first.high | mask.high, span.first.low | mask.low};
    return all;
}

Range<uint32_t> Field::protocol() const
{
    for (const auto &p : ProtocolNames) {
        if (value == p.name)
            return {p.number, p.number};
    }
    const auto n = WholeNumber(value, 255);
    if (!n)
        refuse("not a protocol; allowed are any, 0 to 255, " + ProtocolsWith(false));
    return {*n, *n};
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

int64_t Field::number(const int64_t least, const int64_t most) const
{
    int64_t n = 0;
    const auto end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, n);
    if (read.ec != std::errc() || read.ptr != end || n < least || n > most)
        refuse("allowed are " + std::to_string(least) + " to " + std::to_string(most));
    return n;
}

double Field::weight() const
{
    double w = 0;
    const auto end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, w, std::chars_format::fixed);
    if (read.ec != std::errc() || read.ptr != end || !(w >= 0.001 && w <= 1e6))
        refuse("allowed are 0.001 to 1000000");
    return w;
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
        refuse("\"" + Shown(word) + "\": wanted is FIELD=VALUE; the fields are " + Listed(names_));
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

Range<uint32_t> Fields::ports(const Field &f, const Range<uint32_t> &protocol) const
{
    const auto span = f.range(65535, "port");
    const bool any = protocol.first != protocol.last;
    if (!any && std::none_of(std::begin(ProtocolNames), std::end(ProtocolNames), [&](const ProtocolName &p) {
            return p.ports && p.number == protocol.first;
        }))
        f.refuse("protocol=" + Shown(find("protocol")->value) + " has no ports; these have: " + ProtocolsWith(true));
    return span;
}

Match Fields::match() const
{
    Match match;
    for (const char *const name : {"from", "to"}) {
        const auto f = limiting(name);
        if (!f)
            continue;
        const auto side = f->addresses();
        if (match.family && *match.family != side.family)
            f->refuse(std::string("IPv") + (side.family == Family::V4 ? "4" : "6") + ", and from=" +
                      Shown(find("from")->value) + " is not: no packet is both");
        match.family = side.family;
        (f->name == "from" ? match.source : match.destination) = side.range;
    }
    if (const auto f = limiting("protocol"))
        match.protocol = f->protocol();
    if (const auto f = limiting("from-port"))
        match.sourcePort = ports(*f, match.protocol);
    if (const auto f = limiting("to-port"))
        match.destinationPort = ports(*f, match.protocol);
    return match;
}

} // namespace msfrs::edge
