// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Lookup structure of the classifier for up to 4,096 rules of one address family.
#pragma once

#include "edge/intervals.h"

#include <array>
#include <vector>

namespace msfrs::edge {

constexpr unsigned MostAxes = 5;

/// Two dimensions merged into one: the vector of (a, b) is table[a * stride + b].
struct Pairing {
    std::vector<VectorId> table;
    uint32_t stride = 1;
    VectorId find(const uint32_t a, const uint32_t b) const { return table[a * stride + b]; }
};

/// The vectors of a group of keys: of[axis][key].
struct Vectors {
    uint32_t of[MostAxes][GroupSize];
};

struct Block {
    /// Bit i of the vectors stands for rules[i].
    Block(const std::vector<Match> &all, std::vector<uint32_t> numbers, Family);

    std::vector<uint32_t> rules;
    std::vector<VectorSet> axes; ///< source, destination, then 1 to 3 for the service
    std::vector<PageTable> addresses4;    ///< source and destination, for IPv4
    std::vector<SortedStarts> addresses6; ///< likewise, for IPv6
    std::vector<PageTable> ports;         ///< source and destination
    std::array<VectorId, 256> protocol{};
    Pairing port, service; ///< (destination port, protocol), (source port, port); tables empty where not paired

    size_t bytes() const;

    /// Fills in the addresses' vectors. \param n at most GroupSize
    void locateAddresses(const FlowKey *const *keys, unsigned n, Vectors &) const;
    /// Fills in the vectors of the ports and the protocol.
    void locateServices(const FlowKey *const *keys, unsigned n, Vectors &) const;
    /// The number of the first rule that is in all vectors of keys[i], or NoMatch.
    void intersect(const Vectors &, unsigned n, uint32_t *found) const;

private:
    void pairServices(VectorSet &sourcePorts, VectorSet &destinationPorts, VectorSet &protocols);
};

} // namespace msfrs::edge
