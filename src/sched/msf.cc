// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msf: the minimum-service order arbiter (MOA) of MSF-RS.
///
/// Paper: Tsao, Lai, Tsao, Lin, "On applying fair queuing discipline to schedule requests at access gateway for
/// downlink differential QoS", Computer Networks (2008), section 3.1, equation (1), figure 3.
///
///     SC_i += L / (w_i * UC_i)      at every piece of a response of L bytes, with the UC of that moment   (1)
///     next:  the class with the least SC; of equals the one with the greatest w_i * UC_i
///
/// Where this departs from the paper, each by a parameter whose other value is the paper's:
///   users=fair   within a class the user with the least service goes first, and within a user the item that
///                has attained the least. (users=fifo: one queue per class, in order of arrival.)
///   wake=virtual a class whose queue was empty takes max(own SC, V - lag), V being the greatest so far of the least SC
///                among the queued at each pick; while nothing is queued V goes up with whatever is charged, since
///                what is used while nobody waits costs nobody anything. A user likewise within its class.
///                (wake=paper: an idle class takes the least SC of the active ones, all SC are 0 when all are idle,
///                so that who used idle bandwidth is punished later.)
///   lag          bytes of a user of weight 1: so much of a share that was not used may be had later. It gets who comes
///                back from a pause, say with the next page, through at once, and a class whose requests are all
///                under way for a moment does not lose its turn. It goes down to nothing over a pause of `lag_time`:
///                who has been away for long, or was never here, is owed nothing. (0: MSFQ's rule.)
///   debt         bytes of a user of weight 1: what comes for a user without an item (section 6, excessive traffic) puts
///                class and user no further ahead of V than this and what the reserve allows. While such bytes come
///                faster than a share, the debt stays as it is and the user gets nothing else; when they end, the user
///                comes back after the debt, however long they came. (The paper has no bound, and wake=paper none here:
///                there, who was idle owes nothing.)
/// Beyond the paper: PICK_FRESH serves the reserve for first quanta. It answers with an item that had no service
/// yet, of a class that is not ahead of the least served one by more than `ahead`, in bytes of a user of weight 1, and of
/// a user who is not ahead of the least served one of the class by more than `user_ahead` bytes. Under backlog all
/// classes come to be ahead by as much, which leaves their shares as they are.
///
/// Cost: a release or a charge is O(log classes + log users of the class); waking under wake=paper is
/// O(classes).
#include "plugin/msfrs_plugin.h"
#include "sched/heap.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

namespace {

enum Users { Fair, Fifo };
enum Wake { Virtual, Paper };

constexpr msfrs_time Never = -1;

struct FlowState {
    msfrs_flow *flow;
    double service;      ///< bytes / weight of the flow
    msfrs_time idleSince;///< when it last had an item, or Never
    uint32_t place[2];   ///< in ClassState::queued and ::fresh
    bool fifo;           ///< the instance's `users` parameter, at hand for the key
};

template <int Which>
struct FlowTraits {
    static uint32_t &Place(FlowState &f) { return f.place[Which]; }
    static double Key(const FlowState &f) { return f.fifo ? static_cast<double>(f.flow->head->seq) : f.service; }
    static bool Before(const FlowState &a, const FlowState &b) { return a.flow->head->seq < b.flow->head->seq; }
};

struct ClassState {
    msfrs_class *cls;
    double userTime;     ///< V among the users of this class
    msfrs_time idleSince;///< when it last had a user, or Never
    uint32_t place[2];   ///< in Instance::queued and ::active
    msfrs::Heap<FlowState, FlowTraits<0>> queued; ///< flows with a backlog
    msfrs::Heap<FlowState, FlowTraits<1>> fresh;  ///< of those: flows whose head had no service yet

    double service() const { return *cls->service; }
    double share() const { return cls->weight * std::max(cls->users, 1u); } ///< w_i * UC_i
};

template <int Which>
struct ClassTraits {
    static uint32_t &Place(ClassState &c) { return c.place[Which]; }
    static double Key(const ClassState &c) { return c.service(); }
    static bool Before(const ClassState &a, const ClassState &b)
    {
        if (a.share() != b.share())
            return a.share() > b.share();
        return a.cls->index < b.cls->index;
    }
};

struct Instance {
    int64_t users, wake;
    int64_t ahead, lag;                             ///< bytes of a user of weight 1
    int64_t userAhead;                              ///< bytes of any user
    double lagTime;                                 ///< ns
    msfrs_time now;                                 ///< of the latest call
    int64_t debt;                                   ///< bytes of a user of weight 1
    double *virtualTime;                            ///< V
    std::vector<ClassState *> all;
    msfrs::Heap<ClassState, ClassTraits<0>> queued; ///< classes with a backlog
    msfrs::Heap<ClassState, ClassTraits<1>> active; ///< classes with a user, queued or served
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }
FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }

