// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The engine's self-inspection: its laws, recounted from scratch, and the gauges of its plugins.
#include "engine/engine_records.h"

namespace msfrs {

namespace {

std::vector<double> Read(const msfrs_plugin &plugin, void (*const gauges)(void *, const msfrs_class *, double *),
                         void *const state, const msfrs_class *const c)
{
    std::vector<double> values(plugin.n_gauges);
    if (gauges && !values.empty())
        gauges(state, c, values.data());
    return values;
}

} // namespace

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
    const auto add = [](msfrs_class &to, const auto &of) { // a flow or a class
        to.backlog += of.backlog;
        to.fresh += of.fresh;
        to.in_service += of.in_service;
        to.backlog_cost += of.backlog_cost;
    };
    std::vector<msfrs_class> sums(records_.size()); // by index; children come after parents: reverse order
    for (auto it = classList_.rbegin(); it != classList_.rend(); ++it) {
        const auto c = *it;
        auto &own = sums[c->index];
        for (const auto &named : records_[c->index]->flows) {
            const auto &f = *named.second->flow;
            uint32_t length = 0, flowFresh = 0;
            int64_t flowCost = 0;
            for (const msfrs_item *i = f.head; i; i = i->next) {
                const auto &record = static_cast<const ItemRecord &>(*i);
                if (!record.is(ItemRecord::Queued) || i->flow != &f || (i->next ? i->next->prev : f.tail) != i)
                    return "flow " + f.name() + ": its list is broken";
                ++length;
                flowFresh += i->attained == 0;
                flowCost += i->est[0];
                Count(queued, offeredCost(record));
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
    if (differ(queued, totals_.queued) || (draws_ && queued.items != drawable_.size()) || backlogCost != backlogCost_)
        return "the items in the queues are not those counted as queued";
    return "";
}

std::vector<double> Engine::gauges(const msfrs_class *const c) const
{
    return Read(scheduler(), schedOps_->gauges, schedState_, c);
}

std::vector<double> Engine::aqmGauges(const msfrs_class *const c) const
{
    return aqmOps_ ? Read(*aqm(), aqmOps_->gauges, aqmState_, c) : std::vector<double>();
}

} // namespace msfrs
