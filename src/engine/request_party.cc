// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How RequestScheduler is a party of its ledger.
#include "engine/request_party.h"

#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

namespace {

uint32_t Items(const NamedFlow &f) { return f.backlog + f.in_service; }

} // namespace

void FollowedUsers::enter(Ledger &ledger, NamedFlow &f)
{
    const auto user = ledger.enter(f.cls->name, f.name(), f.cls->weight * f.weight, f.bytes(), Items(f));
    if (user == Ledger::NoUser)
        return;
    entries_.push_back({&f, user});
    f.party = static_cast<uint32_t>(entries_.size());
}

void FollowedUsers::exchange(Ledger &ledger, Engine &engine, const msfrs_time now)
{
    for (size_t n = 0; n < entries_.size();) {
        const auto [flow, user] = entries_[n];
        const auto items = Items(*flow);
        const auto elsewhere = ledger.exchange(user, flow->bytes(), flow->fresh, items);
        if (elsewhere > 0 && items > 0)
            engine.chargeElsewhere(*flow, elsewhere, now);
        if (items > 0 || now - flow->idleSince < Ledger::Every) {
            ++n;
            continue;
        }
        ledger.leave(user);
        flow->party = 0;
        entries_[n] = entries_.back();
        entries_.pop_back();
        if (n < entries_.size())
            entries_[n].flow->party = static_cast<uint32_t>(n + 1);
    }
}

void FollowedUsers::clear(Ledger &ledger)
{
    for (const auto &entry : entries_) {
        ledger.leave(entry.user);
        entry.flow->party = 0;
    }
    entries_.clear();
}

void RequestScheduler::Impl::look(const msfrs_time now)
{
    others = &ledger->look(now);
    rate.elsewhere(others->places);
}

void RequestScheduler::Impl::tell(const msfrs_time now)
{
    const auto queued = engine->totals().queued.items;
    const auto quantum = config.quantum > 0 ? config.quantum : Undisturbed;
    ledger->say({rate.window().outstanding, blocked ? queued : 0, waiting.size(), chargedBytes, quantum}, now);
}

void RequestScheduler::Impl::tellClasses()
{
    for (uint32_t n = 0; n < slots.size(); ++n)
        ledger->served(n, slots[n].cls->name, slots[n].stats->bytes + slots[n].stats->excess);
}

/// All who have work, after flows have moved or weights have changed.
void RequestScheduler::Impl::touchAll()
{
    for (const auto list : {&waiting, &paused, &served}) {
        for (const auto r : *list)
            touch(*r->item->flow);
    }
}

void RequestScheduler::Impl::settle(const msfrs_time now)
{
    if (!host.ledger || (now < nextSettle && now >= nextSettle - Ledger::Every))
        return;
    nextSettle = now + Ledger::Every;
    users.exchange(*ledger, *engine, now);
    tellClasses();
    const double received = meter->total();
    ledger->measured({rate.window().limit, config.rate, rate.utilisation()},
                     {received, meter->own(), meter->metered(), {pathHere(now), packets, outOfOrder}});
    if (ledger->settle(now)) {
        followWindow(now);
        return;
    }
    host.log(0, "this worker schedules alone from here on");
    users.clear(*ledger);
    host.ledger = nullptr;
    ledger = std::make_shared<AloneLedger>();
    look(now);
    followWindow(now);
}

void RequestScheduler::Impl::followWindow(const msfrs_time now)
{
    const auto led = ledger->follow();
    if (capacity && led && led->rate > 0)
        capacity->follow(led->rate, now);
    else if (capacity)
        capacity->lead();
    if (capacity)
        adoptRate();
    if (led)
        rate.follow(led->limit, now);
    else
        rate.lead();
}

} // namespace msfrs
