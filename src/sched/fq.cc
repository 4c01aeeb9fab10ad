// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// fq: flow queueing. Round robin by bytes between the flows of a class, in which flows that have just begun to send go
/// first; between classes, deficit round robin by weight, as in drr.
///
/// Source: Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290 (2018), section 4.2; aqm codel beside it
/// makes FQ-CoDel. A flow that sends less than a quantum each time it has been idle for a round (a name server's
/// answer, a call's packet, the first of a page) does not wait for those that have a queue. Such a flow cannot starve
/// the others by itself: once served it comes behind them. Ever new flows can, as in the RFC, while each brings a
/// packet: bound them by what the host takes for a flow (msfrs-edge: `flow src`, or `flow host`).
///
/// Departures: every flow has a queue of its own, none is hashed to another's. A full buffer is the host's affair (the
/// RFC drops of the longest queue, as msfrs-edge does). Weights of classes and flows, which the RFC has not, multiply
/// the quantum. There is no share=user as in drr: who is new goes first, has nothing queued then, and counts as a user
/// only for that moment, so that a class's share would depend on how its users send.
///
/// Cost: O(1) while a quantum is at least the largest item; else O(flows of the class), twice at most.
#include "sched/class_flows.h"
#include "sched/new_first.h"

namespace {

using Fq = msfrs::ClassFlows<msfrs::NewFirst, msfrs::NewFirstTurn, false>;

} // namespace

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin), MSFRS_SCHED, MSFRS_FLOW_ORDER,
    "fq", "flow queueing: a round robin between flows in which new ones go first, classes by weight",
    "Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290 (2018), section 4.2",
    sizeof(Fq::Instance), sizeof(Fq::ClassState), sizeof(Fq::FlowState), 0,
    Fq::Params, Fq::ParamCount, &msfrs::DeficitGauge, 1, &Fq::Ops, nullptr, sizeof(Fq::Ops), Fq::Keeps,
};
