// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/rules.h"

#include <unordered_map>

namespace msfrs::edge {

namespace {

std::optional<TokenRate> PoliceOf(const Fields &fields)
{
    const std::string why = ": a policer has both rate and depth";
    if (!fields.find("rate") && !fields.find("depth"))
        return {};
    static_assert(TokenRate::MaxRate == 1'000'000'000'000 && TokenRate::MinDepth == 64 &&
                  TokenRate::MaxDepth == 1'000'000'000, "the messages say so");
    const auto rate = fields.need("rate", why), depth = fields.need("depth", why);
    return TokenRate{rate.rate(1, TokenRate::MaxRate, "1bit to 1000Gbit"),
                     depth.size(TokenRate::MinDepth, TokenRate::MaxDepth, "64B to 1000000000B")};
}

std::string CodePointNames()
{
    std::string names;
    for (const auto &c : CodePoints)
        names += (names.empty() ? "" : ", ") + std::string(c.name);
    return names;
}

Rule ParseRule(std::string_view line, const std::string &where)
{
    const auto name = NextWord(line);
    if (!GoodName(name))
        throw RuleError(where + ": name \"" + Shown(name) + "\": a rule begins with its name: letters, digits, '-', "
                        "'_' and '.', at most " + std::to_string(MostNameLength));
    const Fields fields(where, {"from", "to", "protocol", "from-port", "to-port", "rate", "depth", "mark"}, line);
    const auto mark = fields.need("mark", "; allowed are " + CodePointNames());
    return {std::string(name), MatchOf(fields), PoliceOf(fields), CodePointNamed(mark)};
}

/// Whether a rule matches everything, or everything of a family: a later rule may never match.
bool IsWide(const Match &match)
{
    Match all4, all6;
    all4.family = Family::V4;
    all6.family = Family::V6;
    return match.covers(all4) || match.covers(all6);
}

} // namespace

CodePoint CodePointNamed(const Field &f)
{
    for (const auto &c : CodePoints) {
        if (f.value == c.name)
            return c;
    }
    f.refuse("not a code point; allowed are " + CodePointNames());
}

std::vector<Rule> ReadRules(std::istream &in, const std::string &file)
{
    std::vector<Rule> rules;
    std::unordered_map<std::string, size_t> seen; // line of a name's first occurrence
    std::vector<std::pair<Match, size_t>> wide; // such rules, and their lines: two at most
    Lines lines(in, file);
    for (std::string_view line; lines.next(line);) {
        if (rules.size() == MostRules)
            throw RuleError(lines.where() + ": more than " + std::to_string(MostRules) + " rules");
        const auto &rule = rules.emplace_back(ParseRule(line, lines.where()));
        const auto [first, fresh] = seen.emplace(rule.name, lines.number());
        if (!fresh)
            throw RuleError(lines.where() + ": name \"" + rule.name + "\": line " + std::to_string(first->second) +
                            " has a rule of that name");
        for (const auto &[match, number] : wide) {
            if (match.covers(rule.match))
                throw RuleError(lines.where() + ": rule " + rule.name + " never matches first: the rule in line " +
                                std::to_string(number) + " matches all of its packets");
        }
        if (IsWide(rule.match))
            wide.emplace_back(rule.match, lines.number());
    }
    return rules;
}

std::vector<Rule> ReadRules(const std::string &path)
{
    auto in = OpenFile(path);
    return ReadRules(in, path);
}

} // namespace msfrs::edge
