// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Finds workers of Squid that exist and no longer run: stopped, or in an endless loop. The kernel gives new connections
/// to the others, so that no user and no probe from outside notices, but each connection that such a worker has hangs.
/// Each worker watches all others by their heartbeats. It counts its own looks instead of the age of a heartbeat: if all
/// of Squid was stopped, as in a container that was frozen, nobody looked.
#pragma once

#include "ledger/segment.h"

#include <array>
#include <sys/types.h>
#include <vector>

namespace msfrs::ledger {

class HungWorkers {
public:
    /// ns between two looks, and looks without a new heartbeat, which is due every 100 ms. A worker's longest pauses are
    /// those of a reconfiguration, some 0.2 s; `msfrsctl watch` waits for a Squid without workers for as long, 15 s at
    /// the latest. Half as many: reading ten thousand ACL entries might be taken for a loop. Twice: users wait so long.
    static constexpr msfrs_time LookEvery = 1'000'000'000;
    static constexpr int Looks = 12;

    /// Looks at all slots if the last look was LookEvery ago. Call it at least ten times as often.
    /// \returns the processes of workers whose heartbeat was the same in the last Looks looks, each once
    std::vector<pid_t> look(const Segment &, msfrs_time now);

private:
    struct Seen {
        uint64_t life = 0, heartbeat = 0;
        int looks = 0; ///< that saw the same since
    };

    std::array<Seen, Slots> seen_;
    msfrs_time next_ = 0;
};

} // namespace msfrs::ledger
