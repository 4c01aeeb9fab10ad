// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The users of a scheduler that its ledger follows: who has work, or was charged lately. Not installed.
#ifndef MSFRS_ENGINE_REQUEST_PARTY_H
#define MSFRS_ENGINE_REQUEST_PARTY_H

#include "engine/engine.h"
#include "ledger/ledger.h"

#include <vector>

namespace msfrs {

/// NamedFlow::party is a flow's place here, plus 1. A flow is forgotten long before its engine may free it.
class FollowedUsers {
public:
    /// The flow has been given work or was charged.
    void touch(Ledger &ledger, NamedFlow &f)
    {
        if (f.party == 0)
            enter(ledger, f);
    }
    /// Tells the ledger what all were charged here, and charges them what they had elsewhere. To be called at least
    /// before Engine::forgetIdleFlows().
    void exchange(Ledger &, Engine &, msfrs_time now);
    /// Requests of the user that wait elsewhere.
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

    void enter(Ledger &, NamedFlow &);

    std::vector<Entry> entries_;
};

} // namespace msfrs

#endif
