// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// fq: flow queueing. Round robin by bytes between the flows of a class, in which flows that have just begun to send go
/// first; between classes, deficit round robin by weight, as in drr.
///
/// Source: Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290 (2018), section 4.2; with aqm codel it makes
/// FQ-CoDel. A flow that sends less than a quantum after each idle round (a DNS reply, a packet of a call, the first of
/// a page) does not wait for flows with a queue. One such flow cannot starve the others: once served, it queues behind
/// them. A stream of new flows can, as in the RFC, while each brings a packet: bound it by the host's definition of a
/// flow (msfrs-edge: `flow src`, or `flow host`).
///
/// Departures: every flow has its own queue, without hashing. A full buffer is left to the host (the RFC drops from the
/// longest queue, as msfrs-edge does). Weights of classes and flows, which the RFC does not have, multiply the quantum.
/// There is no share=user as in drr: a new flow that sends one packet has nothing queued afterwards and counts as a
/// user only for that moment, so a class's share would depend on how its users send.
///
/// Cost: O(1) while a quantum is at least the largest item; else O(flows of the class), at most twice.
#include "plugin/describe.h"
#include "sched/class_flows.h"
#include "sched/new_first.h"

namespace {

using Fq = msfrs::ClassFlows<msfrs::NewFirst, msfrs::NewFirstTurn, false>;

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Fq::Instance, Fq::ClassState, Fq::FlowState>(
    "fq", "flow queueing: round robin between flows in which new flows go first; classes by weight",
    "Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290 (2018), section 4.2", MSFRS_FLOW_ORDER, Fq::Ops,
    {Fq::Params, Fq::ParamCount}, msfrs::DeficitGauge, Fq::Keeps);
