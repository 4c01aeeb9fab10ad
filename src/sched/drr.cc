// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// drr: deficit round robin, at two levels: between the classes, and within a class between its flows.
///
/// Paper: M. Shreedhar, G. Varghese, "Efficient fair queuing using deficit round-robin", IEEE/ACM Transactions on
/// Networking 4 (3), 1996; the quantum of queue i is Q_i = quantum * weight of i. For any two members of one level
/// that stay backlogged, over any interval,
///
///     | service_i / w_i - service_j / w_j | <= quantum + Max_i / w_i + Max_j / w_j        (Max: largest item)
///
/// share=class  a class's weight is what all its users have together: 4:2:1 between classes, whatever the number of
///              users; what the MSF-RS paper calls class-based weighted fairness, and its section 2.3 finds wrong for
///              users at a gateway: each of many in a heavy class may have less than one in a light class.
/// share=user   a class's weight is what each of its users has: the class's is w_i * UC_i, as in msf.
/// Within a class a flow's share is in proportion to its own weight.
///
/// Where this departs from the paper (round.h has the reasons): costs that are told afterwards make a deficit
/// negative, and an item larger than the deficit waits for as many rounds as it takes, which are counted and not
/// walked. Every item costs at least one byte, so that a flow of empty ones cannot keep the turn for ever.
///
/// Requests are no packets (MSF-RS, sections 2.1 and 2.2): their cost is unknown when they are picked, so that a
/// flow's turn goes on until answers come back. The shares hold all the same, with bursts of a round trip.
///
/// Cost: O(1) while quantum * weight is at least the largest item; below that the rounds that serve nobody are walked
/// twice at most, O(members of the level).
#include "plugin/msfrs_plugin.h"
#include "sched/class_round.h"
#include "sched/prefetch.h"

namespace {

struct FlowState : msfrs::Turn {
    msfrs_flow *flow;

    bool queued() const { return flow->backlog > 0; }
};

struct ClassState : msfrs::Turn {
    msfrs_class *cls;
    msfrs::Round<FlowState> members;

    bool queued() const { return cls->backlog > 0; }
};

using Instance = msfrs::ClassRound<ClassState>;

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }
FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }

int Init(void *const inst, const msfrs_host *, const msfrs_value *const params, char *, size_t)
{
    Self(inst).init(params);
    return 0;
}

int ClassAdded(void *, msfrs_class *const c)
{
    StateOf(c).cls = c;
    return 0;
}

void ClassRemoved(void *const inst, msfrs_class *const c) { Self(inst).forget(StateOf(c)); }

int FlowAdded(void *, msfrs_flow *const f)
{
    StateOf(f).flow = f;
    return 0;
}

void FlowRemoved(void *, msfrs_flow *const f) { StateOf(f->cls).members.forget(StateOf(f)); }

int FlowForgettable(void *, const msfrs_flow *const f) { return StateOf(f).deficit >= 0; }

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time)
{
    Self(inst).enqueued(StateOf(i->flow->cls), StateOf(i->flow), i->flow->backlog == 1);
}

/// What the picks after this one will look at: a flow four turns ahead, its items two turns and one turn ahead.
__attribute__((always_inline)) inline void PrefetchAfter(const msfrs_item &i)
{
    const auto after = [](const FlowState &f) -> const FlowState & { return *static_cast<const FlowState *>(f.next); };
    const auto &one = after(StateOf(i.flow)), &two = after(one), &four = after(after(two));
    if (one.queued())
        msfrs::Prefetch(one.flow->head->next);
    msfrs::Prefetch(two.flow->head);
    msfrs::Prefetch(reinterpret_cast<const char *>(&four) - 64); // a flow stands in front of its state
}

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    auto &self = Self(inst);
    const auto item = self.next([&](ClassState &c) {
        return c.members.select([](const FlowState &f) { return msfrs::CostOf(*f.flow->head); },
                                [&](const FlowState &f) { return self.quantum() * f.flow->weight; }).flow->head;
    });
    if (item)
        PrefetchAfter(*item);
    return item;
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time)
{
    Self(inst).left(StateOf(i->flow->cls), StateOf(i->flow), i->flow->backlog == 0, msfrs::CostOf(*i));
}

void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason)
{
    Self(inst).left(StateOf(i->flow->cls), StateOf(i->flow), i->flow->backlog == 0, 0);
}

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *, const uint32_t resource, const int64_t amount,
             msfrs_time)
{
    if (resource == 0)
        Self(inst).charged(StateOf(f->cls), StateOf(f), static_cast<double>(amount));
}

void Gauges(void *, const msfrs_class *const c, double *const out) { out[0] = c ? StateOf(c).deficit : 0; }

constexpr msfrs_param Params[] = {msfrs::QuantumParam, msfrs::ShareParam};

const msfrs_sched_ops Ops = {
    Init, nullptr, ClassAdded, nullptr, ClassRemoved, FlowAdded, FlowRemoved, FlowForgettable, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, nullptr, Gauges,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin), MSFRS_SCHED, MSFRS_FLOW_ORDER,
    "drr", "deficit round robin between classes and, within a class, between flows",
    "Shreedhar, Varghese, Efficient fair queuing using deficit round-robin (1996)",
    sizeof(Instance), sizeof(ClassState), sizeof(FlowState), 0,
    Params, sizeof(Params) / sizeof(*Params), &msfrs::DeficitGauge, 1, &Ops, nullptr, sizeof(Ops),
};
