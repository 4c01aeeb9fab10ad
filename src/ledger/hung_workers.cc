// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/hung_workers.h"

namespace msfrs::ledger {

std::vector<pid_t> HungWorkers::look(const Segment &segment, const msfrs_time now)
{
    if (now < next_)
        return {};
    next_ = now + LookEvery;
    std::vector<pid_t> hung;
    for (uint32_t n = 0; n < Slots; ++n) {
        const auto &slot = segment.slots[n];
        const Seen saw = {slot.life.load(Relaxed), slot.heartbeat.load(Relaxed), 0};
        auto &seen = seen_[n];
        if (static_cast<Kind>(saw.life & 0xff) != Kind::Worker || saw.life != seen.life ||
            saw.heartbeat != seen.heartbeat)
            seen = saw;
        else if (++seen.looks == Looks)
            hung.push_back(static_cast<pid_t>(slot.pid.load(Relaxed)));
    }
    return hung;
}

} // namespace msfrs::ledger
