// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The multi-field classifier: the first of any number of rules that a packet matches.
///
/// Paper: Lin, Lin, Yang, Lin, "DiffServ edge routers over network processors" (2003), section "Classifier", after
/// Lakshman and Stiliadis, "High-speed policy-based packet forwarding using efficient multidimensional range
/// matching" (SIGCOMM 1998).
///
///     each dimension's ranges cut it into elementary intervals; each interval has the bit vector of the rules that
///     cover it; a packet's vectors are ANDed; the lowest bit that is set is the first rule that matches.
///
/// Where this departs from the paper, which has 512 rules of IPv4 in hardware:
///   - Rules are split into blocks of 4,096, searched in order until one has a match. A vector has at most 64 words of
///     64 bits and a summary of 256 bits, each set if any of 16 bits is (Baboescu and Varghese, "Scalable packet
///     classification", SIGCOMM 2001). The summaries are ANDed first, and only words that all of them name are read.
///   - Equal vectors are stored once, and so are equal lines of 512 bits in them (see VectorSet).
///   - Destination port with protocol, and that with source port, become one dimension of their own as long as its
///     table has at most 65,536 entries (a step of recursive flow classification, Gupta and McKeown, SIGCOMM 1999,
///     with a bound): three vectors to AND instead of five.
///   - The binary search over ports and IPv4 addresses is unrolled into pages (see PageTable); over IPv6 addresses
///     it is a binary search.
///
/// Memory: at most, per block and family: 0.9 MB per dimension (8,193 vectors and 8,200 lines), 4.7 MB for the pair
/// that replaces three, and 13 MB of pages for an IPv4 address; access lists need a tenth of it (see bytes()). So it
/// grows linearly with the number of rules, and the paper's with its square.
/// Time: two or three loads per dimension and block, and a few words.
#pragma once

#include "edge/match.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace msfrs::edge {

struct Block;

/// Immutable once built: any number of threads may use it.
class Classifier {
public:
    /// \param rules in order of precedence
    /// \throws std::invalid_argument a range that is reversed or beyond its family's addresses or NoPort, or address
    ///         ranges without a family
    explicit Classifier(const std::vector<Match> &rules);
    ~Classifier();
    Classifier(const Classifier &) = delete;
    Classifier &operator=(const Classifier &) = delete;

    /// found[i]: the index of the first rule that contains keys[i], or NoMatch. Several at a time are faster, since
    /// their memory loads overlap.
    void find(const FlowKey *keys, size_t n, uint32_t *found) const;

    size_t bytes() const; ///< memory for lookups

private:
    std::vector<std::unique_ptr<Block>> blocks_[2]; ///< for IPv4, and for IPv6
};

} // namespace msfrs::edge
