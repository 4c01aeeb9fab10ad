// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The traffic conditioner of an edge router (RFC 2475, section 2.3.3): classify, police, mark.
///
/// Paper: Lin, Lin, Yang, Lin, "DiffServ edge routers over network processors" (2003), figures 2 and 3.
#pragma once

#include "edge/classifier.h"
#include "edge/published.h"
#include "edge/rules.h"

#include <cstddef>
#include <cstdint>
#include <memory>
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

/// One path of packets; called by one thread at a time. Tables are replaced by any thread at any time.
class Conditioner {
public:
    /// \param tables must outlive this
    explicit Conditioner(const Published<RuleTable> &tables);

    /// Classifies, polices and marks packets that arrive now, in their order. A packet without a matching rule is
    /// best effort, and marked so: the edge trusts no code point from outside. A non-IP packet passes unchanged, as
    /// best effort. After the table was replaced, a rule keeps the bucket of an earlier one with the same name, rate
    /// and depth; the other buckets start full.
    /// \param now nanoseconds of any clock; see Policer for one that jumps
    void process(const Packet *, size_t n, int64_t now, Verdict *);

    /// The table of the latest process(), for reports; null before the first.
    const RuleTable *table() const { return table_.get(); }

private:
    static constexpr size_t Most = 64; ///< packets classified in parallel

    void adopt(const std::shared_ptr<const RuleTable> &, int64_t now);

    Published<RuleTable>::Reader tables_;
    std::shared_ptr<const RuleTable> table_;
    std::vector<std::optional<Policer>> policers_; ///< by rule; nothing: not policed
    FlowKey keys_[Most]; ///< of process(); initialising them for every packet would cost more than a lookup
};

} // namespace msfrs::edge
