// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The shop: packets that visit m resources one after the other, with no buffer between them (CPU, then link). It runs
/// any scheduler plugin through the engine, under its own clock. With one resource it is a link.
///
/// The rules are those of ATFQ, section III-B: a resource serves one packet at a time, all packets visit the resources
/// in the same order, and a packet that has begun passes all of them without waiting. So the next one begins when it
/// will find every resource free,
///
///     S(p', 1) = S(p, 1) + L(p, 1) + max_n (sum_{2..n} L(p, j) - sum_{1..n-1} L(p', j), 0)             (3)
///
/// and is chosen when the first resource becomes free, among the packets that have arrived by then.
#pragma once

#include "engine/engine.h"
#include "satellites/sched/multi_resource.h"
#include "sim/link/clock.h"

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace msfrs::sim {

/// Demand of a packet: bytes, then ticks on the resources before the link, in the order of the visits.
using Need = std::array<int64_t, MSFRS_RESOURCES>;

/// A packet that was served. All times in Ticks.
struct Visit {
    uint32_t flow;
    uint64_t id;  ///< order of arrival, from 1
    Ticks arrived;
    Ticks start;  ///< on the first resource
    Ticks finish; ///< on the last
    Times times;  ///< on each
};

class Shop {
public:
    static constexpr Ticks Forever = INT64_MAX;

    /// \param settings of the plugin; `rate` is added if the plugin has such a parameter and it is not given
    /// \param resources 1..MSFRS_RESOURCES, the link included
    /// \param rate of the link, bit/s
    /// \throws ConfigError
    Shop(PluginPtr, std::vector<Setting> settings, uint32_t resources, int64_t rate, uint64_t seed = 1);
    ~Shop();

    /// Adds a flow in a new class. \returns its number, from 0
    uint32_t addFlow(double weight = 1);
    void setWeight(uint32_t flow, double weight);
    /// Keeps `depth` packets of the flow queued from now on; 0: no more arrive.
    void keep(uint32_t flow, const Need &, uint32_t depth);
    /// One packet arrives. \param when not before now()
    void arrive(uint32_t flow, Ticks when, const Need &);

    /// Serves until `until`, or until `packets` more have begun, or until there are no more arrivals. now() is then at
    /// most `until`.
    /// \returns the number of packets begun
    uint64_t run(Ticks until, uint64_t packets = UINT64_MAX);
    Ticks now() const { return clock_.now(); }

    std::function<void(const Visit &)> served; ///< called when a packet begins, since all its times are then known
    Engine &engine() { return *engine_; }

private:
    struct Packet {
        uint32_t flow;
        Ticks arrived;
    };
    struct Flow {
        NamedFlow *flow;
        Need need{};
        uint32_t depth = 0;
    };

    void offer(uint32_t flow, const Need &, Ticks when);
    void refill(uint32_t flow);
    void begin(msfrs_item &);

    uint32_t resources_;
    int64_t rate_;
    std::mt19937_64 random_;
    std::unique_ptr<Engine> engine_;
    Clock clock_; ///< in ticks
    std::vector<Flow> flows_;
    uint64_t coming_ = 0;                                  ///< packets that have not arrived
    std::deque<Packet> packets_;                           ///< all ever created; an item's host pointer refers to one
    std::vector<Packet *> spare_;                          ///< unused ones
    Ticks firstFree_ = 0;                                  ///< when the first resource becomes free
    Times last_{};                                         ///< of the latest packet begun
};

} // namespace msfrs::sim
