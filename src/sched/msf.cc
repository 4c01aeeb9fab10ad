// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msf: minimum service first, over users.
///
/// After the arbiter of MSF-RS (moa.cc has it as in the paper), which gives each user of a class the same share by
/// dividing the class's service by w_i UC_i. Here every user has a service counter S of its own, in bytes per weight,
/// and w is the weight of its class times its own. So a class is only a weight, and nothing has to be corrected when
/// users come, leave, or are served elsewhere.
///
///     S += L / w           for L bytes of the user's responses
///     V                    greatest so far of the least S of all waiting users, at each pick; while nobody waits, here
///                          or at another scheduler of the link, it follows the service: unused bandwidth is free
///     S = max(S, V - lag)  when a user without waiting requests makes one
///
///     next                 of the users whose response would end with S <= least S + lead exp(-t / lead_time), the one
///                          with the least remaining for its weight; otherwise the least served user
///     reserve              the least served user whose next item is fresh, if S <= least S + max(ahead, that lead)
///
/// t is the time for which the least served user has had requests. So a short response passes long ones, whoever has had
/// more, and a response that the lead does not cover, such as a download, gets its share and no more. The lead is gone
/// in a backlog that lasts; then shares are exact.
///
/// Within a user, items without service go first, then the least remaining. An item of unknown size counts as many bytes
/// as it has had, at least 4096. Thus it would wait for as long as its user makes new requests: the longest waiting one
/// of unknown size goes first after Patience, in at most every second turn. Packets keep their order.
///
/// A returning user is behind V by at most `lag`, which decays to nothing over a pause of LagTime; a new user is not. A
/// user with a response in service has not been away: it may be as far behind as the reserve lets others be ahead.
/// Traffic without an item (section 6 of the paper, excessive traffic) puts a user ahead of V by at most Debt: nothing
/// holds it back, so while it arrives faster than a share the user gets nothing else, and afterwards it is served soon.
///
/// SC of a class, equation (1) of the paper, is kept for reports alone: SC_i += L / (w_i UC_i).
/// What half and double of each figure do: docs/lab/constants.md. Cost: a release or a charge is O(log users).
#include "plugin/describe.h"
#include "sched/item_queue.h"
#include "sched/kept.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace msfrs::msf {
namespace {

constexpr msfrs_time Never = -1;
constexpr double NoBound = std::numeric_limits<double>::infinity();
constexpr double LagTime = 30e9;                    ///< ns: about the time for which a page is read
constexpr msfrs_time Patience = 15'000'000'000;     ///< ns: less than the 30 s after which clients give up
constexpr double Debt = 1048576;                    ///< bytes of a user of weight 1

struct FlowState {
    msfrs_flow *flow;
    double service;             ///< S
    double left;                ///< remaining bytes of its next item for its weight
    double end;                 ///< S with these
    msfrs_time idleSince;       ///< when it last had an item
    msfrs_time busySince;       ///< while busy: since when
    bool busy;                  ///< has an item, queued or in service
    bool outOfOrder;            ///< the item last picked was not the first of `items`
    bool sorted;                ///< queued items are in `items`; else the engine's queue is the order
    uint32_t place[4];          ///< in the heaps of Instance
    ItemQueue items;

