// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// fifo: first come, first served, over all classes and flows; weights are ignored. A continuation queues behind
/// everything that came before it. This is what a gateway without scheduling does once a window holds it back; it is
/// the baseline, and serves the packet hosts. Every call is O(1).
#include "plugin/describe.h"
#include "sched/item_list.h"

namespace {

msfrs::ItemList &Queue(void *const inst) { return *static_cast<msfrs::ItemList *>(inst); }

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time) { Queue(inst).append(*i); }

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    return Queue(inst).head();
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time) { Queue(inst).erase(*i); }
void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason) { Queue(inst).erase(*i); }

const msfrs_sched_ops Ops = {
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, nullptr, nullptr, nullptr,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<msfrs::ItemList, void, void, msfrs::ItemLinks>(
    "fifo", "first come, first served",
    "textbook; the order of a gateway that does not schedule", MSFRS_FLOW_ORDER, Ops);
