// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The engine's laws, recounted from scratch.
#include "engine/engine_records.h"

namespace msfrs {

std::string Engine::auditLaws() const
{
    const auto differ = [](const Tally &a, const Tally &b) { return a.items != b.items || a.cost != b.cost; };
    Tally sum;
    for (const auto t : {&totals_.dropped, &totals_.queued, &totals_.inService, &totals_.done}) {
        sum.items += t->items;
        sum.cost += t->cost;
    }
    if (differ(sum, totals_.offered))
        return "offered is not dropped + queued + in service + done";

    Tally queued;
    int64_t backlogCost = 0;
    for (const auto c : classList_) {
        uint32_t users = 0, backlog = 0, fresh = 0, inService = 0;
        int64_t cost = 0;
        for (const auto &named : records_[c->index]->flows) {
            const auto &f = *named.second;
            uint32_t length = 0, flowFresh = 0;
            int64_t flowCost = 0;
            for (const msfrs_item *i = f.head; i; i = i->next) {
                const auto &record = static_cast<const ItemRecord &>(*i);
                if (!record.queued || i->flow != &f || (i->next ? i->next->prev : f.tail) != i)
                    return "flow " + f.name + ": its list is broken";
                ++length;
                flowFresh += i->attained == 0;
                flowCost += i->est[0];
                Count(queued, record.offeredCost);
            }
            if (length != f.backlog || flowFresh != f.fresh || flowCost != f.backlog_cost)
                return "flow " + f.name + ": its counters are not the sums over its queue";
            users += f.backlog + f.in_service > 0;
            backlog += f.backlog;
            fresh += f.fresh;
            inService += f.in_service;
            cost += f.backlog_cost;
        }
        if (users != c->users || backlog != c->backlog || fresh != c->fresh || inService != c->in_service ||
                cost != c->backlog_cost)
            return std::string("class ") + c->name + ": its counters are not the sums over its flows";
        backlogCost += cost;
    }
    if (differ(queued, totals_.queued) || queued.items != drawable_.size() || backlogCost != backlogCost_)
        return "the items in the queues are not those counted as queued";
    return "";
}

} // namespace msfrs
