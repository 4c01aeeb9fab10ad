// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A scheduler that trusts nothing: first come, first served, and it checks that the engine keeps the contract of
/// msfrs_plugin.h. Every breach is logged at level 0. Built with -DNEEDS_COST it also requires exact costs.
#include "plugin/msfrs_plugin.h"

#include <cstdio>
#include <map>
#include <set>

namespace {

enum class Life : uint32_t { New, Queued, Served, Ended };

struct ItemState {
    Life life;
    int64_t estimate;   ///< at the latest enqueueing
    int64_t charged;    ///< net, since the latest pick
    int64_t remaining;  ///< as updated last
    unsigned char zero[40];
};

struct FlowState {
    uint32_t queued, served;
    unsigned char zero[24];
    bool added;
};

struct ClassState {
    uint32_t queued, served, flows;
    double weight;
    bool added;
};

struct Instance {
    const msfrs_host *host;
    int64_t pace;
    msfrs_time next, latest;
    uint32_t classes;
    std::map<uint64_t, msfrs_item *> *order; ///< the queued items by seq
    std::set<uint32_t> *indices;
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ItemState &Of(const msfrs_item *const i) { return *static_cast<ItemState *>(i->state); }
FlowState &Of(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }
ClassState &Of(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }

void Demand(const Instance &self, const bool holds, const char *const what)
{
    if (!holds)
        self.host->log(self.host->ctx, 0, what);
}

void Clock(Instance &self, const msfrs_time now)
{
    Demand(self, now >= self.latest, "time went back");
    self.latest = now;
}

template <size_t N>
bool Zero(const unsigned char (&bytes)[N])
{
    for (const auto b : bytes) {
        if (b)
            return false;
    }
    return true;
}

/// The engine's counters against those kept here.
void Counters(const Instance &self, const msfrs_flow &f, const char *const when)
{
    const auto &c = *f.cls;
    char text[160];
    const bool good = f.backlog == Of(&f).queued && f.in_service == Of(&f).served && c.backlog == Of(&c).queued &&
                      c.in_service == Of(&c).served && c.users <= Of(&c).flows && f.fresh <= f.backlog &&
                      c.fresh <= c.backlog && (f.head != nullptr) == (f.backlog > 0) && c.weight == Of(&c).weight;
    std::snprintf(text, sizeof(text), "counters are wrong in %s: flow %u+%u, class %u+%u", when, f.backlog,
                  f.in_service, c.backlog, c.in_service);
    Demand(self, good, text);
}

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t length)
{
    auto &self = Self(inst);
    if (params[1].i == 1)
        std::snprintf(err, length, "this is one of those days");
    if (params[1].i >= 1)
        return -1;
    self.host = host;
    self.pace = params[0].i;
    self.order = new std::map<uint64_t, msfrs_item *>();
    self.indices = new std::set<uint32_t>();
    return 0;
}

void Fini(void *const inst)
{
    auto &self = Self(inst);
    Demand(self, self.classes == 0, "fini with classes left");
    Demand(self, self.order->empty(), "fini with items queued");
    delete self.order;
    delete self.indices;
}

int ClassAdded(void *const inst, msfrs_class *const c)
{
    auto &self = Self(inst);
    Demand(self, !Of(c).added && !Of(c).queued, "class_added: the state is not zeroed");
    Demand(self, self.indices->insert(c->index).second, "class_added: the index is taken");
    Demand(self, c->name && *c->name && c->weight > 0 && c->service && !c->users, "class_added: a field is wrong");
    Of(c).added = true;
    Of(c).weight = c->weight;
    ++self.classes;
    return 0;
}

void ClassChanged(void *const inst, msfrs_class *const c, const double old)
{
    Demand(Self(inst), Of(c).weight == old, "class_changed: the old weight is wrong");
    Of(c).weight = c->weight;
}

void ClassRemoved(void *const inst, msfrs_class *const c)
{
    auto &self = Self(inst);
    Demand(self, Of(c).added && !Of(c).queued && !Of(c).served && !Of(c).flows, "class_removed: it has items or flows");
    self.indices->erase(c->index);
    --self.classes;
}

int FlowAdded(void *const inst, msfrs_flow *const f)
{
    auto &self = Self(inst);
    Demand(self, Zero(Of(f).zero) && !Of(f).added && !f->head, "flow_added: the state is not zeroed");
    Demand(self, Of(f->cls).added, "flow_added: its class was not added");
    Demand(self, f->weight > 0 && f->key != 0, "flow_added: a field is wrong");
    Of(f).added = true;
    ++Of(f->cls).flows;
    return 0;
}

void FlowRemoved(void *const inst, msfrs_flow *const f)
{
    auto &self = Self(inst);
    Demand(self, Of(f).added && !Of(f).queued && !Of(f).served && !f->head, "flow_removed: it has items");
    --Of(f->cls).flows;
}

void Enqueued(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    auto &own = Of(i);
    Clock(self, now);
    Demand(self, own.life == Life::New || own.life == Life::Served, "enqueued: it was queued or had ended");
    Demand(self, Zero(own.zero), "enqueued: the item's state is not zeroed, or is shared with another plugin");
    Demand(self, i->enqueued == now && i->seq >= i->id && i->id > 0, "enqueued: time or sequence is wrong");
    if (own.life == Life::Served) {
        --Of(i->flow).served;
        --Of(i->flow->cls).served;
    }
    Demand(self, own.life == Life::New || own.remaining == i->remaining, "enqueued: what remains changed in silence");
    own.life = Life::Queued;
    own.estimate = i->est[0];
    Demand(self, i->remaining >= MSFRS_UNKNOWN, "enqueued: what remains is neither unknown nor a size");
    if (i->seq == i->id)
        own.remaining = i->remaining;
    ++Of(i->flow).queued;
    ++Of(i->flow->cls).queued;
    Demand(self, self.order->emplace(i->seq, i).second, "enqueued: a sequence number came twice");
    Demand(self, self.order->size() == 1 || i == self.order->rbegin()->second, "enqueued: seq went back");
    Counters(self, *i->flow, "enqueued");
}

msfrs_item *Pick(void *const inst, const msfrs_time now, msfrs_pick, msfrs_time *const wakeAt)
{
    auto &self = Self(inst);
    Clock(self, now);
    if (now < self.next) {
        *wakeAt = self.next;
        return nullptr;
    }
    Demand(self, !self.order->empty(), "pick without a backlog");
    return self.order->empty() ? nullptr : self.order->begin()->second;
}

void Picked(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    auto &own = Of(i);
    Clock(self, now);
    Demand(self, own.life == Life::Queued && self.order->erase(i->seq) == 1, "picked: it was not queued");
    Demand(self, !i->prev && !i->next, "picked: it was not taken out of its queue");
    Demand(self, own.remaining == i->remaining, "picked: what remains changed in silence");
    own.life = Life::Served;
    own.charged = 0;
    --Of(i->flow).queued;
    --Of(i->flow->cls).queued;
    ++Of(i->flow).served;
    ++Of(i->flow->cls).served;
    self.next = now + self.pace;
    Counters(self, *i->flow, "picked");
}

void Removed(void *const inst, msfrs_item *const i, const msfrs_time now, const msfrs_reason why)
{
    auto &self = Self(inst);
    Clock(self, now);
    Demand(self, Of(i).life == Life::Queued && self.order->erase(i->seq) == 1, "removed: it was not queued");
    Demand(self, !i->prev && !i->next, "removed: it was not taken out of its queue");
    Demand(self, why >= MSFRS_GONE && why <= MSFRS_SHUTDOWN, "removed: no known reason");
    Of(i).life = Life::Ended;
    --Of(i->flow).queued;
    --Of(i->flow->cls).queued;
    Counters(self, *i->flow, "removed");
}

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *const i, const uint32_t resource, const int64_t amount,
             const msfrs_time now)
{
    auto &self = Self(inst);
    Clock(self, now);
    Demand(self, resource < self.host->resources, "charged: an unknown resource");
    if (!i) {
        Demand(self, amount >= 0, "charged: negative without an item");
        return;
    }
    Demand(self, Of(i).life == Life::Served && i->flow == f, "charged: not in service, or another flow's");
    if (resource == 0) {
        Of(i).charged += amount;
        Demand(self, Of(i).charged + Of(i).estimate >= 0, "charged: more was given back than was spent");
    }
    Counters(self, *f, "charged");
}

