// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How RequestScheduler adopts a new configuration without losing a request.
#include "engine/migrate.h"
#include "engine/request_state.h"

#include <algorithm>
#include <map>

namespace msfrs {

bool RequestScheduler::Impl::SamePlugins(const RequestConfig &a, const RequestConfig &b)
{
    const auto same = [](const PluginChoice &x, const PluginChoice &y) {
        return x.name == y.name && PrintSettings(x.settings) == PrintSettings(y.settings);
    };
    return same(a.arbiter, b.arbiter) && same(a.admission, b.admission) && a.pluginDir == b.pluginDir;
}

/// Moves everything into a new engine, when the plugins change or a class is removed.
/// \throws PluginError; all requests are then where they were
void RequestScheduler::Impl::rebuild(const RequestConfig &c, std::unique_ptr<Engine> next,
                                     const msfrs_time now)
{
    std::map<std::string, std::shared_ptr<ClassStats>> known;
    for (const auto &slot : slots)
        known[slot.stats->name] = slot.stats;
    std::map<std::string, size_t> places;
    std::vector<Slot> fresh;
    for (const auto &cls : c.classes) {
        places[cls.name] = fresh.size();
        const auto stats = known.count(cls.name) ? known[cls.name] : std::make_shared<ClassStats>(cls.name);
        fresh.push_back({next->addClass(cls.name, cls.weight), stats});
    }
    const auto slotOf = [&](const std::string &name) -> const Slot & {
        const auto found = places.find(name);
        return fresh[found == places.end() ? c.defaultClass : found->second];
    };
    MigrationPlan plan;
    for (const auto r : served)
        plan.served.push_back(r->item);
    plan.place = [&](const msfrs_item &i) {
        const auto &flow = static_cast<const NamedFlow &>(*i.flow);
        return MigrationPlan::Place{&next->flow(*slotOf(flow.cls->name).cls, flow.name()), {i.est[0]}};
    };
    plan.moved = [](msfrs_item &i) { static_cast<Request *>(i.host)->item = &i; };
    if (const auto news = BeginsAnew(engine->scheduler(), next->scheduler()); !news.empty())
        host.log(1, news);
    Migrate(*engine, *next, plan, now);
    for (const auto list : {&served, &early, &waiting, &paused, &resting}) {
        for (const auto r : *list) {
            const auto &slot = slotOf(r->stats->name);
            count(*r, -1);
            r->stats = slot.stats;
            count(*r, 1);
            r->cls = slot.cls;
        }
    }
    engine = std::move(next);
    slots = std::move(fresh);
}

void RequestScheduler::reconfigure(const RequestConfig &wanted, const msfrs_time now)
{
    auto &self = *impl_;
    const auto next = Prepared(wanted);
    bool keepEngine = Impl::SamePlugins(self.config, next);
    for (const auto &slot : self.slots) {
        const auto same = [&](const ClassConfig &c) { return c.name == slot.cls->name; };
        keepEngine = keepEngine && std::any_of(next.classes.begin(), next.classes.end(), same);
    }
    // Everything that may throw precedes the first change.
    auto engine = keepEngine ? nullptr : self.makeEngine(next);
    const bool sameMeter = self.config.interface == next.interface && self.config.overhead == next.overhead &&
                           self.config.packetOverhead == next.packetOverhead;
    auto meter = sameMeter ? nullptr : self.makeMeter(next);

    self.users.clear(*self.ledger);
    if (engine) {
        self.rebuild(next, std::move(engine), now);
    } else {
        std::vector<Impl::Slot> slots;
        for (const auto &cls : next.classes) {
            const auto known = std::find_if(self.slots.begin(), self.slots.end(),
                                            [&](const Impl::Slot &s) { return s.cls->name == cls.name; });
            if (known == self.slots.end()) {
                slots.push_back({self.engine->addClass(cls.name, cls.weight), std::make_shared<ClassStats>(cls.name)});
            } else {
                if (known->cls->weight != cls.weight)
                    self.engine->setWeight(*known->cls, cls.weight);
                slots.push_back(*known);
            }
        }
        self.slots = std::move(slots);
    }
    // Measurements count differently from here on, so the interval so far is closed first.
    const bool anew = meter || self.config.bounds.min != next.bounds.min;
    if (anew)
        self.endInterval(now, self.carried(), -1);
    if (meter) {
        self.meter = std::move(meter); // counts from zero
        self.sums.totalBefore = self.others->received;
        self.sums.ownBefore = self.others->own;
    }
    self.config = next;
    self.law = self.makeLaw();
    self.findBetween(next.bounds, now);
    if (anew)
        self.rebase(now);
    const auto params = WindowOf(next);
    if (params.queue != self.windowParams.queue)
        self.queueTarget = QueueTarget(params.queue);
    self.adoptWindow(params);
    self.touchAll();
    self.tellClasses();
    self.doubted = false;
    self.believedAt = now;
    self.configuredAt = Seconds(now);
    self.pump(now);
}

} // namespace msfrs
