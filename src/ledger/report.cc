// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/report.h"

#include "ledger/shares.h"

namespace msfrs::ledger {

std::vector<PartyReport> Parties(const Segment &segment, const msfrs_time now)
{
    std::vector<PartyReport> all;
    std::vector<Want> wants;
    const auto leader = Leader(segment, now);
    for (uint32_t n = 0; n < Slots; ++n) {
        const auto &slot = segment.slots[n];
        const auto state = ReadSlot(slot, now);
        const auto figures = state ? ReadFigures(slot) : std::nullopt;
        if (!figures)
            continue;
        wants.push_back({state->demand, state->places + state->waiting > 0 ? 1.0 : 0.0});
        all.push_back({n, n == leader, *state, *figures, 0});
    }
    const auto shares = Shares(wants, 1);
    for (size_t n = 0; n < all.size(); ++n)
        all[n].share = shares[n];
    return all;
}

} // namespace msfrs::ledger
