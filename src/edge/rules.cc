// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/rules.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string_view>
#include <unordered_map>

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

template <class Table, class Chosen>
std::string NamesOf(const Table &table, const Chosen &chosen)
{
    std::string all;
    for (const auto &row : table) {
        if (chosen(row))
            all += (all.empty() ? "" : ", ") + std::string(row.name);
    }
    return all;
}

/// As much of a value as a message can show.
std::string Shown(const std::string_view text)
{
    constexpr size_t Most = 60;
    std::string shown(text.substr(0, Most));
    for (auto &c : shown) {
        if (c < ' ' || c > '~')
            c = '?';
    }
    return text.size() > Most ? shown + "..." : shown;
}

struct AddressRange {
    Family family;
    Range<Address> range;
};

class LineParser {
public:
    explicit LineParser(std::string where): where_(std::move(where)) {}

    Rule parse(std::string_view line)
    {
        Rule rule;
        rule.name = name(nextWord(line));
        for (std::string_view word; !(word = nextWord(line)).empty();)
            field(word);
        finish(rule);
        return rule;
    }

    [[noreturn]] void refuse(const std::string &what) const { throw RuleError(where_ + ": " + what); }

    static std::string_view nextWord(std::string_view &line)
    {
        constexpr const char *Blank = " \t\r";
        line.remove_prefix(std::min(line.find_first_not_of(Blank), line.size()));
        const auto word = line.substr(0, line.find_first_of(Blank));
        line.remove_prefix(word.size());
        return word;
    }

private:
    enum Field { From, To, Protocol, FromPort, ToPort, Rate, Depth, MarkAs, Fields };
    static constexpr const char *FieldNames[Fields] = {"from",    "to",   "protocol", "from-port",
                                                       "to-port", "rate", "depth",    "mark"};
    static constexpr const char *FieldList = "from, to, protocol, from-port, to-port, rate, depth and mark";

    /// The value under work is not allowed.
    [[noreturn]] void refuseValue(const std::string &what) const
    {
        refuse(std::string(FieldNames[now_]) + "=" + Shown(values_[now_]) + ": " + what);
    }

    std::string name(const std::string_view text) const
    {
        constexpr size_t Most = 32;
        const bool good = text.size() <= Most && std::all_of(text.begin(), text.end(), [](const char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                c == '_' || c == '.';
        });
        if (!good)
            refuse("name \"" + Shown(text) + "\": a rule begins with its name: letters, digits, '-', '_' and '.', at "
                   "most 32");
        return std::string(text);
    }

    void field(const std::string_view word)
    {
        const auto equals = word.find('=');
        if (equals == word.npos || equals + 1 == word.size())
            refuse("\"" + Shown(word) + "\": wanted is FIELD=VALUE; the fields are " + FieldList);
        const auto known = std::find(FieldNames, FieldNames + Fields, word.substr(0, equals));
        if (known == FieldNames + Fields)
            refuse("field \"" + Shown(word.substr(0, equals)) + "\": unknown; the fields are " + FieldList);
        auto &value = values_[known - FieldNames];
        if (!value.empty())
            refuse("field \"" + std::string(*known) + "\": given twice");
        value = word.substr(equals + 1);
    }

    bool has(const Field f)
    {
        now_ = f;
        return !values_[f].empty() && values_[f] != "any";
    }

    void finish(Rule &rule)
    {
        std::optional<AddressRange> from, to;
        if (has(From))
            from = addresses();
        if (has(To))
            to = addresses();
        if (from && to && from->family != to->family)
            refuseValue(std::string("IPv") + (to->family == Family::V4 ? "4" : "6") + ", and from=" +
                        Shown(values_[From]) + " is not: no packet is both");
        for (const auto *const side : {&from, &to}) {
            if (*side) {
                rule.match.family = (*side)->family;
                (side == &from ? rule.match.source : rule.match.destination) = (*side)->range;
            }
        }
        if (has(Protocol))
            rule.match.protocol = protocol();
        for (const auto f : {FromPort, ToPort}) {
            if (has(f))
                (f == FromPort ? rule.match.sourcePort : rule.match.destinationPort) = ports(rule.match.protocol);
        }
        police(rule);
        rule.mark = mark();
    }

