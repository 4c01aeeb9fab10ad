// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msf: the minimum-service order arbiter (MOA) of MSF-RS.
///
/// Paper: Tsao, Lai, Tsao, Lin, "On applying fair queuing discipline to schedule requests at access gateway for
/// downlink differential QoS", Computer Networks (2008), section 3.1, equation (1), figure 3.
///
///     SC_i += L / (w_i * UC_i)      for every piece of a response of L bytes, with the UC of that moment   (1)
///     next:  the class with the least SC; of equals the one with the greatest w_i * UC_i
///
/// Departures from the paper, each by a parameter that has the paper's rule as another value:
///   users=fair   each user of a class has its own counter. (users=fifo: one queue per class, in order of arrival.)
///   order=remaining   remaining bytes of responses decide within the limits of fairness. Within a user, items without
///                service go first, then the least remaining. Among users, the one whose next item has the least
///                remaining for its weight goes first, of those ahead of the least served user by no more than
///                max(lead_floor, lead exp(-t / lead_time)), where t is the time for which the least served user has
///                had items waiting. So a large response waits for small ones at first, and gets its share in the end.
///                A user without service for lead_time goes next, whatever remains. An item of unknown size counts as
///                many bytes as it has had, at least 4096. If it is the longest waiting of its user, for lead_time, it
///                goes before the user's others, in at most every second slot. (order=attained: the least served user,
///                and within a user the item with the least attained service. Packets always keep their order.)
///   wake=virtual a class whose queue was empty takes max(own SC, V - lag). V is the greatest so far of the least SC
///                among the queued classes at each pick. While nothing is queued V grows with every charge, since
///                bandwidth used while nobody waits costs nothing. The same holds for users of a class. (wake=paper: an
///                idle class takes the least SC of the active ones, and all SC are 0 when all are idle, so a class that
///                used idle bandwidth is punished later.)
///   lag          bytes of a user of weight 1: the unused share that may be had later. A class or user that returns
///                from a pause, say with the next page, is served at once, and a class whose requests are all in
///                service for a moment does not lose its turn. The lag decays to 0 over a pause of `lag_time`: after a
///                longer pause, and for a new user, there is none. (0: MSFQ's rule.)
///   (What half and double of each do: docs/lab/constants.md.)
///   debt         bytes of a user of weight 1: traffic without an item (section 6, excessive traffic) puts class and
///                user ahead of V by no more than this and what the reserve allows. While such bytes arrive faster than
///                a share, the debt stays constant and the user gets nothing else. When they end, the user is served
///                again after the debt, however long they lasted. (The paper has no bound, nor has wake=paper here:
///                there an idle class owes nothing.)
///   favour       while bytes arrive and nobody waits each second earns 15 s, up to this time, in which short bursts
///                pass as if there were no classes: at most every second slot goes out of turn, to the class whose next
///                item has the least remaining for its weight, if that is at most 16 KB. Service ahead of the least
///                served class is charged to no class in this time: nothing is paid back. In a backlog that lasts,
///                shares are exact after it. (0: strict minimum service, as in the paper.)
///   ahead=inf    the least remaining of all goes first, of any user: a baseline that shows the price of fairness.
/// A class's lead or lag scales with its users: those who join later divide it among them (Spread()). Where several
/// schedulers share the link, requests waiting at the others count as waiting: msfrs_host::elsewhere.
/// Beyond the paper: PICK_FRESH serves the reserve for first quanta. It returns an item without service, of a class
/// ahead of the least served class by at most `ahead`, in bytes of a class of weight 1, and of a user ahead of the
/// least served user of the class by at most `user_ahead` bytes; none while the latter had no service for lead_time.
/// Under backlog all classes come to be ahead by the same amount, so their shares do not change. Where several
/// schedulers take turns (msfrs_host::sharers), both bounds double, and no class is too far ahead while any favour= is
/// left: its next slot may be at another scheduler, which has no new item.
///
/// Cost: a release or a charge is O(log classes + log users of the class + log items of the user); waking under
/// wake=paper is O(classes), and so is a release while any favour= is left, or with ahead=inf.
#include "plugin/describe.h"
#include "sched/msf_choice.h"
#include "sched/msf_moves.h"

#include <cstdio>
#include <new>

