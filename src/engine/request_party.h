// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The users of a scheduler that its ledger follows: those with work, and those charged lately. Not installed.
#pragma once

#include "engine/engine.h"
#include "ledger/ledger.h"

#include <vector>

namespace msfrs {

/// NamedFlow::party is a flow's index here, plus 1. A flow leaves this list long before its engine may free it.
class FollowedUsers {
public:
    /// Follows a flow that was given work or charged, and was not followed so far.
    /// \param weight of its class, as configured
    void enter(Ledger &, NamedFlow &, double weight);
    /// Reports to the ledger what all were charged here, and charges them for their service elsewhere. Call it at least
    /// before Engine::forgetIdleFlows().
    void exchange(Ledger &, Engine &, msfrs_time now);
    /// Bytes that the last exchange() charged to users of the class with this index.
    double charged(const uint32_t cls) const { return cls < charged_.size() ? charged_[cls] : 0; }
    /// Requests of the user that wait at other parties.
    uint32_t waiting(const Ledger &ledger, const NamedFlow &f) const
    {
        return f.party ? ledger.waitingElsewhere(entries_[f.party - 1].user) : 0;
    }
    void clear(Ledger &);

private:
    struct Entry {
        NamedFlow *flow;
        Ledger::User user;
    };

    std::vector<Entry> entries_;
    std::vector<double> charged_;
};

} // namespace msfrs
