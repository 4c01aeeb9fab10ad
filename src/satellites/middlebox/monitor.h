// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Statistical monitoring: packets and bytes of the largest flows, in memory that does not grow with their number.
///
/// Algorithm: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams",
/// ICDT 2005 (Space-Saving), with bytes for counts. m flows are kept; a packet of another takes the place, and the
/// count, of the least of them. Of N bytes in all, every flow with more than N/m is kept, and what is told of a flow
/// is at least what it sent, and at most `error` more.
#ifndef MSFRS_MIDDLEBOX_MONITOR_H
#define MSFRS_MIDDLEBOX_MONITOR_H

#include "satellites/middlebox/function.h"
#include "sched/heap.h"

#include <unordered_map>

namespace msfrs::middlebox {

class Monitor : public Function {
public:
    struct Flow {
        FlowKey key;
        uint64_t bytes;   ///< at least what the flow sent, and at most `error` more
        uint64_t packets; ///< since it was last taken in: at most what it sent
        uint64_t error;
    };

    explicit Monitor(const FunctionOptions &);
    Span process(const FunctionInput &) override;
    std::vector<FunctionCount> counts() const override;
    /// The largest flows by bytes, at most so many, largest first.
    std::vector<Flow> largest(size_t most) const;

private:
    struct Entry {
        Flow flow;
        uint64_t number; ///< order in which flows were taken in
        uint32_t place;
    };
    struct Traits {
        static uint32_t &Place(Entry &e) { return e.place; }
        static double Key(const Entry &e) { return static_cast<double>(e.flow.bytes); } // exact up to 2^53 bytes
        static bool Before(const Entry &a, const Entry &b) { return a.number < b.number; }
    };
    /// Seeded: who sends packets must not be able to choose flows that collide.
    struct Hash {
        uint64_t seed;
        size_t operator()(const FlowKey &) const;
    };
    struct Same {
        bool operator()(const FlowKey &, const FlowKey &) const;
    };

    size_t most_;
    std::unordered_map<FlowKey, Entry, Hash, Same> flows_;
    Heap<Entry, Traits> least_;
    uint64_t packets_ = 0, bytes_ = 0, taken_ = 0, replaced_ = 0;
};

} // namespace msfrs::middlebox

#endif