    msfrs_item *next() const { return sorted ? items.top() : flow->head; }
    double weight() const { return flow->cls->weight * flow->weight; }
};

template <int Which, double FlowState::*By>
struct FlowTraits {
    static uint32_t &Place(FlowState &f) { return f.place[Which]; }
    static double Key(const FlowState &f) { return f.*By; }
    static bool Before(const FlowState &a, const FlowState &b) { return a.next()->seq < b.next()->seq; }
};

struct Instance {
    double lead;                ///< bytes of a user of weight 1, as the next two
    double lag, ahead;
    double leadTime;            ///< ns
    bool sorted;                ///< requests, not packets
    msfrs_time now;             ///< of the latest call
    double *virtualTime;        ///< V
    const uint64_t *elsewhere;  ///< see msfrs_host, also the next
    double *leastWaiting;
    Heap<FlowState, FlowTraits<0, &FlowState::service>> waiting;
    Heap<FlowState, FlowTraits<1, &FlowState::service>> fresh;  ///< of those: whose next item had no service yet
    Heap<FlowState, FlowTraits<2, &FlowState::left>> covered;   ///< of those: by the lead, as of the latest pick
    Heap<FlowState, FlowTraits<3, &FlowState::end>> others;     ///< those not in `covered`
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }

/// Brings the heaps up to date after any change of the user.
void Settle(Instance &self, FlowState &f)
{
    const auto next = f.flow->head ? f.next() : nullptr;
    if (next) {
        f.left = Left(*next) / f.weight();
        f.end = f.service + f.left;
    }
    self.waiting.settle(f, next);
    if (!self.waiting.empty())
        *self.leastWaiting = self.waiting.keyAt(0);
    self.fresh.settle(f, next && next->attained == 0);
    if (self.covered.Holds(f))
        self.covered.settle(f, next);
    else if (self.lead > 0)
        self.others.settle(f, next);
}

/// \param most the amount takes S no further than this
void Spend(Instance &self, msfrs_flow &f, const int64_t amount, const double most = NoBound)
{
    auto &flow = StateOf(&f);
    const auto bytes = static_cast<double>(amount);
    const auto spent = flow.service + bytes / flow.weight();
    flow.service = std::max(0.0, std::min(spent, std::max(flow.service, most))); // a refund may exceed what there is
    *f.cls->service = std::max(0.0, *f.cls->service + bytes / (f.cls->weight * std::max(f.cls->users, 1u)));
    if (self.waiting.empty() && *self.elsewhere == 0)
        *self.virtualTime = std::max(*self.virtualTime, flow.service);
    Settle(self, flow);
}

/// The remaining lag of a user.
double Lag(const Instance &self, const FlowState &f)
{
    if (f.busy)
        return std::max(self.lag, self.ahead);
    const double pause = f.idleSince == Never ? LagTime : static_cast<double>(self.now - f.idleSince);
    return self.lag * std::max(1 - pause / LagTime, 0.0);
}

/// A user makes a request while none of its others waits.
void Return(const Instance &self, FlowState &f)
{
    f.service = std::max(f.service, *self.virtualTime - Lag(self, f));
}

/// How far a user may be ahead of the least served one.
double Lead(const Instance &self)
{
    return self.lead * std::exp(static_cast<double>(self.waiting.top()->busySince - self.now) / self.leadTime);
}

/// The user that goes next; somebody must wait.
const FlowState &NextUser(Instance &self)
{
    const double bound = self.waiting.keyAt(0) + Lead(self);
    const auto pass = [](auto &from, auto &to) {
        auto &f = *from.top();
        from.erase(f);
        to.push(f);
    };
    while (!self.others.empty() && self.others.keyAt(0) <= bound)
        pass(self.others, self.covered);
    while (!self.covered.empty() && self.covered.top()->end > bound)
        pass(self.covered, self.others);
    return self.covered.empty() ? *self.waiting.top() : *self.covered.top();
}

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *, size_t)
{
    const auto self = new (inst) Instance();
    self->sorted = !host->exact;
    self->lead = self->sorted ? params[0].d : 0;
    self->leadTime = params[1].d * 1e9;
    self->lag = params[2].d;
    self->ahead = params[3].d;
    self->virtualTime = host->virtual_time;
    self->elsewhere = host->elsewhere;
    self->leastWaiting = host->least;
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

/// A reconfiguration: O(users).
void ClassChanged(void *const inst, msfrs_class *const c, double)
{
    auto &self = Self(inst);
    std::vector<FlowState *> waiting;
    for (size_t n = 0; n < self.waiting.size(); ++n)
        waiting.push_back(self.waiting.at(n));
    for (const auto f : waiting) {
        if (f->flow->cls == c)
            Settle(self, *f);
    }
}

int FlowAdded(void *const inst, msfrs_flow *const f)
{
    const auto state = new (f->state) FlowState();
    state->flow = f;
    state->idleSince = Never;
    state->sorted = Self(inst).sorted;
    return 0;
}

void FlowRemoved(void *, msfrs_flow *const f) { StateOf(f).~FlowState(); }

/// True for a user that would return like a newcomer.
int FlowForgettable(void *const inst, const msfrs_flow *const f)
{
    const auto &self = Self(inst);
    return Lag(self, StateOf(f)) == 0 && StateOf(f).service <= *self.virtualTime;
}

void Insert(Instance &self, msfrs_item &i)
{
    auto &flow = StateOf(i.flow);
    if (flow.sorted)
        flow.items.push(i);
    Settle(self, flow);
}

void Erase(Instance &self, msfrs_item &i)
{
    auto &flow = StateOf(i.flow);
    if (flow.sorted)
        flow.items.erase(i);
    Settle(self, flow);
}

void Enqueued(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    auto &flow = StateOf(i->flow);
    if (i->flow->backlog == 1)
        Return(self, flow);
    if (!std::exchange(flow.busy, true))
        flow.busySince = now;
    Insert(self, *i);
}

void Expected(void *const inst, msfrs_item *const i, int64_t, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    auto &flow = StateOf(i->flow);
    if (!flow.sorted || !flow.items.Holds(*i))
        return; // in service: it counts when it queues again
    flow.items.erase(*i);
    Insert(self, *i);
}

msfrs_item *Pick(void *const inst, const msfrs_time now, const msfrs_pick mode, msfrs_time *)
{
    auto &self = Self(inst);
    self.now = now;
    if (self.waiting.empty())
        return nullptr;
    if (mode == MSFRS_PICK_FRESH) {
        const double bound = self.waiting.keyAt(0) + std::max(self.ahead, Lead(self));
        return self.fresh.empty() || self.fresh.keyAt(0) > bound ? nullptr : self.fresh.top()->next();
    }
    const auto &user = NextUser(self);
    const auto longest = user.flow->head; // the host's queue is in order of arrival
    const bool starves = self.sorted && longest->remaining < 0 && now - longest->enqueued >= Patience;
    return starves && !user.outOfOrder ? longest : user.next();
}

void Picked(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    // The heap still holds the picked item. Its top is the item's user or, where the host took the item out of turn, a
    // user served less: with the counter of one far ahead, all that return now would wait for the others.
    *self.virtualTime = std::max(*self.virtualTime, self.waiting.keyAt(0)); // a lagging user does not lower V
    auto &flow = StateOf(i->flow);
    flow.outOfOrder = flow.sorted && flow.items.top() != i;
    Erase(self, *i);
    if (i->est[0] != 0)
        Spend(self, *i->flow, i->est[0]);
}

/// An item has ended.
void Done(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    Self(inst).now = now;
    auto &flow = StateOf(i->flow);
    if (i->flow->backlog + i->flow->in_service == 0) {
        flow.idleSince = now;
        flow.busy = false;
    }
}

void Removed(void *const inst, msfrs_item *const i, const msfrs_time now, msfrs_reason)
{
    Done(inst, i, now);
    Erase(Self(inst), *i);
}

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *const i, const uint32_t resource, const int64_t amount,
             const msfrs_time now)
{
    auto &self = Self(inst);
    if (resource != 0)
        return;
    self.now = now;
    if (!i && f->backlog == 0)
        Return(self, StateOf(f)); // bytes within the share of a user who asks for nothing else are no debt
    Spend(self, *f, amount, i ? NoBound : *self.virtualTime + self.ahead + Debt);
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out)
{
    out[0] = c ? *c->service : *Self(inst).virtualTime;
}