namespace msfrs::msf {
namespace {

/// Equation (1). At the current user count a refund may exceed what was charged: no counter goes below 0.
/// \param ofFavour charged to no class
/// \param classMost \param userMost the amount takes the counters no further than these
void Spend(Instance &self, msfrs_flow &f, const int64_t amount, const bool ofFavour = false,
           const double classMost = NoBound, const double userMost = NoBound)
{
    auto &flow = StateOf(&f);
    auto &cls = StateOf(f.cls);
    const auto bytes = static_cast<double>(amount);
    if (amount > 0)
        self.favour.served(self.now);
    const auto add = [](const double counter, const double service, const double most) {
        return std::max(0.0, std::min(counter + service, std::max(counter, most)));
    };
    if (!ofFavour)
        *f.cls->service = add(cls.service(), bytes / cls.share(), classMost);
    flow.service = add(flow.service, bytes / f.weight, userMost);
    if (!AnybodyWaits(self))
        *self.virtualTime = std::max(*self.virtualTime, cls.service());
    if (!cls.anyQueued())
        cls.userTime = std::max(cls.userTime, flow.service);
    Settle(self, f);
}

/// An idle class returns, by the paper's rule.
void WakeAsInPaper(Instance &self, ClassState &waking)
{
    bool others = false;
    double least = 0;
    for (const auto c : self.all) {
        if (c != &waking && c->cls->users > 0) {
            least = others ? std::min(least, c->service()) : c->service();
            others = true;
        }
    }
    if (others) {
        *waking.cls->service = least;
    } else {
        for (const auto c : self.all)
            *c->cls->service = 0; // none of them is in a heap
        *self.virtualTime = 0;
    }
}

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t length)
{
    const auto self = new (inst) Instance();
    self->users = params[0].i;
    self->wake = params[1].i;
    self->sorted = params[2].i == Remaining && self->users == Fair && !host->exact; // packets keep their order
    self->ahead = params[3].d;
    self->userAhead = params[4].i;
    self->lead = static_cast<double>(params[5].i);
    self->leadTime = params[6].d * 1e9;
    self->leadFloor = static_cast<double>(params[7].i);
    self->favour = Favour(self->sorted ? params[8].d * 1e9 : 0);
    self->lag = params[9].i;
    self->lagTime = params[10].d * 1e9;
    self->debt = params[11].i;
    self->virtualTime = host->virtual_time;
    self->elsewhere = host->elsewhere;
    self->sharers = host->sharers;
    if (!self->sorted && self->ahead == NoBound) {
        std::snprintf(err, length,
                      "ahead=inf would have no effect; it is allowed with order=remaining and users=fair, for "
                      "requests");
        self->~Instance();
        return -1;
    }
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

int ClassAdded(void *const inst, msfrs_class *const c)
{
    auto &self = Self(inst);
    const auto state = new (c->state) ClassState();
    state->cls = c;
    state->sorted = self.sorted;
    self.all.push_back(state);
    return 0;
}

void ClassChanged(void *const inst, msfrs_class *const c, double)
{
    auto &self = Self(inst);
    self.queued.settle(StateOf(c), c->backlog > 0); // ties depend on the weight
    self.active.settle(StateOf(c), c->users > 0);
}

void ClassRemoved(void *const inst, msfrs_class *const c)
{
    auto &self = Self(inst);
    auto &state = StateOf(c);
    self.queued.settle(state, false);
    self.active.settle(state, false);
    self.all.erase(std::find(self.all.begin(), self.all.end(), &state));
    state.~ClassState();
}

int FlowAdded(void *const inst, msfrs_flow *const f)
{
    const auto state = new (f->state) FlowState();
    state->flow = f;
    state->fifo = Self(inst).users == Fifo;
    state->sorted = Self(inst).sorted;
    return 0;
}

void FlowRemoved(void *, msfrs_flow *const f) { StateOf(f).~FlowState(); }

/// The remaining lag, in bytes of a user of weight 1, of a class or user that was last busy at `since`.
double Lag(const Instance &self, const msfrs_time since)
{
    if (since == Never)
        return 0;
    const auto pause = static_cast<double>(self.now - since);
    return pause < self.lagTime ? static_cast<double>(self.lag) * (1 - pause / self.lagTime) : 0;
}

/// The least counter with which a class may wake.
double Waking(const Instance &self, const ClassState &c)
{
    return *self.virtualTime - Lag(self, c.busy ? self.now : c.idleSince);
}

/// The least counter with which a user of a class may wake: `lag` as bytes of that user. A user with something in
/// service has not been away, and may be behind by as much as the reserve or the lead puts others ahead of it.
double Waking(const Instance &self, const FlowState &f)
{
    const auto &cls = *f.flow->cls;
    const double owed = Lag(self, f.busy ? self.now : f.idleSince) * (cls.weight / f.flow->weight);
    const double ahead = std::max(static_cast<double>(self.userAhead) / f.flow->weight, self.sorted ? self.lead : 0);
    return StateOf(&cls).userTime - (f.busy ? std::max(owed, ahead) : owed);
}

/// A class or a user without a queue returns.
void Wake(const Instance &self, ClassState &c) { *c.cls->service = std::max(c.service(), Waking(self, c)); }
void Wake(const Instance &self, FlowState &f) { f.service = std::max(f.service, Waking(self, f)); }

/// A class's lead over V, or its lag, is in bytes of the users that it had then; users who join later have no part in
/// it. What they find is divided among all, once: leaving and returning gains users no more than staying.
void Spread(const Instance &self, ClassState &c)
{
    const double share = c.share(), v = *self.virtualTime;
    if (c.earnedBy > 0 && share > c.earnedBy)
        *c.cls->service = v + (c.service() - v) * (c.earnedBy / share);
    c.earnedBy = std::max(c.earnedBy, share);
}

/// True for a user that would wake like a newcomer.
int FlowForgettable(void *const inst, const msfrs_flow *const f)
{
    const auto &self = Self(inst);
    const auto &flow = StateOf(f);
    return Lag(self, flow.idleSince) == 0 && flow.service <= Waking(self, flow);
}

/// An item has left: notes which class or user has none any more.
void Rest(Instance &self, const msfrs_flow &f, const msfrs_time now)
{
    self.now = now;
    if (f.backlog + f.in_service == 0)
        StateOf(&f).end(now);
    if (f.cls->users == 0)
        StateOf(f.cls).end(now);
}

int Before(void *const inst, const msfrs_item *const a, const msfrs_item *const b)
{
    const auto &self = Self(inst);
    return self.users == Fair && !self.sorted && a->attained < b->attained;
}

void Enqueued(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    auto &f = *i->flow;
    auto &flow = StateOf(&f);
    auto &cls = StateOf(f.cls);
    const bool classQueueWasEmpty = f.cls->backlog == 1;
    const bool classWasIdle = classQueueWasEmpty && f.cls->users == 1 && f.cls->in_service == 0 && i->attained == 0;
    if (self.wake == Virtual) {
        if (classQueueWasEmpty)
            Wake(self, cls);
        Spread(self, cls);
    } else if (classWasIdle) {
        WakeAsInPaper(self, cls);
    }
    if (f.backlog == 1)
        Wake(self, flow);
    flow.begin(now, self.leadTime);
    cls.begin(now, self.leadTime);
    Insert(*i);
    Settle(self, f);
}

void Expected(void *const inst, msfrs_item *const i, int64_t, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    auto &flow = StateOf(i->flow);
    if (!flow.sorted || !flow.items.Holds(*i))
        return; // in service: it counts when it queues again
    Erase(*i);
    Insert(*i);
    Settle(self, *i->flow);
}

msfrs_item *Pick(void *const inst, const msfrs_time now, const msfrs_pick mode, msfrs_time *)
{
    auto &self = Self(inst);
    self.now = now;
    if (self.queued.empty())
        return nullptr;
    if (mode == MSFRS_PICK_ANY)
        return Chosen(self, NextUser(self));

    // A class with nothing queued but items in service counts as if it queued now: max(SC, V).
    const double least = std::min(self.queued.keyAt(0), std::max(self.active.keyAt(0), *self.virtualTime));
    const size_t place = FreshClass(self, 0, least, MostAhead(self));
    return place == Nowhere ? nullptr : Next(*FreshUser(self, *self.queued.at(place)));
}

void Picked(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    // The heaps still hold the picked item. Their tops are its class and user or, where the host took it out of turn,
    // those served less: with the counter of one far ahead, all that wake now would wait for the others.
    auto &cls = StateOf(i->flow->cls);
    *self.virtualTime = std::max(*self.virtualTime, self.queued.keyAt(0)); // a lagging class does not lower V
    if (self.users == Fair)
        cls.userTime = std::max(cls.userTime, cls.leastKey());
    if (cls.service() <= *self.virtualTime)
        cls.earnedBy = cls.share();
    auto &flow = StateOf(i->flow);
    flow.servedAt = now;
    flow.outOfOrder = flow.sorted && flow.items.top() != i;
    const bool ofFavour = StateOf(i).ofFavour = self.favour.left(now) > 0 && cls.service() > self.queued.keyAt(0);
    self.favour.picked(ofFavour);
    Erase(*i);
    // Spend() must see who still has items queued, and it settles, too.
    if (i->flow->backlog == 0 || i->est[0] == 0)
        Settle(self, *i->flow);
    if (i->est[0] > 0)
        Spend(self, *i->flow, i->est[0], ofFavour);
}

void Removed(void *const inst, msfrs_item *const i, const msfrs_time now, msfrs_reason)
{
    Rest(Self(inst), *i->flow, now);
    Erase(*i);
    Settle(Self(inst), *i->flow);
}

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *const i, const uint32_t resource, const int64_t amount,
             const msfrs_time now)
{
    auto &self = Self(inst);
    if (resource != 0)
        return;
    self.now = now;
    if (i || self.wake == Paper) {
        Spend(self, *f, amount, i && StateOf(i).ofFavour);
        return;
    }
    auto &flow = StateOf(f);
    auto &cls = StateOf(f->cls);
    // An idle class or user starts where a request would have found it: bytes within the share of a user who asks for
    // nothing else are no debt.
    if (f->cls->backlog == 0)
        Wake(self, cls);
    if (f->backlog == 0)
        Wake(self, flow);
    // Nothing holds these bytes back, so only this bound keeps the counters from running away.
    const auto debt = static_cast<double>(self.debt);
    const double users = std::max(f->cls->users, 1u); // who do not share the debt of this one
    Spend(self, *f, amount, false, *self.virtualTime + (self.ahead + debt) / users,
          cls.userTime + (static_cast<double>(self.userAhead) + debt * f->cls->weight) / f->weight);
}

void Done(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    Rest(Self(inst), *i->flow, now);
    if (i->flow->backlog + i->flow->in_service == 0) // UC_i has changed
        Settle(Self(inst), *i->flow);
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out)
{
    out[0] = c ? *c->service : *Self(inst).virtualTime;
}

const msfrs_param Params[] = {
    {"users", MSFRS_CHOICE, "", "fair", 0, 0, "fair|fifo", "order within a class: least served user, or arrival"},
    {"wake", MSFRS_CHOICE, "", "virtual", 0, 0, "virtual|paper", "service counter of a class that wakes"},
    {"order", MSFRS_CHOICE, "", "remaining", 0, 0, "remaining|attained",
     "with users=fair: of a user, and of users within the lead, who has least left goes first, or who had least"},
    {"ahead", MSFRS_REAL, "bytes", "65536", 0, NoBound, nullptr,
     "how far ahead a class of weight 1 may be and still use the reserve; inf: no share counts at all"},
    {"user_ahead", MSFRS_INT, "bytes", "262144", 0, 1e9, nullptr, "how far ahead a user of a class may be for that"},
    {"lead", MSFRS_INT, "bytes", "2097152", 0, 1e9, nullptr,
     "how far ahead of the others of the class a user may be who has less left, while they have not waited"},
    {"lead_time", MSFRS_REAL, "s", "15", 0.001, 1e6, nullptr,
     "wait of the others over which that goes down to a third"},
    {"lead_floor", MSFRS_INT, "bytes", "16384", 0, 1e9, nullptr, "what is left of it however long they wait"},
    {"favour", MSFRS_REAL, "s", "60", 0, 3600, nullptr,
     "how long short responses may go out of turn at most; a second of use in which nobody waits earns 15 s"},
    {"lag", MSFRS_INT, "bytes", "98304", 0, 1e9, nullptr, "unused share that a user of weight 1 keeps while idle"},
    {"lag_time", MSFRS_REAL, "s", "30", 0, 1e6, nullptr, "pause over which that goes down to nothing"},
    {"debt", MSFRS_INT, "bytes", "1048576", 0, 1e9, nullptr,
     "how far bytes that no request caused put a user of weight 1 ahead, beyond what the reserve allows"},
};

const msfrs_gauge GaugeTable[] = {
    {"service", "bytes", "service counter SC of a class; of the instance: virtual time V"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, ClassAdded, ClassChanged, ClassRemoved, FlowAdded, FlowRemoved, FlowForgettable, Before,
    Enqueued, Pick, Picked, Removed, Charged, Done, Gauges, Expected, Save, Restore, Resumed,
};

} // namespace
} // namespace msfrs::msf

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<msfrs::msf::Instance, msfrs::msf::ClassState, msfrs::msf::FlowState,
                                        msfrs::msf::ItemState>(
    "msf", "minimum service first: the least served class, then user, goes next",
    "Tsao et al., On applying fair queuing discipline to schedule requests (2008), section 3.1", MSFRS_HAS_RESERVE,
    msfrs::msf::Ops, msfrs::msf::Params, msfrs::msf::GaugeTable, msfrs::msf::Keeps);
