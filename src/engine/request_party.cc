// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// RequestScheduler as a party of its ledger.
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

namespace {

/// Part of a class's service that counts wherever it was, see chargeClasses(). With 1 the users of a class at different
/// parties drift apart; with 0.8 classes keep their weights less well.
constexpr double Global = 0.95;
constexpr const char *Elsewhere = "(elsewhere)"; ///< pseudo-user: the class's service elsewhere, less its users'
constexpr double AllOthers = 1e12; ///< its weight, 10^6 times the greatest configured: it never counts as a user
constexpr int64_t WholeResponse = 65536; ///< bytes of a slot without quanta; half or double: within noise
/// ns: a user idle for less may return, and what it had elsewhere counts. Less than the time until a flow is freed.
constexpr msfrs_time FollowFor = 10'000'000'000;

uint32_t Items(const NamedFlow &f) { return f.backlog + f.in_service; }

} // namespace

/// Follows a flow that was given work or charged, and was not followed so far.
void RequestScheduler::Impl::follow(NamedFlow &f)
{
    const auto user = ledger->enter(f.cls->name, f.name(), weight(*f.cls) * f.weight, f.bytes(), Items(f));
    if (user == Ledger::NoUser)
        return;
    followed.push_back({&f, user});
    f.party = static_cast<uint32_t>(followed.size());
}

/// Reports to the ledger what all were charged here, and charges them for their service elsewhere. Called at least
/// before Engine::forgetIdleFlows().
void RequestScheduler::Impl::exchangeUsers(const msfrs_time now)
{
    std::fill(chargedUsers.begin(), chargedUsers.end(), 0);
    for (size_t n = 0; n < followed.size();) {
        const auto [flow, user] = followed[n];
        const auto items = Items(*flow);
        const auto elsewhere = ledger->exchange(user, flow->bytes(), flow->fresh, items);
        if (elsewhere > 0) {
            engine->chargeElsewhere(*flow, elsewhere, now, ledger->busyElsewhere(user));
            chargedUsers.resize(std::max<size_t>(chargedUsers.size(), flow->cls->index + 1));
            chargedUsers[flow->cls->index] += static_cast<double>(elsewhere);
        }
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
    // A few that wait for a moment are no backlog: the small ones among them profit most from service out of turn.
    engine->waitElsewhere(static_cast<double>(others->waiting) > outstanding() ? others->waiting : 0);
    engine->share(others->workers);
}

void RequestScheduler::Impl::tell(const msfrs_time now)
{
    const auto quantum = config.quantum > 0 ? config.quantum : WholeResponse;
    ledger->say({law->part(), blocked ? waiters() : 0, waiting.size(), chargedBytes, quantum,
                 static_cast<int64_t>(inService()) * quantum}, now);
}

void RequestScheduler::Impl::tellClasses()
{
    for (uint32_t n = 0; n < slots.size(); ++n)
        ledger->served(n, slots[n].cls->name, slots[n].stats->bytes + slots[n].stats->excess);
}

/// Touches all flows that have work, after flows have moved or weights have changed.
void RequestScheduler::Impl::touchAll()
{
    for (const auto list : {&waiting, &paused, &served, &early}) {
        for (const auto r : *list)
            touch(*r->item->flow);
    }
}

double RequestScheduler::Impl::weight(const msfrs_class &cls) const
{
    const auto found = std::find_if(slots.begin(), slots.end(), [&](const Slot &slot) { return slot.cls == &cls; });
    return found == slots.end() ? cls.weight : config.classes[static_cast<size_t>(found - slots.begin())].weight;
}

/// Accounts for the service of classes at other parties of this gateway. A class's counter here comes to
///     SC_i += Global L / D_i for each L bytes at any of them, and (1 - Global) L / D_i,here for those here,
/// where D_i is the weight of its active users: each counts at every party for the part of its requests that is there.
/// The first term alone gives classes their weights, but lets users of a class at different parties drift apart. The
/// second alone does not correct what the split got wrong.
///
/// Other gateways do not count: msfrs-share corrects their shares by bytes served (FairShares). With the first term
/// over all gateways, a class ahead at one of them would be charged nearly its share by what it gets at another, and
/// would wait 1 / (1 - Global) times as long as its lead is worth.
void RequestScheduler::Impl::chargeClasses(const msfrs_time now)
{
    for (uint32_t n = 0; n < slots.size(); ++n) {
        auto &slot = slots[n];
        auto &cls = *slot.cls;
        const double configured = config.classes[n].weight;
        const auto had = ledger->elsewhere(n);
        const bool here = cls.users > 0 && had.here > 0;
        // Bytes per unit of SC_i.
        const double step = here ? 1 / ((1 - Global) / had.here + Global / had.demand) : configured;
        const double weight = here ? step / cls.users : configured;
        if (weight != cls.weight)
            engine->setWeight(cls, weight);
        slot.owed += had.demand > 0 ? Global * had.bytes * step / had.demand : 0;
        slot.owed -= cls.index < chargedUsers.size() ? chargedUsers[cls.index] : 0; // with its users
        const auto bytes = static_cast<int64_t>(slot.owed);
        slot.owed -= static_cast<double>(bytes);
        if (bytes != 0)
            engine->chargeElsewhere(engine->flow(cls, Elsewhere, AllOthers), bytes, now);
    }
}

void RequestScheduler::Impl::settle(const msfrs_time now)
{
    if (!host.ledger || (now < nextSettle && now >= nextSettle - Ledger::Every))
        return;
    nextSettle = now + Ledger::Every;
    exchangeUsers(now);
    tellClasses();
    const double received = ledger->measures() ? meter->total() : meter->latest();
    ledger->measured({law->whole(), config.rate, use.utilisation(), queueTarget.get(),
                      static_cast<uint32_t>(floor.phase())},
                     {received, meter->own(), meter->metered(), {pathHere(now), packets, outOfOrder}});
    if (!ledger->settle(now))
        return; // continue with what is known
    chargeClasses(now);
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
