// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Rules and packets for the classifier, from a seed: realistic ones in the style of ClassBench (Taylor and Turner,
/// "ClassBench: a packet classification benchmark", INFOCOM 2005), and corner cases for tests.
#pragma once

#include "edge/classifier.h"
#include "support/host.h"

#include <vector>

namespace msfrs::test {

/// Rules as in an access list, all different: networks with their subnets and hosts, the ports of services or any port,
/// few protocols; more specific rules first.
std::vector<edge::Match> AccessList(size_t rules, Family, uint64_t seed);

/// Packets for rules: nine of ten are a random point of a rule, and a few rules get most of the traffic; the tenth is
/// any packet.
std::vector<edge::FlowKey> Traffic(const std::vector<edge::Match> &rules, size_t packets, Family, uint64_t seed);

/// Rules of both families; any two may be equal, nest, overlap or touch, and a rule may be a point.
std::vector<edge::Match> OddRules(size_t rules, Random &);

/// Packets at the ends of the rules' ranges, next to them, and anywhere.
std::vector<edge::FlowKey> OddTraffic(const std::vector<edge::Match> &rules, size_t packets, Random &);

/// The first rule that one packet matches, or NoMatch.
inline uint32_t Find(const edge::Classifier &classifier, const edge::FlowKey &key)
{
    uint32_t found;
    classifier.find(&key, 1, &found);
    return found;
}

/// Reference implementation of edge::Classifier: tests every rule in turn.
class LinearSearch {
public:
    explicit LinearSearch(std::vector<edge::Match> rules): rules_(std::move(rules)) {}
    uint32_t find(const edge::FlowKey &k) const
    {
        for (size_t r = 0; r < rules_.size(); ++r) {
            if (rules_[r].contains(k))
                return static_cast<uint32_t>(r);
        }
        return edge::NoMatch;
    }

private:
    std::vector<edge::Match> rules_;
};

} // namespace msfrs::test