    AddressRange addresses() const
    {
        const auto text = values_[now_];
        if (const auto dash = text.find('-'); dash != text.npos) {
            const auto first = address(text.substr(0, dash)), last = address(text.substr(dash + 1));
            if (first.family != last.family)
                refuseValue("the ends of a range are both IPv4 or both IPv6");
            if (last.range.last < first.range.first)
                refuseValue("the range ends before it begins");
            return {first.family, {first.range.first, last.range.last}};
        }
        const auto slash = text.find('/');
        auto all = address(text.substr(0, slash));
        if (slash == text.npos)
            return all;
        const unsigned bits = all.family == Family::V4 ? 32 : 128;
        const auto length = number(text.substr(slash + 1), bits);
        if (!length)
            refuseValue("the length of a prefix is 0 to " + std::to_string(bits));
        const unsigned host = bits - *length;
        const Address mask{host > 64 ? UINT64_MAX >> (128 - host) : 0,
                           host == 0 ? 0 : host >= 64 ? UINT64_MAX : UINT64_MAX >> (64 - host)};
        auto &range = all.range;
        if ((range.first.high & mask.high) || (range.first.low & mask.low))
            refuseValue("has bits set beyond its length of " + std::to_string(*length));
        range.last = {range.first.high | mask.high, range.first.low | mask.low};
        return all;
    }

