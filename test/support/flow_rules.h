// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Rules and packets for the classifier, from a seed: such as access lists have, after the shape of ClassBench
/// (Taylor and Turner, "ClassBench: a packet classification benchmark", INFOCOM 2005), and such as only a test asks.
#ifndef MSFRS_TEST_SUPPORT_FLOW_RULES_H
#define MSFRS_TEST_SUPPORT_FLOW_RULES_H

#include "edge/match.h"
#include "support/host.h"

#include <vector>

namespace msfrs::test {

/// Rules as in an access list, all different: networks with their subnets and hosts, ports that services have or
/// any, few protocols; the more specific rules first.
std::vector<edge::Match> AccessList(size_t rules, Family, uint64_t seed);

/// Packets for rules: of ten, nine are a random point of a rule, of which few have most of the traffic, and one is
/// any packet whatever.
std::vector<edge::FlowKey> Traffic(const std::vector<edge::Match> &rules, size_t packets, Family, uint64_t seed);

/// Rules of both families, of which any two may be equal, nest, overlap, touch or be a point.
std::vector<edge::Match> OddRules(size_t rules, Random &);

/// Packets at the ends of the rules' ranges, beside them, and anywhere.
std::vector<edge::FlowKey> OddTraffic(const std::vector<edge::Match> &rules, size_t packets, Random &);

} // namespace msfrs::test

#endif
