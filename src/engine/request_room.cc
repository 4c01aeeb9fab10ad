// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Whose request is refused when the queue is full: longest queue drop, the law of push_out.h, among users. So a user
/// may have all of the queue that others leave, as the address of a NAT or a filter needs, and no other user is refused
/// for it. Cost: O(users), but only for an arrival at a full queue.
#include "engine/request_state.h"

namespace msfrs {

bool RequestScheduler::Impl::makeRoom(const NamedFlow &arrival, const msfrs_time now)
{
    const auto *most = &arrival;
    double length = (arrival.fresh + 1) / arrival.cls->weight;
    for (const auto &slot : slots) {
        engine->eachFlow(*slot.cls, [&](const NamedFlow &flow) {
            if (const double queued = flow.fresh / flow.cls->weight; queued > length) {
                most = &flow;
                length = queued;
            }
        });
    }
    if (most == &arrival)
        return false;
    for (auto item = most->tail; item; item = item->prev) {
        auto &last = *static_cast<Request *>(item->host);
        if (last.state != Request::State::Queued || last.firstWait >= 0)
            continue; // a paused response is half delivered, and a later exchange cannot be refused
        engine->remove(*last.item, now, MSFRS_GONE);
        ++last.stats->refusedTotal;
        refuse(last, now, Refusal::Total);
        return true;
    }
    return false;
}

} // namespace msfrs