    AddressRange address(const std::string_view text) const
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
            refuseValue("not an address; allowed are any, ADDRESS, ADDRESS/LENGTH and FIRST-LAST of IPv4 or IPv6");
        for (int i = 0; i < n; ++i) {
            a.high = a.high << 8 | a.low >> 56;
            a.low = a.low << 8 | bytes[i];
        }
        return {family, {a, a}};
    }

    /// Digits alone, up to `most`.
    static std::optional<uint32_t> number(const std::string_view text, const uint32_t most)
    {
        uint32_t n = 0;
        const auto end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, n);
        if (read.ec != std::errc() || read.ptr != end || n > most)
            return {};
        return n;
    }

    Range<uint32_t> protocol() const
    {
        const auto text = values_[now_];
        for (const auto &p : ProtocolNames) {
            if (text == p.name)
                return {p.number, p.number};
        }
        const auto n = number(text, 255);
        if (!n)
            refuseValue("not a protocol; allowed are any, 0 to 255, " +
                        NamesOf(ProtocolNames, [](const ProtocolName &) { return true; }));
        return {*n, *n};
    }

    Range<uint32_t> ports(const Range<uint32_t> &protocol) const
    {
        const auto text = values_[now_];
        const auto dash = text.find('-');
        const auto first = number(text.substr(0, dash), 65535);
        const auto last = dash == text.npos ? first : number(text.substr(dash + 1), 65535);
        if (!first || !last)
            refuseValue("not a port; allowed are any, 0 to 65535 and FIRST-LAST");
        if (*last < *first)
            refuseValue("the range ends before it begins");
        const bool any = protocol.first != protocol.last;
        if (!any && std::none_of(std::begin(ProtocolNames), std::end(ProtocolNames), [&](const ProtocolName &p) {
                return p.ports && p.number == protocol.first;
            }))
            refuseValue("protocol=" + Shown(values_[Protocol]) + " has no ports; these have: " +
                        NamesOf(ProtocolNames, [](const ProtocolName &p) { return p.ports; }));
        return {*first, *last};
    }

    struct Unit {
        const char *name;
        double scale;
    };

    /// A number with a unit, as a whole number.
    template <size_t N>
    int64_t quantity(const Unit (&units)[N], const char *const example, const int64_t least, const int64_t most,
                     const char *const allowed) const
    {
        const auto text = values_[now_];
        double value = 0;
        const auto end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, value, std::chars_format::fixed);
        const std::string_view unit(read.ptr, static_cast<size_t>(end - read.ptr));
        const auto known = std::find_if(units, units + N, [&](const Unit &u) { return unit == u.name; });
        if (read.ec != std::errc() || known == units + N)
            refuseValue("a number with a unit is wanted: " +
                        NamesOf(units, [](const Unit &) { return true; }) + " (for example " + example + ")");
        const double whole = std::round(value * known->scale);
        if (!(whole >= static_cast<double>(least) && whole <= static_cast<double>(most))) // refuses NaN, too
            refuseValue("allowed are " + std::string(allowed));
        return static_cast<int64_t>(whole);
    }

    void police(Rule &rule)
    {
        constexpr Unit Rates[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
        constexpr Unit Sizes[] = {{"B", 1}, {"KB", 1024}, {"MB", 1048576}};
        if (values_[Rate].empty() != values_[Depth].empty())
            refuse(std::string(FieldNames[values_[Rate].empty() ? Rate : Depth]) +
                   " is missing: a policer has both rate and depth");
        if (values_[Rate].empty())
            return;
        static_assert(TokenRate::MaxRate == 1'000'000'000'000 && TokenRate::MinDepth == 64 &&
                      TokenRate::MaxDepth == 1'000'000'000, "the messages say so");
        now_ = Rate;
        const auto rate = quantity(Rates, "2Mbit", 1, TokenRate::MaxRate, "1bit to 1000Gbit");
        now_ = Depth;
        const auto depth = quantity(Sizes, "15KB", TokenRate::MinDepth, TokenRate::MaxDepth, "64B to 1000000000B");
        rule.police = TokenRate{rate, depth};
    }

    CodePoint mark()
    {
        now_ = MarkAs;
        const auto names = [] { return NamesOf(CodePoints, [](const CodePoint &) { return true; }); };
        if (values_[MarkAs].empty())
            refuse("mark is missing; allowed are " + names());
        for (const auto &c : CodePoints) {
            if (values_[MarkAs] == c.name)
                return c;
        }
        refuseValue("not a code point; allowed are " + names());
    }

    std::string where_;
    std::string_view values_[Fields];
    Field now_ = From;
};

/// \returns false at the end of the file
bool NextLine(std::istream &in, std::string &line, const LineParser &parser)
{
    line.clear();
    for (int c; (c = in.get()) != std::char_traits<char>::eof();) {
        if (c == '\n')
            return true;
        if (line.size() == MostLineLength)
            parser.refuse("longer than " + std::to_string(MostLineLength) + " characters");
        line += static_cast<char>(c);
    }
    return !line.empty();
}

} // namespace

std::vector<Rule> ReadRules(std::istream &in, const std::string &file)
{
    std::vector<Rule> rules;
    std::unordered_map<std::string, size_t> lines; // where a name was first
    std::string line;
    for (size_t number = 1;; ++number) {
        LineParser parser(file + ":" + std::to_string(number));
        if (!NextLine(in, line, parser))
            break;
        std::string_view text = std::string_view(line).substr(0, line.find('#'));
        if (auto rest = text; LineParser::nextWord(rest).empty())
            continue;
        if (rules.size() == MostRules)
            parser.refuse("more than " + std::to_string(MostRules) + " rules");
        rules.push_back(parser.parse(text));
        const auto [first, fresh] = lines.emplace(rules.back().name, number);
        if (!fresh)
            parser.refuse("name \"" + rules.back().name + "\": line " + std::to_string(first->second) +
                          " has a rule of that name");
    }
    if (in.bad())
        throw RuleError(file + ": cannot be read");
    return rules;
}

std::vector<Rule> ReadRules(const std::string &path)
{
    std::ifstream in(path);
    if (!in)
        throw RuleError(path + ": cannot be opened: " + std::strerror(errno));
    return ReadRules(in, path);
}

} // namespace msfrs::edge
