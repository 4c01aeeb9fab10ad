// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The traffic conditioner of an edge router (RFC 2475, section 2.3.3): classify, police, mark.
///
/// Paper: Lin, Lin, Yang, Lin, "DiffServ edge routers over network processors" (2003), figures 2 and 3.
#pragma once

#include "edge/classifier.h"
#include "edge/rules.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace msfrs::edge {

/// Rules with their classifier.
struct RuleTable {
    explicit RuleTable(std::vector<Rule>);

    std::vector<Rule> rules;
    Classifier classifier;
};

struct Packet {
    uint8_t *data;  ///< from the IP header
    size_t length;  ///< bytes at `data`
    size_t whole = 0; ///< length as sent, if longer than that
};

struct Verdict {
    bool pass;      ///< false: exceeds the rate of its rule
    PerHop cls;     ///< the class to queue it in
    uint32_t rule;  ///< or NoMatch
};

/// One path of packets, or several whose threads share the rate of a rule.
class Conditioner {
public:
    /// \param shared several threads may use this, one batch of packets at a time; else only one may
    explicit Conditioner(std::shared_ptr<const RuleTable>, bool shared = false);

    /// Adopts another table. A rule keeps the bucket of an earlier one with the same name, rate and depth; the other
    /// buckets start full.
    void replace(std::shared_ptr<const RuleTable>);

    static constexpr size_t Most = 64; ///< packets handled in one batch: as many as keys are looked up in parallel

    /// Classifies, polices and marks packets that arrive now, in their order. A packet without a matching rule is
    /// best effort, and marked so: the edge trusts no code point from outside. A non-IP packet passes unchanged, as
    /// best effort.
    /// \param now nanoseconds of any clock; see Policer for one that jumps
    void process(const Packet *, size_t n, int64_t now, Verdict *);

private:
    std::unique_lock<std::mutex> lock() { return shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>(); }

    const bool shared_;
    std::mutex mutex_;
    std::shared_ptr<const RuleTable> table_;
    std::vector<std::optional<Policer>> policers_; ///< by rule; nothing: not policed
    FlowKey keys_[Most]; ///< of process(); initialising them for every packet would cost more than a lookup
};

} // namespace msfrs::edge
