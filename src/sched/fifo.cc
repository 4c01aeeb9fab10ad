// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// fifo: first come, first served, over all classes and flows. Weights play no part. A continuation takes its
/// place behind all that came before it. What a gateway without scheduling does once a window holds it back;
/// kept as the baseline, and for the packet hosts.
#include "plugin/msfrs_plugin.h"
#include "sched/heap.h"

#include <new>

namespace {

struct FlowState {
    msfrs_flow *flow;
    uint32_t place;
};

struct Traits {
    static uint32_t &Place(FlowState &f) { return f.place; }
    static double Key(const FlowState &f) { return static_cast<double>(f.flow->head->seq); }
    static bool Before(const FlowState &a, const FlowState &b) { return a.flow->head->seq < b.flow->head->seq; }
};

using Flows = msfrs::Heap<FlowState, Traits>; ///< flows with a backlog, by the age of their heads

void Settle(void *const inst, msfrs_flow *const f)
{
    static_cast<Flows *>(inst)->settle(*static_cast<FlowState *>(f->state), f->head != nullptr);
}

int Init(void *const inst, const msfrs_host *, const msfrs_value *, char *, size_t)
{
    new (inst) Flows();
    return 0;
}

void Fini(void *const inst) { static_cast<Flows *>(inst)->~Flows(); }

int FlowAdded(void *, msfrs_flow *const f)
{
    static_cast<FlowState *>(f->state)->flow = f;
    return 0;
}

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time) { Settle(inst, i->flow); }

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    const auto first = static_cast<Flows *>(inst)->top();
    return first ? first->flow->head : nullptr;
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time) { Settle(inst, i->flow); }
void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason) { Settle(inst, i->flow); }

const msfrs_sched_ops Ops = {
    Init, Fini, nullptr, nullptr, nullptr, FlowAdded, nullptr, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, nullptr, nullptr, nullptr,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin), MSFRS_SCHED, MSFRS_FLOW_ORDER,
    "fifo", "first come, first served", "textbook; the order of a gateway that does not schedule",
    sizeof(Flows), 0, sizeof(FlowState), 0,
    nullptr, 0, nullptr, 0, &Ops, nullptr,
};
