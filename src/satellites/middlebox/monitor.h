// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Statistical monitoring: packets and bytes of the largest flows, in memory independent of the number of flows.
///
/// Algorithm: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams",
/// ICDT 2005 (Space-Saving), with bytes for counts. m flows are kept; a packet of another flow replaces the least of
/// them and inherits its count. Of N bytes in all, every flow with more than N/m is kept, and the count of a flow is at
/// least the bytes it sent, and at most `error` more.
#pragma once

#include "satellites/middlebox/function.h"
#include "sched/heap.h"

#include <unordered_map>

namespace msfrs::middlebox {

class Monitor : public Function {
public:
    struct Flow {
        FlowKey key;
        uint64_t bytes;   ///< at least the bytes the flow sent, and at most `error` more
        uint64_t packets; ///< since its last insertion: at most the number it sent
        uint64_t error;
    };

    explicit Monitor(const FunctionOptions &);
    Span process(const FunctionInput &) override;
    std::vector<FunctionCount> counts() const override;
    /// The largest flows by bytes, at most `most`, largest first.
    std::vector<Flow> largest(size_t most) const;

private:
    struct Entry {
        Flow flow;
        uint64_t number; ///< order of insertion
        uint32_t place;
    };
    struct Traits {
        static uint32_t &Place(Entry &e) { return e.place; }
        static double Key(const Entry &e) { return static_cast<double>(e.flow.bytes); } // exact up to 2^53 bytes
        static bool Before(const Entry &a, const Entry &b) { return a.number < b.number; }
    };
    /// Seeded: senders must not be able to choose flows that collide.
    struct Hash {
        uint64_t seed;
        size_t operator()(const FlowKey &) const;
    };

    size_t most_;
    std::unordered_map<FlowKey, Entry, Hash> flows_;
    Heap<Entry, Traits> least_;
    uint64_t packets_ = 0, bytes_ = 0, taken_ = 0, replaced_ = 0;
};

} // namespace msfrs::middlebox