/// Brings all heaps up to date after anything about the flow or its class has changed.
void Settle(Instance &self, msfrs_flow &f)
{
    auto &flow = StateOf(&f);
    auto &cls = StateOf(f.cls);
    cls.queued.settle(flow, f.head != nullptr);
    cls.fresh.settle(flow, f.head && f.head->attained == 0);
    self.queued.settle(cls, f.cls->backlog > 0);
    self.active.settle(cls, f.cls->users > 0);
}

constexpr double NoBound = std::numeric_limits<double>::infinity();

/// Equation (1). A refund may exceed what the user count of the moment makes of it: no counter goes below 0.
/// \param classMost \param userMost which the amount takes the counter no further than
void Spend(Instance &self, msfrs_flow &f, const int64_t amount, const double classMost = NoBound,
           const double userMost = NoBound)
{
    auto &flow = StateOf(&f);
    auto &cls = StateOf(f.cls);
    const auto bytes = static_cast<double>(amount);
    const auto add = [](const double counter, const double service, const double most) {
        return std::max(0.0, std::min(counter + service, std::max(counter, most)));
    };
    *f.cls->service = add(cls.service(), bytes / cls.share(), classMost);
    flow.service = add(flow.service, bytes / f.weight, userMost);
    if (self.queued.empty())
        *self.virtualTime = std::max(*self.virtualTime, cls.service());
    if (cls.queued.empty())
        cls.userTime = std::max(cls.userTime, flow.service);
    Settle(self, f);
}

/// A class that was idle comes back, by the paper's rule.
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

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *, size_t)
{
    const auto self = new (inst) Instance();
    self->users = params[0].i;
    self->wake = params[1].i;
    self->ahead = params[2].i;
    self->userAhead = params[3].i;
    self->lag = params[4].i;
    self->lagTime = params[5].d * 1e9;
    self->debt = params[6].i;
    self->virtualTime = host->virtual_time;
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

int ClassAdded(void *const inst, msfrs_class *const c)
{
    auto &self = Self(inst);
    const auto state = new (c->state) ClassState();
    state->cls = c;
    state->idleSince = Never;
    self.all.push_back(state);
    return 0;
}

void ClassChanged(void *const inst, msfrs_class *const c, double)
{
    auto &self = Self(inst);
    self.queued.settle(StateOf(c), c->backlog > 0); // the tie rule looks at the weight
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
    state->idleSince = Never;
    state->fifo = Self(inst).users == Fifo;
    return 0;
}

/// What is left of the lag, in bytes of a user of weight 1, for one that was last busy at `since`.
double Lag(const Instance &self, const msfrs_time since)
{
    if (since == Never)
        return 0;
    const auto pause = static_cast<double>(self.now - since);
    return pause < self.lagTime ? static_cast<double>(self.lag) * (1 - pause / self.lagTime) : 0;
}

/// The least counter that a class may wake with.
double Waking(const Instance &self, const ClassState &c)
{
    return *self.virtualTime - Lag(self, c.cls->in_service > 0 ? self.now : c.idleSince);
}

/// The least that a user of a class may wake with: `lag` as bytes of that user.
double Waking(const Instance &self, const FlowState &f)
{
    const auto &cls = *f.flow->cls;
    return StateOf(&cls).userTime -
           Lag(self, f.flow->in_service > 0 ? self.now : f.idleSince) * (cls.weight / f.flow->weight);
}

/// A class or a user without a queue comes back.
void Wake(const Instance &self, ClassState &c) { *c.cls->service = std::max(c.service(), Waking(self, c)); }
void Wake(const Instance &self, FlowState &f) { f.service = std::max(f.service, Waking(self, f)); }

/// Whoever would wake like a newcomer.
int FlowForgettable(void *const inst, const msfrs_flow *const f)
{
    const auto &self = Self(inst);
    const auto &flow = StateOf(f);
    return Lag(self, flow.idleSince) == 0 && flow.service <= Waking(self, flow);
}

/// An item has left: notes who has none any more.
void Rest(Instance &self, const msfrs_flow &f, const msfrs_time now)
{
    self.now = now;
    if (f.backlog + f.in_service == 0)
        StateOf(&f).idleSince = now;
    if (f.cls->users == 0)
        StateOf(f.cls).idleSince = now;
}

int Before(void *const inst, const msfrs_item *const a, const msfrs_item *const b)
{
    return Self(inst).users == Fair && a->attained < b->attained;
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
    } else if (classWasIdle) {
        WakeAsInPaper(self, cls);
    }
    if (f.backlog == 1)
        Wake(self, flow);
    Settle(self, f);
}

constexpr size_t Nowhere = SIZE_MAX;

/// The user of a class who may use the reserve: least served of those with a fresh item, and not ahead of whoever is
/// least served of all. Else one with many requests would have it all the time, and more than its share.
FlowState *FreshUser(const Instance &self, const ClassState &c)
{
    if (c.fresh.empty())
        return nullptr;
    const auto user = c.fresh.top();
    const bool first = self.users == Fifo || c.fresh.keyAt(0) <= c.queued.keyAt(0) +
                                                                   static_cast<double>(self.userAhead) / user->flow->weight;
    return first ? user : nullptr;
}

