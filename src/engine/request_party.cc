// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// RequestScheduler as a party of its ledger.
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

namespace {

constexpr int64_t WholeResponse = 65536; ///< bytes of a slot without quanta; half or double: within noise
/// ns: a user idle for less may return, and what it had elsewhere counts. Less than the time until a flow is freed.
constexpr msfrs_time FollowFor = 10'000'000'000;

uint32_t Items(const NamedFlow &f) { return f.backlog + f.in_service; }

} // namespace

/// Follows a flow that was given work or charged, and was not followed so far.
void RequestScheduler::Impl::follow(NamedFlow &f)
{
    const auto user = ledger->enter(f.cls->name, f.name(), f.cls->weight * f.weight, f.bytes(), Items(f));
    if (user == Ledger::NoUser)
        return;
    followed.push_back({&f, user});
    f.party = static_cast<uint32_t>(followed.size());
}

/// Reports to the ledger what all were charged here, and charges them for their service elsewhere. Called at least
/// before Engine::forgetIdleFlows().
void RequestScheduler::Impl::exchangeUsers(const msfrs_time now)
{
    for (size_t n = 0; n < followed.size();) {
        const auto [flow, user] = followed[n];
        const auto items = Items(*flow);
        const auto elsewhere = ledger->exchange(user, flow->bytes(), flow->fresh, items);
        if (elsewhere > 0)
            engine->chargeElsewhere(*flow, elsewhere, now);
        if (items > 0 || now - flow->idleSince < FollowFor) {
            ++n;
            continue;
        }
        ledger->leave(user);
        flow->party = 0;
        followed[n] = followed.back();
        followed.pop_back();
        if (n < followed.size())
            followed[n].flow->party = static_cast<uint32_t>(n + 1);
    }
}

void RequestScheduler::Impl::leaveUsers()
{
    for (const auto &[flow, user] : followed) {
        ledger->leave(user);
        flow->party = 0;
    }
    followed.clear();
}

uint32_t RequestScheduler::Impl::waitingElsewhere(const NamedFlow &f) const
{
    return f.party ? ledger->waitingElsewhere(followed[f.party - 1].user) : 0;
}

void RequestScheduler::Impl::look(const msfrs_time now)
{
    others = &ledger->look(now);
    engine->follow(others->virtualTime);
    // A few that wait for a moment are no backlog.
    engine->waitElsewhere(static_cast<double>(others->waiting) > outstanding() ? others->waiting : 0);
}

void RequestScheduler::Impl::tell(const msfrs_time now)
{
    ledger->say({law->part(), blocked ? waiters() : 0, waiting.size(), engine->least(), engine->virtualTime(),
                 config.quantum > 0 ? config.quantum : WholeResponse}, now);
}

/// Touches all flows that have work, after flows have moved or weights have changed.
void RequestScheduler::Impl::touchAll()
{
    for (const auto list : {&waiting, &paused, &served, &early}) {
        for (const auto r : *list)
            touch(*r->item->flow);
    }
}

void RequestScheduler::Impl::settle(const msfrs_time now)
{
    if (!host.ledger || (now < nextSettle && now >= nextSettle - Ledger::Every))
        return;
    nextSettle = now + Ledger::Every;
    exchangeUsers(now);
    const double received = ledger->measures() ? meter->total() : meter->latest();
    ledger->measured({law->whole(), config.rate, use.utilisation(), queueTarget.get(),
                      static_cast<uint32_t>(floor.phase())},
                     {received, meter->own(), meter->metered(), {pathHere(now), packets, outOfOrder}});
    if (!ledger->settle(now))
        return; // continue with what is known
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
    if (led && led->floor > 0)
        floor.follow(static_cast<WindowFloor::Phase>(led->floor));
    law->follow(led ? &*led : nullptr);
}

} // namespace msfrs
