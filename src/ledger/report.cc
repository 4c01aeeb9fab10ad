// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/report.h"

#include "ledger/shares.h"

#include <cmath>

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
        PartyReport r{n, n == leader, *state, *figures, 0, {}};
        for (const auto &cls : slot.classes) {
            const auto key = cls.key.load(std::memory_order_relaxed);
            const double demand = Real(cls.demand.load(std::memory_order_relaxed));
            if (key != 0 && std::isfinite(demand) && demand >= 0)
                r.classes.push_back({key, cls.served.load(std::memory_order_relaxed), demand});
        }
        wants.push_back({state->demand, state->places + state->waiting > 0 ? 1.0 : 0.0});
        all.push_back(std::move(r));
    }
    const auto shares = Shares(wants, 1);
    for (size_t n = 0; n < all.size(); ++n)
        all[n].share = shares[n];
    return all;
}

SumReport Sum(const std::vector<PartyReport> &parties)
{
    SumReport sum;
    for (const auto &p : parties) {
        ++sum.parties;
        sum.places += p.now.places;
        sum.waiting += p.now.waiting;
        sum.queued += p.now.queued;
        if (p.leads)
            sum.limit = p.figures.limit;
    }
    return sum;
}

} // namespace msfrs::ledger
