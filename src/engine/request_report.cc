// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The reports of RequestScheduler.
#include "engine/request_state.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <unordered_map>

namespace msfrs {

std::vector<ClassReport> RequestScheduler::classes(const msfrs_time now) const
{
    const auto &self = *impl_;
    std::vector<ClassReport> all;
    // A request that is held now counts already, not only when it ends.
    std::unordered_map<const ClassStats *, WaitHistogram> held;
    for (const auto &slot : self.slots)
        held.emplace(slot.stats.get(), slot.stats->held);
    for (const auto list : {&self.waiting, &self.paused, &self.served, &self.early, &self.refused}) {
        for (const auto *const r : *list)
            r->tellHeld(held.at(r->stats.get()), now);
    }
    for (const auto &slot : self.slots) {
        const auto &s = *slot.stats;
        ClassReport r;
        static_cast<ClassCounts &>(r) = s;
        r.name = slot.cls->name;
        r.weight = self.config.classes[all.size()].weight; // the parties' shares may have changed that of slot.cls
        r.users = slot.cls->users;
        r.queued = slot.cls->backlog - s.paused - s.early;
        r.paused = s.paused;
        r.inFlight = slot.cls->in_service + s.early;
        r.resting = s.resting;
        r.asked = static_cast<uint32_t>(std::count_if(self.served.begin(), self.served.end(), [&](const Request *q) {
            return q->stats == slot.stats && q->owner->asked();
        }));
        r.service = *slot.cls->service;
        const auto &times = held.at(slot.stats.get());
        r.heldP50 = times.quantile(0.50, now);
        r.heldP95 = times.quantile(0.95, now);
        r.heldP99 = times.quantile(0.99, now);
        r.heldLately = times.lately(now).seconds;
        r.bytesLately = times.lately(now).bytes;
        r.heldCount = times.count();
        r.heldSum = times.sum();
        all.push_back(std::move(r));
    }
    return all;
}

std::vector<UserReport> RequestScheduler::topUsers(const size_t most) const
{
    std::vector<UserReport> all;
    std::unordered_map<const msfrs_flow *, uint32_t> early;
    for (const auto r : impl_->early)
        ++early[r->item->flow];
    for (const auto &slot : impl_->slots) {
        impl_->engine->eachFlow(*slot.cls, [&](const NamedFlow &f) {
            const auto found = early.find(&f);
            const auto both = found == early.end() ? 0 : found->second;
            all.push_back({f.name(), slot.cls->name, f.bytes(), f.backlog - both, f.in_service + both});
        });
    }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), end, all.end(),
                      [](const UserReport &a, const UserReport &b) { return a.bytes > b.bytes; });
    all.erase(end, all.end());
    return all;
}

const char *HeldText(const HeldReport::What what)
{
    constexpr const char *Texts[] = {"request", "exchange", "response"};
    return Texts[static_cast<size_t>(what)];
}

std::vector<HeldReport> RequestScheduler::held(const size_t most, const msfrs_time now) const
{
    const auto &self = *impl_;
    std::vector<HeldReport> all;
    const auto end = [&](const auto &list) { // both are in order of waitingSince
        return std::next(list.begin(), static_cast<std::ptrdiff_t>(std::min(most, list.size())));
    };
    const auto add = [&](const Request *const r) {
        const auto &flow = static_cast<const NamedFlow &>(*r->item->flow);
        const auto what = r->state == Request::State::Paused ? HeldReport::What::Response
                          : r->firstWait < 0                 ? HeldReport::What::Request
                                                             : HeldReport::What::Exchange;
        const auto waited = Seconds(std::max<msfrs_time>(now - r->waitingSince, 0));
        all.push_back({flow.name(), flow.cls->name, r->owner->host(), waited, what, r->owner->id()});
    };
    std::for_each(self.waiting.begin(), end(self.waiting), add);
    std::for_each(self.paused.begin(), end(self.paused), add);
    std::stable_sort(all.begin(), all.end(),
                     [](const HeldReport &a, const HeldReport &b) { return a.waited > b.waited; });
    all.resize(std::min(most, all.size()));
    return all;
}

/// Share of C from which the link counts as full, for the text alone: single intervals of a full link are below U+.
constexpr double FullLink = 0.95;

/// One sentence: why requests wait, or why none does.
std::string RequestScheduler::Impl::because() const
{
    const auto waits = waiters();
    const auto window = law->text();
    const auto full = window.c_str();
    char text[200];
    if (waits > 0) {
        std::snprintf(text, sizeof(text), "%llu wait and %s (%s)", static_cast<unsigned long long>(waits),
                      !law->open() ? "the window is full"
                      : blocked   ? "another worker goes first"
                                  : "the arbiter holds them back",
                      full);
    } else if (outstanding() == 0 && !resting.empty()) {
        std::snprintf(text, sizeof(text), "no request needs a slot, %zu are open and idle (%s)", resting.size(), full);
    } else if (use.utilisation() >= FullLink && activeUsers() > 1) {
        std::snprintf(text, sizeof(text), "weights not enforced yet, because every request has a slot while the "
                      "link is full (%s)", full);
    } else {
        std::snprintf(text, sizeof(text), "nobody waits (%s)", full);
    }
    return text;
}

WindowReport RequestScheduler::window() const
{
    const auto &self = *impl_;
    WindowReport r;
    r.outstanding = self.outstanding();
    r.here = static_cast<uint32_t>(self.inService());
    r.follows = self.ledger->follow().has_value();
    r.limit = self.law->limit();
    r.utilisation = self.use.utilisation();
    r.own = self.own;
    r.holding = self.waiters() > 0;
    r.because = self.because();
    const auto now = static_cast<msfrs_time>(self.history.empty() ? 0 : self.history.back().at * 1e9);
    const auto seen = self.pathSeen(now);
    if (seen.enough())
        r.queue = Seconds(seen.queue);
    r.base = Seconds(seen.base);
    r.queueTarget = self.law->queueTarget();
    r.metered = self.meter->metered();
    r.usedWhileFull = self.use.usedWhileFull();
    r.full = Seconds(self.use.fullTime());
    r.carriedWhileFull = self.use.carriedWhileFull();
    if (self.capacity)
        r.capacity = self.capacity->report();
    // U of another rate or interface says nothing about the link as it is configured now.
    std::copy_if(self.history.begin(), self.history.end(), std::back_inserter(r.history),
                 [&](const WindowReport::Sample &sample) { return sample.at > self.configuredAt; });
    return r;
}

RequestScheduler::Trace RequestScheduler::trace(const Request &r, const msfrs_time now) const
{
    Trace t;
    t.className = r.stats->name;
    t.firstWait = r.firstWait;
    t.totalWait = r.held(now);
    const bool again = r.state == Request::State::Queued && r.firstWait >= 0;
    t.exchangeWait = r.exchangeWait + (again ? std::max<msfrs_time>(now - r.waitingSince, 0) : 0);
    t.exchanges = r.exchanges;
    t.quanta = r.quanta;
    t.w = r.w;
    t.wplus = r.wplus;
    t.bytes = r.bytes;
    return t;
}

} // namespace msfrs
