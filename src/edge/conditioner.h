// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The traffic conditioner of an edge router (RFC 2475, section 2.3.3): classify, police, mark.
///
/// Paper: Lin, Lin, Yang, Lin, "DiffServ edge routers over network processors" (2003), figures 2 and 3.
#ifndef MSFRS_EDGE_CONDITIONER_H
#define MSFRS_EDGE_CONDITIONER_H

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
    size_t length;  ///< bytes that are there
    size_t whole = 0; ///< its bytes, where more were sent than are there
};

struct Verdict {
    bool pass;      ///< false: beyond what its rule allows
    PerHop cls;     ///< the class to queue it in
    uint32_t rule;  ///< or NoMatch
};

/// One path of packets; called by one thread at a time. Tables are replaced by any thread at any time.
class Conditioner {
public:
    /// \param tables must outlive this
    explicit Conditioner(const Published<RuleTable> &tables);

    /// Judges and marks packets that arrive now, in their order. What matches no rule is best effort, and marked so:
    /// the edge trusts no code point from outside. What is no IP packet passes as it is, as best effort.
    /// When the table was replaced, a rule that has the name, rate and depth of one before goes on with its bucket;
    /// the other buckets start full.
    /// \param now nanoseconds of any clock; see Policer for one that jumps
    void process(const Packet *, size_t n, int64_t now, Verdict *);

    /// The table of the latest process(), for reports; null before the first.
    const RuleTable *table() const { return table_.get(); }

private:
    static constexpr size_t Most = 64; ///< packets that are classified side by side

    void adopt(const std::shared_ptr<const RuleTable> &, int64_t now);

    Published<RuleTable>::Reader tables_;
    std::shared_ptr<const RuleTable> table_;
    std::vector<std::optional<Policer>> policers_; ///< by rule; nothing: not policed
    FlowKey keys_[Most]; ///< of process(): to set them all up for every packet would cost more than a lookup
};

} // namespace msfrs::edge

#endif
