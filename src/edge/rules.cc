// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/rules.h"

#include <unordered_map>

namespace msfrs::edge {

namespace {

std::optional<TokenRate> PoliceOf(const Fields &fields)
{
    const auto rate = fields.find("rate"), depth = fields.find("depth");
    const std::string why = ": a policer has both rate and depth";
    if (!rate && !depth)
        return {};
    static_assert(TokenRate::MaxRate == 1'000'000'000'000 && TokenRate::MinDepth == 64 &&
                  TokenRate::MaxDepth == 1'000'000'000, "the messages say so");
    fields.need("rate", why);
    fields.need("depth", why);
    return TokenRate{rate->rate(1, TokenRate::MaxRate, "1bit to 1000Gbit"),
                     depth->size(TokenRate::MinDepth, TokenRate::MaxDepth, "64B to 1000000000B")};
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
        throw RuleError(where + ": name \"" + Shown(name) + "\": a rule begins with its name: letters, digits, '-', '_' "
                        "and '.', at most " + std::to_string(MostNameLength));
    const Fields fields(where, {"from", "to", "protocol", "from-port", "to-port", "rate", "depth", "mark"}, line);
    const auto mark = fields.need("mark", "; allowed are " + CodePointNames());
    return {std::string(name), MatchOf(fields), PoliceOf(fields), CodePointNamed(mark)};
}

/// Rules that match everything, or everything of a family: a later rule may never match.
class WideRules {
public:
    /// \throws RuleError if no packet can reach the rule of line `number`
    void add(const Rule &rule, const size_t number, const std::string &where)
    {
        for (const auto &[match, line] : seen_) {
            if (match.covers(rule.match))
                throw RuleError(where + ": rule " + rule.name + " never has a packet: that of line " +
                                std::to_string(line) + " matches all that it does, and the first counts");
        }
        Match of4, of6;
        of4.family = Family::V4;
        of4.source = of4.destination = {{}, {0, LastAddress4}};
        of6.family = Family::V6;
        if (rule.match.covers(of4) || rule.match.covers(of6))
            seen_.emplace_back(rule.match, number);
    }

private:
    std::vector<std::pair<Match, size_t>> seen_; // two at most
};

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
    WideRules wide;
    Lines lines(in, file);
    for (std::string_view line; lines.next(line);) {
        if (rules.size() == MostRules)
            throw RuleError(lines.where() + ": more than " + std::to_string(MostRules) + " rules");
        rules.push_back(ParseRule(line, lines.where()));
        const auto [first, fresh] = seen.emplace(rules.back().name, lines.number());
        if (!fresh)
            throw RuleError(lines.where() + ": name \"" + rules.back().name + "\": line " +
                            std::to_string(first->second) + " has a rule of that name");
        wide.add(rules.back(), lines.number(), lines.where());
    }
    return rules;
}

std::vector<Rule> ReadRules(const std::string &path)
{
    auto in = OpenFile(path);
    return ReadRules(in, path);
}

} // namespace msfrs::edge
