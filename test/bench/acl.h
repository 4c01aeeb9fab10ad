// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// DPDK's librte_acl over the same rules and packets as the classifier, for comparison only.
#pragma once

#include "edge/match.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace msfrs::bench {

/// A librte_acl method that this processor supports.
struct AclMethod {
    const char *name;
    int number;
};

/// IPv4 rules whose address ranges are prefixes, and the packets to look up.
class Acl {
public:
    /// \throws std::runtime_error with DPDK's message
    Acl(const std::vector<edge::Match> &rules, const std::vector<edge::FlowKey> &packets);
    ~Acl();

    std::vector<AclMethod> methods() const;
    /// Looks up packets[begin .. begin + n - 1]; found[i] is 0 for no match, otherwise the rule's number + 1.
    void find(size_t begin, uint32_t n, uint32_t *found, int method) const;
    size_t bytes() const; ///< memory for lookups and rules

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace msfrs::bench
