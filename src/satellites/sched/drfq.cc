// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// drfq: dominant resource fair queueing. Flows get equal time on the resource that each of them needs most.
///
/// Paper: Ghodsi, Sekar, Zaharia, Stoica, "Multi-resource fair queueing for packet processing", SIGCOMM 2012; ATFQ
/// (Zhang et al., 2015) compares itself with it. For packet k of flow i with weight w_i and processing times L(p, j):
///
///     memory=none      S(p^k) = max(V(a), F(p^{k-1})),        F(p) = S(p) + max_j L(p, j) / w_i
///     memory=dovetail  S(p^k, j) = max(V(a), F(p^{k-1}, j)), F(p, j) = S(p, j) + L(p, j) / w_i
///     next:            the flow whose first packet has the least S, or the least max_j S(p, j)
///
/// Dove-tailing lets a flow make up on one resource for time it left unused there, so that packets with alternating
/// resource demands fit into each other. This memory also means that a flow whose dominant resource shifts is favoured
/// until the other resource's clock has caught up (ATFQ, figure 5(a)).
///
/// Deviations from the paper:
///   - V is the greatest S picked so far instead of that of the packets in service: it never decreases, and no tag
///     needs a reset when the system empties.
///   - V is applied when a flow with an empty queue gets a packet, not at every arrival. For memory=none this is the
///     same. For dovetail it preserves the behaviour of figure 5(a): a shallow queue does not shorten the memory of a
///     backlogged flow.
///   - There is one V for all resources. With a V_j for each, a flow that becomes active would inherit the time that
///     others left unused on a resource that none of them needed, and would be served before them until it has used it
///     up. The price: a flow whose queue empties forgets the time that it left unused itself.
///   - Ties go to the flow that was added first. An item that needs no time at all counts as one unit of time on each
///     resource, so that a flow of such items cannot go first for ever.
///
/// Times are whole numbers of 10^-4 microseconds (multi_resource.h). A new weight applies from the next packet
/// picked. Cost: O(log flows) per item.
#include "plugin/describe.h"
#include "sched/heap.h"
#include "satellites/sched/multi_resource.h"

#include <new>

namespace {

using namespace msfrs;

enum Memory { None, Dovetail };

struct FlowState {
    msfrs_flow *flow;
    uint64_t number; ///< order in which flows were added
    uint32_t place;
    Stamp finish[MSFRS_RESOURCES]; ///< F of the last packet, equal to S of the first in the queue

    Stamp start() const { return *std::max_element(std::begin(finish), std::end(finish)); }
};

struct Traits {
    static uint32_t &Place(FlowState &f) { return f.place; }
    static double Key(const FlowState &f) { return static_cast<double>(f.start()); }
    static bool Before(const FlowState &a, const FlowState &b) // equal doubles may hide a difference
    {
        const auto sa = a.start(), sb = b.start();
        return sa != sb ? sa < sb : a.number < b.number;
    }
};

struct Instance {
    int64_t memory, rate;
    uint32_t resources;
    uint64_t flows;                 ///< so far
    size_t known;                   ///< existing flows
    Stamp virtualTime;              ///< V
    Heap<FlowState, Traits> queued; ///< flows with a backlog
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *, size_t)
{
    const auto self = new (inst) Instance();
    self->memory = params[0].i;
    self->rate = params[1].i;
    self->resources = host->resources;
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

int FlowAdded(void *const inst, msfrs_flow *const f)
{
    StateOf(f).flow = f;
    StateOf(f).number = Self(inst).flows++;
    return MakeRoom(Self(inst).queued, ++Self(inst).known);
}

void FlowRemoved(void *const inst, msfrs_flow *) { --Self(inst).known; }

/// A flow that is not ahead of V would restart with V anyway.
int FlowForgettable(void *const inst, const msfrs_flow *const f)
{
    return StateOf(f).start() <= Self(inst).virtualTime;
}

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    auto &flow = StateOf(i->flow);
    if (i->flow->backlog != 1)
        return;
    for (auto &finish : flow.finish)
        finish = std::max(finish, self.virtualTime);
    self.queued.settle(flow, true);
}

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    const auto first = Self(inst).queued.top();
    return first ? first->flow->head : nullptr;
}

void Spend(const Instance &self, FlowState &flow, const Times &times)
{
    const auto perTick = StampPerTick(flow.flow->cls->weight * flow.flow->weight);
    const auto dominant = *std::max_element(std::begin(times.on), std::end(times.on));
    const Ticks least = dominant > 0 ? 0 : 1;
    if (self.memory == Dovetail) {
        for (uint32_t j = 0; j < self.resources; ++j)
            flow.finish[j] += ToStamp(std::max(times.on[j], least), perTick);
    } else {
        flow.finish[0] += ToStamp(std::max(dominant, least), perTick);
    }
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    auto &flow = StateOf(i->flow);
    // The heap still holds the picked flow: on top, unless the host picked it out of turn. In that case V follows the
    // top, so that flows becoming active need not wait for one that is far ahead.
    self.virtualTime = std::max(self.virtualTime, self.queued.top()->start());
    Spend(self, flow, TimesOf(*i, self.resources, self.rate));
    self.queued.settle(flow, i->flow->head != nullptr);
}

void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason)
{
    if (!i->flow->head)
        Self(inst).queued.settle(StateOf(i->flow), false);
}

/// Charges bytes of the flow without an item as time on the link.
void Charged(void *const inst, msfrs_flow *const f, msfrs_item *, const uint32_t resource, const int64_t amount,
             msfrs_time)
{
    auto &self = Self(inst);
    if (resource != 0)
        return;
    Times times{};
    times.on[self.resources - 1] = LinkTime(amount, self.rate);
    Spend(self, StateOf(f), times);
    self.queued.settle(StateOf(f), f->head != nullptr);
}

void Gauges(void *const inst, const msfrs_class *, double *const out)
{
    out[0] = Microseconds(Self(inst).virtualTime);
}

const msfrs_param Params[] = {
    {"memory", MSFRS_CHOICE, "", "none", 0, 0, "none|dovetail",
     "none: one clock for a flow; dovetail: a clock for each resource, so that unused time on one is made up"},
    {"rate", MSFRS_INT, "bit/s", "1000000000", 1, 8e11, nullptr,
     "rate of the link, which converts bytes to transmission time"},
};

const msfrs_gauge GaugeTable[] = {
    {"virtual_time", "us", "virtual time V"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, nullptr, nullptr, nullptr, FlowAdded, FlowRemoved, FlowForgettable, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, nullptr, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, void, FlowState>(
    "drfq", "dominant resource fair queueing: equal time on the resource that each flow needs most",
    "Ghodsi et al., Multi-resource fair queueing for packet processing (2012)",
    MSFRS_NEEDS_COST | MSFRS_MULTI_RESOURCE | MSFRS_FLOW_ORDER, Ops, Params, GaugeTable);
