// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// An output port: a scheduler, and an AQM if wanted, before a link. The engine is the only queue: one packet at a time
/// is on the link, and takes its whole transmission time.
#pragma once

#include "engine/engine.h"
#include "sim/link/link.h"

#include <utility>

namespace msfrs::sim {

class Port {
public:
    /// \param rate bit/s, > 0
    /// \param limit packets that the engine queues at most, 0: none
    /// \param framing bytes that a packet has on the link beyond est[0]
    Port(Clock &clock, const double rate, Engine::Part sched, Engine::Part aqm, const uint32_t limit, EngineHost host,
         const int64_t framing = 0):
        engine(std::move(sched), std::move(aqm), Engine::Cost::Exact, 1, limit, std::move(host)), clock_(clock),
        link_(clock, rate, INT64_MAX, 0), framing_(framing)
    {}
    ~Port()
    {
        if (onLink_)
            engine.done(*onLink_, clock_.now()); // the host must end the packet in service
    }
    Port(const Port &) = delete;

    /// Sends the next packet if the link is free: to be called after an arrival, and by `sent`.
    /// \param lost see Engine::pick()
    void transmit(const Engine::Lost &lost = {})
    {
        msfrs_time wake = 0;
        if (onLink_ || !(onLink_ = engine.pick(clock_.now(), MSFRS_PICK_ANY, wake, lost)))
            return;
        link_.send(onLink_->est[0] + framing_, [this] {
            const msfrs_item copy = *onLink_;
            engine.done(*std::exchange(onLink_, nullptr), clock_.now());
            sent(copy);
        });
    }

    Engine engine;
    std::function<void(const msfrs_item &)> sent; ///< a packet has passed the link and is done; this is a copy of it

private:
    Clock &clock_;
    Link link_;
    int64_t framing_;
    msfrs_item *onLink_ = nullptr;
};

} // namespace msfrs::sim
