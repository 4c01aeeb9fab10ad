// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How RequestScheduler takes a new configuration over without losing a request.
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

/// Moves all that there is into a new engine: used when the plugins change or a class goes.
void RequestScheduler::Impl::rebuild(const RequestConfig &c, std::unique_ptr<Engine> next, const msfrs_time now)
{
    std::map<std::string, std::pair<double, std::shared_ptr<ClassStats>>> old;
    for (const auto &slot : slots)
        old[slot.cls->name] = {*slot.cls->service, slot.stats};
    std::vector<Slot> fresh;
    std::vector<double> services;
    for (const auto &cls : c.classes) {
        const auto known = old.find(cls.name);
        services.push_back(known == old.end() ? *ledger.virtualTime() : known->second.first);
        fresh.push_back({next->addClass(cls.name, cls.weight),
                         known == old.end() ? std::make_shared<ClassStats>(cls.name) : known->second.second});
    }
    const double virtualTime = *ledger.virtualTime();
    const auto joinClass = [&](Request &r, const char *const name) {
        size_t to = c.defaultClass;
        for (size_t n = 0; n < c.classes.size(); ++n) {
            if (c.classes[n].name == name)
                to = n;
        }
        count(r, -1);
        r.stats = fresh[to].stats;
        count(r, 1);
        return to;
    };
    const auto move = [&](Request &r) {
        const auto &flow = static_cast<const NamedFlow &>(*r.item->flow);
        const auto to = joinClass(r, flow.cls->name);
        const bool inService = r.state == Request::State::Served;
        const auto past = r.item;
        // What was charged for it already stays charged: counters of classes are taken over below.
        const Estimate charged = {inService ? engine->unused(*past) : past->est[0]};
        r.item = next->adopt(next->flow(*fresh[to].cls, flow.name()), charged.data(), &r, now, past->attained,
                             inService, r.remaining);
        if (inService)
            engine->done(*past, now);
        else
            engine->remove(*past, now, MSFRS_GONE);
    };
    std::vector<Request *> all;
    for (const auto list : {&served, &waiting, &paused})
        all.insert(all.end(), list->begin(), list->end());
    std::sort(all.begin(), all.end(), [](const Request *a, const Request *b) { return a->item->seq < b->item->seq; });
    for (const auto r : all)
        move(*r);
    for (const auto r : resting)
        r->cls = fresh[joinClass(*r, r->cls->name)].cls;
    // To the new plugin every move was an idle class that woke: what that made of the counters is undone, and
    // setWeight() has it look at them again.
    *ledger.virtualTime() = virtualTime;
    for (size_t n = 0; n < fresh.size(); ++n) {
        *fresh[n].cls->service = services[n];
        next->setWeight(*fresh[n].cls, fresh[n].cls->weight);
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
    // Everything that may throw comes before anything is changed.
    auto engine = keepEngine ? nullptr : self.makeEngine(next);
    const bool sameMeter = self.config.interface == next.interface && self.config.overhead == next.overhead &&
                           self.config.packetOverhead == next.packetOverhead;
    auto meter = sameMeter ? nullptr : self.makeMeter(next);

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
    // What is measured counts otherwise from here on: what was so far is closed first.
    const bool anew = meter || self.config.bounds.min != next.bounds.min;
    if (anew)
        self.rate.update(now, self.carried(), self.rated());
    if (meter) {
        self.meter = std::move(meter); // counts from zero
        self.sums.totalBefore = self.sums.ownBefore = 0;
    }
    self.config = next;
    self.findBetween(next.bounds, now);
    if (anew)
        self.rate.rebase(now, self.carried());
    self.rate.configure(WindowOf(next));
    self.doubted = false;
    self.pump(now);
}

} // namespace msfrs
