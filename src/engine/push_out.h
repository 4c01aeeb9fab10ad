// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Selects the packet that a full buffer drops: the last of the longest queue. So a flood drops its own packets, and a
/// flow that sends less than its share loses nothing.
///
/// Longest queue drop (Suter, Lakshman, Stiliadis, Choudhury, "Buffer management schemes for supporting TCP in gigabit
/// routers with per-flow queueing", 1999; section III.B), in two steps like the schedulers' shares: the class that has
/// most for its weight, and of that class the flow that has most for its weight.
///
///     length = max(bytes, packets * packet) / weight
///
/// The buffer counts packets, so a small packet takes as much room as a full one: if only bytes counted, a flood of the
/// smallest packets would push out all other flows. A packet that the link will split counts as the packets it becomes.
///
/// The arrival counts as queued. If its own flow is the longest, the arrival is dropped: a lone flow has tail drop.
/// Cost: O(log classes + log flows of the class) for each packet that arrives or leaves.
#pragma once

#include "engine/engine.h"
#include "sched/heap.h"

#include <algorithm>
#include <deque>

namespace msfrs {

class PushOut {
public:
    /// \param packet bytes of a full packet, > 0
    explicit PushOut(const int64_t packet): packet_(packet) {}

    /// An item entered or left the flow's queue.
    void changed(NamedFlow &f)
    {
        auto &c = of(*f.cls);
        f.buffered.length = length(f.backlog, f.backlog_cost, f.weight);
        c.flows.settle(f, f.backlog > 0);
        reweigh(*f.cls);
    }
    /// The weight or the backlog of the class has changed.
    void reweigh(const msfrs_class &cls)
    {
        auto &c = of(cls);
        c.length = length(cls.backlog, cls.backlog_cost, cls.weight);
        classes_.settle(c, cls.backlog > 0);
    }
    /// The class, which is empty, is removed.
    void removed(const msfrs_class &cls)
    {
        if (cls.index < records_.size())
            records_[cls.index] = Class();
    }

    /// The flow that must lose its last item to an arrival of `bytes` for `f`, or f itself.
    NamedFlow &longest(NamedFlow &f, const int64_t bytes)
    {
        auto &own = of(*f.cls);
        const double withIt = length(f.cls->backlog + 1, f.cls->backlog_cost + bytes, f.cls->weight);
        const auto *const top = classes_.top();
        if (top && top != &own && top->length > withIt)
            return *top->flows.top();
        auto *const first = own.flows.top();
        return first && first->buffered.length > length(f.backlog + 1, f.backlog_cost + bytes, f.weight) ? *first : f;
    }

private:
    struct FlowTraits {
        static double Key(const NamedFlow &f) { return -f.buffered.length; }
        static bool Before(const NamedFlow &, const NamedFlow &) { return false; }
        static uint32_t &Place(NamedFlow &f) { return f.buffered.place; }
    };
    struct Class {
        double length = 0;
        uint32_t place = 0;
        Heap<NamedFlow, FlowTraits> flows; ///< those with items queued
    };
    struct ClassTraits {
        static double Key(const Class &c) { return -c.length; }
        static bool Before(const Class &, const Class &) { return false; }
        static uint32_t &Place(Class &c) { return c.place; }
    };

    double length(const uint32_t items, const int64_t bytes, const double weight) const
    {
        return static_cast<double>(std::max(bytes, items * packet_)) / weight;
    }
    Class &of(const msfrs_class &cls)
    {
        if (records_.size() <= cls.index)
            records_.resize(cls.index + 1);
        return records_[cls.index];
    }

    int64_t packet_;
    std::deque<Class> records_;                   ///< by index; stays where it is, since the heap points to it
    Heap<Class, ClassTraits> classes_;            ///< those with items queued
};

} // namespace msfrs