constexpr uint32_t Keeps = 5; ///< must change when any of the figures below changes its meaning

void Save(void *const inst, const msfrs_move *const move, const msfrs_time now)
{
    const auto ago = [now](const msfrs_time then) { return then == Never ? -1 : static_cast<double>(now - then); };
    Put(*move, {}, std::array{*Self(inst).virtualTime});
    for (uint32_t n = 0; n < move->n_classes; ++n)
        Put(*move, {move->classes[n], nullptr, nullptr}, std::array{*move->classes[n]->service});
    for (uint32_t n = 0; n < move->n_flows; ++n) {
        const auto &f = StateOf(move->flows[n]);
        // A busy user is saved as idle since now: Resumed() makes it busy again, if it still has an item.
        Put(*move, {nullptr, f.flow, nullptr},
            std::array{f.service, ago(f.busy ? now : f.idleSince), ago(f.busySince), f.outOfOrder ? 1.0 : 0.0});
    }
}

int Restore(void *const inst, const msfrs_owner *const whose, const double *const figures, const uint32_t n,
            const msfrs_time now)
{
    if (n != (whose->flow ? 4 : 1) || whose->item || figures[0] < 0)
        return -1;
    if (!whose->flow) {
        (whose->cls ? *whose->cls->service : *Self(inst).virtualTime) = figures[0];
        return 0;
    }
    const auto before = [now](const double age) { return age < 0 ? Never : now - static_cast<msfrs_time>(age); };
    auto &f = StateOf(whose->flow);
    f.service = figures[0];
    f.idleSince = before(figures[1]);
    f.busySince = before(figures[2]);
    f.outOfOrder = figures[3] > 0;
    return 0;
}

void Resumed(void *const inst, msfrs_item *const i, const int served, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    StateOf(i->flow).busy = true;
    if (!served)
        Insert(self, *i);
}

const msfrs_param Params[] = {
    {"lead", MSFRS_REAL, "bytes", "1048576", 0, NoBound, nullptr,
     "how far ahead a user of weight 1 may be by a response that ends within it; inf: no share counts at all"},
    {"lead_time", MSFRS_REAL, "s", "3", 0.001, 1e6, nullptr,
     "wait of the least served user over which that goes down to a third"},
    {"lag", MSFRS_REAL, "bytes", "98304", 0, 1e9, nullptr, "unused share that a user of weight 1 keeps while idle"},
    {"ahead", MSFRS_REAL, "bytes", "16384", 0, 1e12, nullptr,
     "how far ahead a user of weight 1 may be and still use the reserve"},
};

const msfrs_gauge GaugeTable[] = {
    {"service", "bytes", "service counter SC of a class; of the instance: virtual time V"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, nullptr, ClassChanged, nullptr, FlowAdded, FlowRemoved, FlowForgettable, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, Done, Gauges, Expected, Save, Restore, Resumed,
};

} // namespace
} // namespace msfrs::msf

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<msfrs::msf::Instance, void, msfrs::msf::FlowState, msfrs::msf::ItemState>(
    "msf", "minimum service first: the least served user goes next, short responses before long ones",
    "after Tsao et al., On applying fair queuing discipline to schedule requests (2008)", MSFRS_HAS_RESERVE,
    msfrs::msf::Ops, msfrs::msf::Params, msfrs::msf::GaugeTable, msfrs::msf::Keeps);