void Done(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    auto &self = Self(inst);
    Clock(self, now);
    Demand(self, Of(i).life == Life::Served, "done: it was not in service, or this is the second time");
    Of(i).life = Life::Ended;
    --Of(i->flow).served;
    --Of(i->flow->cls).served;
    Counters(self, *i->flow, "done");
}

void Expected(void *const inst, msfrs_item *const i, const int64_t old, const msfrs_time now)
{
    auto &self = Self(inst);
    Clock(self, now);
    Demand(self, Of(i).life == Life::Queued || Of(i).life == Life::Served, "expected: neither queued nor in service");
    Demand(self, i->remaining >= MSFRS_UNKNOWN && i->remaining != old && Of(i).remaining == old,
           "expected: the old or the new value is wrong");
    Of(i).remaining = i->remaining;
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out)
{
    out[0] = c ? Of(c).queued : static_cast<double>(Self(inst).order->size());
    out[1] = c ? c->weight : -1;
}

const msfrs_param Params[] = {
    {"pace", MSFRS_INT, "ns", "0", 0, 1e12, nullptr, "least time between two picks"},
    {"refuse", MSFRS_CHOICE, "", "no", 0, 0, "no|loudly|silently", "whether to start"},
};

const msfrs_gauge GaugeTable[] = {
    {"queued", "items", "queued items of a class, or of all"},
    {"weight", "", "of a class"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, ClassAdded, ClassChanged, ClassRemoved, FlowAdded, FlowRemoved, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, Done, Gauges, Expected,
};

#ifdef NEEDS_COST
constexpr uint32_t Flags = MSFRS_FLOW_ORDER | MSFRS_NEEDS_COST;
#else
constexpr uint32_t Flags = MSFRS_FLOW_ORDER;
#endif

} // namespace

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin), MSFRS_SCHED, Flags,
    "checker", "first come, first served, and trusts nobody", "none: a test",
    sizeof(Instance), sizeof(ClassState), sizeof(FlowState), sizeof(ItemState),
    Params, sizeof(Params) / sizeof(*Params), GaugeTable, sizeof(GaugeTable) / sizeof(*GaugeTable),
    &Ops, nullptr, sizeof(Ops),
};
