// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/conditioner.h"

#include "edge/packet.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace msfrs::edge {

namespace {

std::vector<Match> MatchesOf(const std::vector<Rule> &rules)
{
    std::vector<Match> all;
    for (const auto &r : rules)
        all.push_back(r.match);
    return all;
}

} // namespace

RuleTable::RuleTable(std::vector<Rule> all): rules(std::move(all)), classifier(MatchesOf(rules))
{
}

Conditioner::Conditioner(std::shared_ptr<const RuleTable> table, const bool shared): shared_(shared)
{
    replace(std::move(table));
}

void Conditioner::replace(std::shared_ptr<const RuleTable> next)
{
    const auto held = lock();
    std::unordered_map<std::string, size_t> before;
    for (size_t r = 0; r < policers_.size(); ++r) {
        if (policers_[r])
            before.emplace(table_->rules[r].name, r);
    }
    std::vector<std::optional<Policer>> policers(next->rules.size());
    for (size_t r = 0; r < policers.size(); ++r) {
        const auto &rule = next->rules[r];
        if (!rule.police)
            continue;
        const auto same = before.find(rule.name);
        if (same != before.end() && *table_->rules[same->second].police == *rule.police)
            policers[r] = policers_[same->second];
        else
            policers[r].emplace(*rule.police);
    }
    policers_ = std::move(policers);
    table_ = std::move(next);
}

void Conditioner::process(const Packet *const packets, const size_t n, const int64_t now, Verdict *const verdicts)
{
    const auto held = lock();
    for (size_t begin = 0; begin < n; begin += Most) {
        const size_t end = std::min(n, begin + Most);
        size_t of[Most], readable = 0;
        uint32_t found[Most];
        for (size_t i = begin; i < end; ++i) {
            verdicts[i] = {true, PerHop::Be, NoMatch};
            if (const auto key = ReadKey(packets[i].data, packets[i].length)) {
                keys_[readable] = *key;
                of[readable++] = i;
            }
        }
        table_->classifier.find(keys_, readable, found);
        for (size_t k = 0; k < readable; ++k) {
            const auto &packet = packets[of[k]];
            auto &verdict = verdicts[of[k]];
            verdict.rule = found[k];
            const bool matched = found[k] != NoMatch;
            const auto &mark = matched ? table_->rules[found[k]].mark : BestEffort;
            const auto size = static_cast<int64_t>(std::max(packet.length, packet.whole));
            if (matched && policers_[found[k]])
                verdict.pass = policers_[found[k]]->admit(size, now);
            verdict.cls = mark.cls;
            if (verdict.pass)
                Mark(packet.data, mark.value);
        }
    }
}

} // namespace msfrs::edge
