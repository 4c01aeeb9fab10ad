// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/schedule.h"

#include <cstring>

namespace msfrs::edge {

namespace {

bool Fits(const ClassifyLine &rule, const Traits &t)
{
    const bool kind = rule.kind == ClassifyLine::Kind::Any || (rule.kind == ClassifyLine::Kind::Ack ? t.ack : t.data);
    return kind && rule.length.contains(t.length) && (!rule.dscp || *rule.dscp == t.dscp) && rule.match.contains(t.key);
}

} // namespace

Schedule::Schedule(std::shared_ptr<const Config> config, EngineHost host, const uint32_t resources):
    config_(std::move(config))
{
    engine_ = std::make_unique<Engine>(config_->scheduler, config_->aqm, Engine::Cost::Exact, resources,
                                       config_->limit, std::move(host));
    if (!config_->aqm.plugin || (engine_->aqm()->flags & MSFRS_NO_LIMIT))
        engine_->pushOut(config_->link.mtu + config_->link.overhead);
    for (const auto &c : config_->classes) {
        const uint32_t flags = c.interior * uint32_t{MSFRS_INTERIOR} | c.aggregate * uint32_t{MSFRS_AGGREGATE};
        const auto parent = c.parent.empty() ? nullptr : classes_[config_->classNamed(c.parent)];
        classes_.push_back(engine_->addClass(c.name, c.weight, flags, parent));
        if (!config_->segment.value.empty())
            told_.emplace(ledger::ClassKey(c.name), classes_.size() - 1);
    }
    if (config_->rules) {
        for (size_t n = 0; n < perHop_.size(); ++n)
            perHop_[n] = config_->classNamed(PerHopClasses[n].name);
    }
}

void Schedule::Check(const Config &config, const std::string &file)
{
    EngineHost host{[](int, const std::string &) {}, [] { return uint64_t{0}; }};
    try {
        // The copy shares the plugins, and must not own the caller's objects.
        Schedule(std::make_shared<const Config>(config), host);
    } catch (const ConfigError &error) {
        // A plugin's error begins with its name.
        const std::string why = error.what();
        const auto from = [&](const Engine::Part &part) {
            return part.plugin && why.rfind(std::string(part.plugin->ops().name) + ":", 0) == 0;
        };
        const auto &where = from(config.aqm) ? config.aqm.where
            : from(config.scheduler)         ? config.scheduler.where
                                             : file;
        throw RuleError(where + ": " + why);
    }
}

size_t Schedule::classOf(const Traits &t) const
{
    if (!t.readable)
        return config_->defaultClass;
    if (t.owner.user != 0) {
        const auto told = told_.find(t.owner.cls);
        return told == told_.end() ? config_->defaultClass : told->second;
    }
    for (const auto &rule : config_->classify) {
        if (Fits(rule, t))
            return rule.cls;
    }
    return config_->rules ? perHop_[static_cast<size_t>(t.perHop)] : config_->defaultClass;
}

NamedFlow &Schedule::flowOf(const Traits &t, const size_t cls)
{
    constexpr const char *Others = "";
    auto &c = *classes_[cls];
    if (!t.readable)
        return engine_->flow(c, Others);
    const auto find = [&](const std::string_view name) -> NamedFlow & {
        if (const auto known = engine_->knownFlow(c, name))
            return *known;
        return engine_->flow(c, engine_->flows() < MostFlows ? name : Others);
    };
    if (t.owner.user == 0)
        return find(config_->flow.nameOf(t.origin).view());
    char key[sizeof(t.owner.user)]; // no name of an address or a connection has this length
    std::memcpy(key, &t.owner.user, sizeof(key));
    return find({key, sizeof(key)});
}

uint64_t Schedule::userOf(const NamedFlow &f)
{
    uint64_t user = 0;
    if (f.name().size() == sizeof(user))
        std::memcpy(&user, f.name().data(), sizeof(user));
    return user;
}

msfrs_item *Schedule::pick(const msfrs_time now, const Engine::Lost &lost, std::optional<msfrs_time> &retry)
{
    msfrs_time wake = 0;
    auto *const item = engine_->pick(now, MSFRS_PICK_ANY, wake, lost);
    const bool left = !item && engine_->totals().queued.items > 0; // the AQM has not dropped all of them
    retry = left ? std::optional(wake) : std::nullopt;
    return item;
}

void Schedule::pickAll(msfrs_time now, const Engine::Lost &lost,
                       const std::function<void(msfrs_item &, msfrs_time)> &taken)
{
    std::optional<msfrs_time> retry;
    while (engine_->totals().queued.items > 0) {
        if (auto *const item = pick(now, lost, retry))
            taken(*item, now);
        else
            now = retry.value_or(now);
    }
}

void Schedule::forget(const msfrs_time now)
{
    constexpr msfrs_time Second = 1'000'000'000; // ns; the scheduler remembers debts and counters for up to 300 s
    engine_->forgetIdleFlows(now - 10 * Second, now - 300 * Second);
}

} // namespace msfrs::edge
