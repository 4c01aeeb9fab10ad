// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The state of each queue for AQMs that decide by sojourn time (CoDel, PIE).
///
/// Items wait in the scheduler's queues, and each of these has a state: one per flow with a scheduler that serves flows
/// in turn (fq, drr), one per class with one that does not separate flows (diffserv), one for all with fifo. The flows
/// of a class with MSFRS_AGGREGATE are one queue.
#pragma once

#include "aqm/buffer.h"

namespace msfrs {

/// The first rows of the parameter table of an AQM that uses Watched, in this order.
constexpr msfrs_param QueueParam = {"queue", MSFRS_CHOICE, "", "flow", 0, 0, "flow|class|all",
                                    "scope of one queue and its state: a flow, a class, or all items; match it to the "
                                    "scheduler's queues"};
constexpr msfrs_param FullPacketParam = {"packet", MSFRS_INT, "bytes", "1514", 1, 65535, nullptr,
                                         "size of a full packet on the link; such a backlog is no standing queue"};

inline msfrs_time Nanoseconds(const double ms) { return static_cast<msfrs_time>(ms * 1e6); }

/// \tparam State of one queue; zeroed memory is right for a new one
template <class State>
class Watched {
public:
    /// A queue, without the item that arrives or leaves.
    struct Queue {
        State &state;
        uint32_t items;
        int64_t bytes; ///< an item of unknown size (a request) counts as a full packet
    };

    /// \param params a table's values, of which the first are those above
    void init(const msfrs_host &host, const msfrs_value *const params)
    {
        scope_ = params[0].i;
        packet_ = params[1].i;
        exact_ = host.exact;
    }

    Queue of(const msfrs_item &i, const msfrs_queue_view &q)
    {
        const auto &f = *i.flow;
        const auto &c = *f.cls;
        if (scope_ == All)
            return queue(&all_, q.length, q.bytes);
        if (scope_ == Class || (c.flags & MSFRS_AGGREGATE))
            return queue(c.aqm_state, c.backlog, c.backlog_cost);
        return queue(f.aqm_state, f.backlog, f.backlog_cost);
    }

    /// The state for the gauges of a class, or of the instance (null); null if there is none.
    const State *stateOf(const msfrs_class *const c) const
    {
        if (!c)
            return scope_ == All ? &all_ : nullptr;
        return scope_ == Class || (scope_ == Flow && (c->flags & MSFRS_AGGREGATE))
                   ? static_cast<State *>(c->aqm_state)
                   : nullptr;
    }

    int64_t packet() const { return packet_; }

private:
    enum Scope { Flow, Class, All };

    Queue queue(void *const state, const uint32_t items, const int64_t bytes) const
    {
        return {*static_cast<State *>(state), items, exact_ ? bytes : items * packet_};
    }

    int64_t scope_, packet_;
    bool exact_;
    State all_;
};

} // namespace msfrs