/// Place in the heap of the best class below n that may use the reserve: fresh, and not ahead. Visits only the
/// part of the heap that is within the bound.
size_t FreshClass(const Instance &self, const size_t n, const double most)
{
    if (n >= self.queued.size() || self.queued.keyAt(n) > most)
        return Nowhere;
    if (FreshUser(self, *self.queued.at(n)))
        return n;
    const size_t left = FreshClass(self, 2 * n + 1, most);
    const size_t right = FreshClass(self, 2 * n + 2, most);
    if (left == Nowhere || right == Nowhere)
        return left == Nowhere ? right : left;
    return self.queued.before(right, left) ? right : left;
}

msfrs_item *Pick(void *const inst, msfrs_time, const msfrs_pick mode, msfrs_time *)
{
    auto &self = Self(inst);
    if (self.queued.empty())
        return nullptr;
    if (mode == MSFRS_PICK_ANY)
        return self.queued.top()->queued.top()->flow->head;

    // A class with nothing queued but something served counts as if it queued now: max(SC, V).
    const double least = std::min(self.queued.keyAt(0), std::max(self.active.keyAt(0), *self.virtualTime));
    const size_t place = FreshClass(self, 0, least + static_cast<double>(self.ahead));
    return place == Nowhere ? nullptr : FreshUser(self, *self.queued.at(place))->flow->head;
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    // The heaps still hold what was picked. Their tops are it, or, where the host took it out of turn, whoever is
    // behind it: taking the counter of one far ahead would make all who wake now wait for the others.
    auto &cls = StateOf(i->flow->cls);
    *self.virtualTime = std::max(*self.virtualTime, self.queued.keyAt(0)); // one that lags does not take it back
    if (self.users == Fair)
        cls.userTime = std::max(cls.userTime, cls.queued.keyAt(0));
    Settle(self, *i->flow);
    if (i->est[0] > 0)
        Spend(self, *i->flow, i->est[0]);
}

void Removed(void *const inst, msfrs_item *const i, const msfrs_time now, msfrs_reason)
{
    Rest(Self(inst), *i->flow, now);
    Settle(Self(inst), *i->flow);
}

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *const i, const uint32_t resource, const int64_t amount,
             const msfrs_time now)
{
    auto &self = Self(inst);
    if (resource != 0)
        return;
    if (i || self.wake == Paper) {
        Spend(self, *f, amount);
        return;
    }
    self.now = now;
    auto &flow = StateOf(f);
    auto &cls = StateOf(f->cls);
    // Who is idle starts where a request would have found it: what stays within the share of somebody who asks for
    // nothing else is no debt.
    if (f->cls->backlog == 0)
        Wake(self, cls);
    if (f->backlog == 0)
        Wake(self, flow);
    // Nothing holds these bytes back, so nothing but this bound keeps the counters from running away.
    const auto debt = static_cast<double>(self.debt);
    Spend(self, *f, amount, *self.virtualTime + static_cast<double>(self.ahead) + debt,
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
    {"ahead", MSFRS_INT, "bytes", "16384", 0, 1e9, nullptr,
     "how far ahead a class may be, by a user of weight 1, and still use the reserve"},
    {"user_ahead", MSFRS_INT, "bytes", "262144", 0, 1e9, nullptr, "how far ahead a user of a class may be for that"},
    {"lag", MSFRS_INT, "bytes", "98304", 0, 1e9, nullptr, "unused share that a user of weight 1 keeps while idle"},
    {"lag_time", MSFRS_REAL, "s", "30", 0, 1e6, nullptr, "pause over which that goes down to nothing"},
    {"debt", MSFRS_INT, "bytes", "1048576", 0, 1e9, nullptr,
     "how far bytes that no request caused put a user of weight 1 ahead, beyond what the reserve allows"},
};

const msfrs_gauge GaugeTable[] = {
    {"service", "bytes", "service counter SC of a class; of the instance: virtual time V"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, ClassAdded, ClassChanged, ClassRemoved, FlowAdded, nullptr, FlowForgettable, Before,
    Enqueued, Pick, Picked, Removed, Charged, Done, Gauges,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin), MSFRS_SCHED, MSFRS_HAS_RESERVE,
    "msf", "minimum service first: the least served class, then user, goes next",
    "Tsao et al., On applying fair queuing discipline to schedule requests (2008), section 3.1",
    sizeof(Instance), sizeof(ClassState), sizeof(FlowState), 0,
    Params, sizeof(Params) / sizeof(*Params), GaugeTable, sizeof(GaugeTable) / sizeof(*GaugeTable),
    &Ops, nullptr, sizeof(Ops),
};
