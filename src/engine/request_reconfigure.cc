// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How RequestScheduler adopts a new configuration without losing a request, and moves requests to other classes.
#include "engine/migrate.h"
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

bool RequestScheduler::Impl::SamePlugins(const RequestConfig &a, const RequestConfig &b)
{
    const auto same = [](const PluginChoice &x, const PluginChoice &y) {
        return x.name == y.name && PrintSettings(x.settings) == PrintSettings(y.settings);
    };
    return same(a.arbiter, b.arbiter) && same(a.admission, b.admission) && a.pluginDir == b.pluginDir;
}

/// The slots of a configuration's classes in an engine: this one, in which those of the same names stay, or a new one.
std::vector<RequestScheduler::Impl::Slot> RequestScheduler::Impl::slotsOf(const RequestConfig &c, Engine &in) const
{
    std::vector<Slot> all;
    for (const auto &cls : c.classes) {
        const auto known =
            std::find_if(slots.begin(), slots.end(), [&](const Slot &slot) { return slot.stats->name == cls.name; });
        if (known == slots.end()) {
            all.push_back({in.addClass(cls.name, cls.weight), std::make_shared<ClassStats>(cls.name)});
        } else if (&in != engine.get()) {
            all.push_back({in.addClass(cls.name, cls.weight), known->stats});
        } else {
            if (known->cls->weight != cls.weight)
                in.setWeight(*known->cls, cls.weight);
            all.push_back(*known);
        }
    }
    return all;
}

void RequestScheduler::Impl::assign(Request &r, const Slot &slot)
{
    count(r, -1);
    r.stats = slot.stats;
    count(r, 1);
    r.cls = slot.cls;
}

/// Moves everything into a new engine, when the plugins change or a class is removed.
/// \throws PluginError; all requests are then where they were
void RequestScheduler::Impl::rebuild(const RequestConfig &c, std::unique_ptr<Engine> next, const msfrs_time now)
{
    auto fresh = slotsOf(c, *next);
    const auto slotOf = [&](const std::string &name) -> const Slot & {
        const auto found =
            std::find_if(fresh.begin(), fresh.end(), [&](const Slot &slot) { return slot.stats->name == name; });
        return found == fresh.end() ? fresh[c.defaultClass] : *found;
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
        for (const auto r : *list)
            assign(*r, slotOf(r->stats->name));
    }
    engine = std::move(next);
    slots = std::move(fresh);
}

void RequestScheduler::reclass(Request &r, const uint32_t cls, const msfrs_time now)
{
    auto &self = *impl_;
    const auto &slot = self.slots.at(cls);
    if (r.stats == slot.stats)
        return;
    if (r.item) {
        auto &flow = self.engine->flow(*slot.cls, static_cast<const NamedFlow &>(*r.item->flow).name());
        self.touch(flow); // another account for the ledger
        r.item = self.engine->move(*r.item, flow, now);
    }
    if (r.state != Request::State::Resting)
        r.countHeld(now);
    Impl::assign(r, slot);
    self.pump(now);
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
    const bool sameMeter = self.config.interface == next.interface && self.config.overhead == next.overhead &&
                           self.config.packetOverhead == next.packetOverhead;
    auto meter = sameMeter ? nullptr : self.makeMeter(next);
    auto engine = keepEngine ? nullptr : self.makeEngine(next); // last: it changes what runs

    self.leaveUsers();
    if (engine)
        self.rebuild(next, std::move(engine), now);
    else
        self.slots = self.slotsOf(next, *self.engine);
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
