// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/audit.h"

#include "engine/engine_records.h"
#include "engine/request_state.h"

#include <algorithm>

namespace msfrs {

std::string AuditLaws(const Engine &engine)
{
    const auto differ = [](const Tally &a, const Tally &b) { return a.items != b.items || a.cost != b.cost; };
    Tally sum;
    const auto &totals = engine.totals();
    for (const auto t : {&totals.dropped, &totals.queued, &totals.inService, &totals.done}) {
        sum.items += t->items;
        sum.cost += t->cost;
    }
    if (differ(sum, totals.offered))
        return "offered is not dropped + queued + in service + done";

    Tally queued;
    int64_t backlogCost = 0;
    const auto add = [](msfrs_class &to, const auto &of) { // a flow or a class
        to.backlog += of.backlog;
        to.fresh += of.fresh;
        to.in_service += of.in_service;
        to.backlog_cost += of.backlog_cost;
    };
    std::vector<msfrs_class> sums(engine.records_.size()); // by index; children come after parents: reverse order
    for (auto it = engine.classList_.rbegin(); it != engine.classList_.rend(); ++it) {
        const auto c = *it;
        auto &own = sums[c->index];
        for (const auto &named : engine.records_[c->index]->flows) {
            const auto &f = *named.second->flow;
            uint32_t length = 0, flowFresh = 0;
            int64_t flowCost = 0;
            for (const msfrs_item *i = f.head; i; i = i->next) {
                const auto &record = static_cast<const Engine::ItemRecord &>(*i);
                if (!record.is(Engine::ItemRecord::Queued) || i->flow != &f || (i->next ? i->next->prev : f.tail) != i)
                    return "flow " + f.name() + ": its list is broken";
                ++length;
                flowFresh += i->attained == 0;
                flowCost += i->est[0];
                Count(queued, engine.offeredCost(record));
            }
            if (length != f.backlog || flowFresh != f.fresh || flowCost != f.backlog_cost)
                return "flow " + f.name() + ": its counters are not the sums over its queue";
            own.users += f.backlog + f.in_service > 0;
            add(own, f);
        }
        if (own.users != c->users || own.backlog != c->backlog || own.fresh != c->fresh ||
                own.in_service != c->in_service || own.backlog_cost != c->backlog_cost)
            return std::string("class ") + c->name + ": its counters are not the sums over what it holds";
        if (c->parent) {
            auto &above = sums[c->parent->index];
            above.users += own.users;
            add(above, own);
        } else {
            backlogCost += own.backlog_cost;
        }
    }
    if (differ(queued, totals.queued) || (engine.draws_ && queued.items != engine.drawable_.size()) ||
            backlogCost != engine.backlogCost_)
        return "the items in the queues are not those counted as queued";
    return "";
}

std::string AuditLaws(const RequestScheduler &scheduler)
{
    const auto &self = *scheduler.impl_;
    if (auto fault = AuditLaws(*self.engine); !fault.empty())
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
