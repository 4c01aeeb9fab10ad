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
///   - Rules are taken in blocks of 4,096, searched in order until one has a match. A vector has at most 64 words of
///     64 bits and a summary of 256 bits that says which 16 bits are not 0 (Baboescu and Varghese, "Scalable packet
///     classification", SIGCOMM 2001): the summaries are ANDed first, and only what all of them name is read.
///   - Equal vectors are kept once, and so are equal lines of 512 bits in them (see VectorSet).
///   - Destination port with protocol, and that with source port, become one dimension of their own as long as its
///     table has at most 65,536 entries (a step of recursive flow classification, Gupta and McKeown, SIGCOMM 1999,
///     with a bound): three vectors to AND instead of five.
///   - The binary search over ports and IPv4 addresses is unrolled into pages (see PageTable); over IPv6 addresses
///     it is a binary search.
///
/// Memory: at most, per block and family: 0.9 MB a dimension (8,193 vectors and 8,200 lines), 4.7 MB for the pair that
/// replaces three, and for an IPv4 address 13 MB of pages; access lists need a tenth of it (bytes() says). So it grows
/// linearly with the rules, where the paper's grows with their square.
/// Time: per block two or three loads a dimension, and a few words.
#ifndef MSFRS_EDGE_CLASSIFIER_H
#define MSFRS_EDGE_CLASSIFIER_H

#include "edge/match.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace msfrs::edge {

struct Block;

/// Immutable once built: any number of threads may look up in it.
class Classifier {
public:
    /// \param rules in order of precedence
    /// \throws std::invalid_argument a range that is reversed or beyond its family's addresses or NoPort, or address
    ///         ranges without a family
    explicit Classifier(const std::vector<Match> &rules);
    ~Classifier();
    Classifier(const Classifier &) = delete;
    Classifier &operator=(const Classifier &) = delete;

    /// \returns the index of the first rule that contains the key, or NoMatch
    uint32_t find(const FlowKey &) const;
    /// found[i] for keys[i]. Several at a time are faster: their loads from memory wait side by side.
    void find(const FlowKey *keys, size_t n, uint32_t *found) const;

    size_t rules() const { return rules_; }
    size_t bytes() const; ///< memory for lookups

private:
    void findGroup(const std::vector<std::unique_ptr<Block>> &, const FlowKey **keys, unsigned n,
                   uint32_t **found) const;

    size_t rules_;
    std::vector<std::unique_ptr<Block>> blocks4_, blocks6_;
};

/// The reference beside it: every rule in turn.
class LinearSearch {
public:
    explicit LinearSearch(std::vector<Match> rules): rules_(std::move(rules)) {}
    uint32_t find(const FlowKey &k) const
    {
        for (size_t r = 0; r < rules_.size(); ++r) {
            if (rules_[r].contains(k))
                return static_cast<uint32_t>(r);
        }
        return NoMatch;
    }

private:
    std::vector<Match> rules_;
};

} // namespace msfrs::edge

#endif
