// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What RequestScheduler tells of itself.
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

std::vector<ClassReport> RequestScheduler::classes() const
{
    const auto &self = *impl_;
    std::vector<ClassReport> all;
    const auto now = static_cast<msfrs_time>(self.history.empty() ? 0 : self.history.back().at * 1e9);
    for (const auto &slot : self.slots) {
        const auto &s = *slot.stats;
        ClassReport r;
        r.name = slot.cls->name;
        r.weight = slot.cls->weight;
        r.users = slot.cls->users;
        r.queued = slot.cls->backlog - s.paused;
        r.paused = s.paused;
        r.inFlight = slot.cls->in_service;
        r.resting = s.resting;
        r.exchanges = s.exchanges;
        r.requests = s.requests;
        r.bytes = s.bytes;
        r.excess = s.excess;
        r.quanta = s.quanta;
        r.refusedPerUser = s.perUser;
        r.refusedTotal = s.total;
        r.refusedAdmission = s.admission;
        r.expired = s.expired;
        r.service = *slot.cls->service;
        r.waitP50 = s.waits.quantile(0.50, now);
        r.waitP95 = s.waits.quantile(0.95, now);
        r.waitP99 = s.waits.quantile(0.99, now);
        r.waitCount = s.waits.count();
        r.waitSum = s.waits.sum();
        all.push_back(std::move(r));
    }
    return all;
}

std::vector<UserReport> RequestScheduler::topUsers(const size_t most) const
{
    std::vector<UserReport> all;
    for (const auto &slot : impl_->slots) {
        impl_->engine->eachFlow(*slot.cls, [&](const NamedFlow &f) {
            all.push_back({f.name(), slot.cls->name, f.bytes(), f.backlog, f.in_service});
        });
    }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), end, all.end(),
                      [](const UserReport &a, const UserReport &b) { return a.bytes > b.bytes; });
    all.erase(end, all.end());
    return all;
}

WindowReport RequestScheduler::window() const
{
    const auto &self = *impl_;
    WindowReport r;
    r.outstanding = self.rate.window().outstanding;
    r.limit = self.rate.window().limit;
    r.utilisation = self.rate.utilisation();
    r.change = WindowChangeText(self.rate.lastChange());
    const auto now = static_cast<msfrs_time>(self.history.empty() ? 0 : self.history.back().at * 1e9);
    if (const auto queue = self.path.queue(now))
        r.queue = Seconds(*queue);
    r.base = Seconds(self.path.meanBase(now));
    r.metered = self.meter->metered();
    r.history.assign(self.history.begin(), self.history.end());
    return r;
}

RequestScheduler::Trace RequestScheduler::trace(const Request &r, const msfrs_time now) const
{
    Trace t;
    t.className = r.stats->name;
    t.firstWait = r.firstWait;
    const bool waits = r.state == Request::State::Queued || r.state == Request::State::Paused;
    t.totalWait = r.totalWait + (waits ? std::max<msfrs_time>(now - r.waitingSince, 0) : 0);
    t.exchangeWait = r.exchangeWait;
    t.exchanges = r.exchanges;
    t.quanta = r.quanta;
    t.w = r.w;
    t.wplus = r.wplus;
    t.bytes = r.bytes;
    return t;
}

} // namespace msfrs
