// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A link behind an AQM and a scheduler, in simulated time. Its sources are simpler than TCP: constant rate, or a
/// window with additive increase and multiplicative decrease. They show which of two AQMs is fairer, but do not
/// reproduce TCP's figures.
#pragma once

#include "sim/link/port.h"
#include "support/host.h"
#include "support/plugins.h"

#include <memory>
#include <vector>

namespace msfrs::test {

class Bottleneck {
public:
    struct Source {
        msfrs_flow *flow = nullptr;
        int64_t size = 512;    ///< bytes of a packet
        double rate = 0;       ///< bytes/s; 0: adaptive
        msfrs_time rtt = 0;    ///< of an adaptive source, without queueing
        double window = 1;     ///< packets of a round
        uint32_t burst = 1;    ///< packets that a constant rate sends back to back
        uint32_t left = 0;     ///< packets of a window or a burst still to be sent
        bool hit = false;      ///< whether one of its packets was lost or marked
        uint64_t sent = 0, lost = 0, marked = 0;
        int64_t delivered = 0; ///< bytes
    };

    /// \param rate bytes/s; \param limit packets that the host queues at most; 0: only the AQM's limit holds
    Bottleneck(const Variant &sched, const Variant &aqm, double rate, uint32_t limit = 0, uint64_t seed = 1);
    Engine &engine() { return port_.engine; }
    /// A constant rate of bytes/s in bursts of `burst` packets. Gaps have a jitter of up to one half, so that no two
    /// sources are in step.
    Source &constant(msfrs_flow &, double rate, uint32_t burst = 1, int64_t size = 512);
    /// A window of packets back to back in each round trip, as from a sender behind a faster link. The next window is
    /// one packet larger, or half as large if a packet was lost or marked.
    Source &adaptive(msfrs_flow &, msfrs_time rtt, int64_t size = 512);
    /// \param capable whether packets are ECN-capable
    void setEcn(const bool capable) { flags_ = capable ? MSFRS_ECN_CAPABLE : 0; }

    void run(const msfrs_time until) { clock_.run(until); }
    /// Resets the counters of delivered bytes and busy time.
    void startMeasuring();
    msfrs_time now() const { return clock_.now(); }
    double delivered() const { return delivered_; } ///< bytes since startMeasuring()
    double busy() const { return busy_; }           ///< seconds of that time in which the link transmitted

private:
    void send(Source &);
    msfrs_time gap(Source &);
    void transmit();

    Host host_;
    sim::Clock clock_;
    sim::Port port_;
    double rate_;
    uint32_t flags_ = 0;
    std::vector<std::unique_ptr<Source>> sources_;
    double delivered_ = 0, busy_ = 0;
};

} // namespace msfrs::test
