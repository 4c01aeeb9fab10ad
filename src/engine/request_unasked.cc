// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Bytes that servers send without a turn, and how they are paid for. Charged to the class on arrival they would be a
/// debt of all its users, though none of them competed for them. So while others wait, their user *owes* them:
///
///     owe():  owed += bytes                                      no counter of the scheduler changes
///     pay():  part = min(owed, quantum)                          as the user's next turn begins
///             owed -= part, SC += part / (w * UC), the turn is shorter by part
///
/// The class loses only turns that the user would have had anyway. A user who owes a quantum gets nothing more without
/// a turn (owes()), so the debt is at most a quantum and one read of each of the user's connections. While nobody
/// waits, bytes are charged on arrival, which costs nothing (src/sched/msf.cc).
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

NamedFlow &RequestScheduler::Impl::flowOf(const Request &r) const
{
    return r.item ? static_cast<NamedFlow &>(*r.item->flow) : engine->flow(*r.cls, r.user);
}

void RequestScheduler::Impl::owe(NamedFlow &flow, const int64_t bytes, const msfrs_time now)
{
    touch(flow); // first, as in chargeExcess()
    if (engine->totals().queued.items == 0 && !wanted()) {
        engine->chargeFlow(flow, bytes, now);
        return;
    }
    flow.owed += bytes;
    flow.idleSince = now; // keeps the flow from being forgotten
}

int64_t RequestScheduler::Impl::pay(const Request &r, const msfrs_time now)
{
    auto &flow = flowOf(r);
    const auto part = std::min(flow.owed, config.quantum);
    if (part > 0) {
        flow.owed -= part;
        engine->charge(*r.item, 0, part, now);
    }
    return part;
}

bool RequestScheduler::owes(const Request &r) const
{
    const auto &self = *impl_;
    return r.state != Request::State::Refused && self.config.quantum > 0 && self.flowOf(r).owed >= self.config.quantum;
}

} // namespace msfrs
