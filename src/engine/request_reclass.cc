// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Moves a request to another class, and checks what must hold of all requests in any state.
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

void RequestScheduler::reclass(Request &r, const uint32_t cls, const msfrs_time now)
{
    auto &self = *impl_;
    const auto &slot = self.slots.at(cls);
    if (r.stats == slot.stats)
        return;
    if (r.item) {
        const auto &user = static_cast<const NamedFlow &>(*r.item->flow).name();
        auto &flow = self.engine->flow(*slot.cls, user);
        self.touch(flow); // another account for the ledger
        r.item = self.engine->move(*r.item, flow, now);
    }
    if (r.state != Request::State::Resting)
        r.countHeld(now);
    Impl::count(r, -1);
    r.stats = slot.stats;
    Impl::count(r, 1);
    r.cls = slot.cls;
    self.pump(now);
}

std::string RequestScheduler::auditLaws() const
{
    const auto &self = *impl_;
    if (auto fault = self.engine->auditLaws(); !fault.empty())
        return fault;
    if (self.engine->totals().inService.items != self.served.size())
        return "what the engine has in service is not what the requests say";
    if (self.engine->totals().queued.items != self.waiting.size() + self.paused.size() + self.early.size())
        return "what the engine has queued is not what the requests say";
    for (const auto &slot : self.slots) {
        const auto &stats = slot.stats;
        const auto among = [&](const std::list<Request *> &list) {
            return std::count_if(list.begin(), list.end(), [&](const Request *const r) { return r->stats == stats; });
        };
        if (among(self.early) != stats->early || among(self.paused) != stats->paused ||
                among(self.resting) != stats->resting)
            return "class " + slot.stats->name + ": what queues early, is paused or rests is not what was counted";
    }
    for (const auto list : {&self.waiting, &self.paused, &self.served, &self.early}) {
        for (const auto *const r : *list) {
            if (!r->item || r->item->host != r || r->stats->name != r->item->flow->cls->name)
                return "a request is not of the class in which its item is";
        }
    }
    return {};
}

} // namespace msfrs
