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
/// share=class  all users of a class share its weight: 4:2:1 between classes, whatever the number of users. The MSF-RS
///              paper calls this class-based weighted fairness, and finds it wrong for users at a gateway (section
///              2.3): each of many users in a heavy class may have less than a single one in a light class.
/// share=user   each user of a class has its weight: the class has w_i * UC_i, as in msf.
/// Within a class a flow's share is in proportion to its own weight.
///
/// Departures from the paper: see round.h, and CostOf() in class_round.h.
///
/// Requests are not packets (MSF-RS, sections 2.1 and 2.2): their cost is unknown when they are picked, so a flow's
/// turn lasts until responses arrive. The shares hold all the same, with bursts of one RTT.
///
/// Cost: O(1) while quantum * weight is at least the largest item; below that, rounds that serve no member are walked
/// at most twice, O(members of the level).
#include "plugin/describe.h"
#include "sched/class_flows.h"

namespace {

using Drr = msfrs::ClassFlows<msfrs::Round, msfrs::Turn, true>;

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Drr::Instance, Drr::ClassState, Drr::FlowState>(
    "drr", "deficit round robin between classes and, within a class, between flows",
    "Shreedhar, Varghese, Efficient fair queuing using deficit round-robin (1996)", MSFRS_FLOW_ORDER, Drr::Ops,
    {Drr::Params, Drr::ParamCount}, msfrs::DeficitGauge, Drr::Keeps);
