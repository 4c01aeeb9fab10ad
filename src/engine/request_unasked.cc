// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What servers send without a turn, and how it is paid for. Charged to the class as it comes it would be a debt of all
/// users of the class, though nobody of them has competed for it. So while others wait it is *owed* by its user:
///
///     owe():  owed += bytes                                      no counter of the scheduler changes
///     pay():  part = min(owed, quantum)                          as the user's next turn begins
///             owed -= part, SC += part / (w * UC), the turn is so much shorter
///
/// The class loses the turns that the user would have had anyway. A user who owes a quantum gets nothing more without a
/// turn (owes()), so that the debt is at most that, and one read of each of the user's connections. While nobody waits
/// bytes are charged as they come, which costs nothing (src/sched/msf.cc).
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

NamedFlow &RequestScheduler::Impl::flowOf(const Request &r) const
{
    return r.item ? static_cast<NamedFlow &>(*r.item->flow) : engine->flow(*r.cls, r.user);
}

void RequestScheduler::Impl::owe(NamedFlow &flow, const int64_t bytes, const msfrs_time now)
{
    touch(flow); // before, as in chargeExcess()
    if (engine->totals().queued.items == 0 && !wanted()) {
        engine->chargeFlow(flow, bytes, now);
        return;
    }
    flow.owed += bytes;
    flow.idleSince = now; // it is not forgotten meanwhile
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
