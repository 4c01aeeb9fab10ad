// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What msf saves of an instance, and how another continues with it; the calls are those of msfrs_sched_ops.
#pragma once

#include "sched/kept.h"
#include "sched/msf_state.h"

namespace msfrs::msf {

/// Must change when any of the figures below changes its meaning.
constexpr uint32_t Keeps = 4;

/// Age of an event, in ns; -1: never.
inline double Age(const msfrs_time then, const msfrs_time now)
{
    return then == Never ? -1 : static_cast<double>(now - then);
}
inline msfrs_time At(const double age, const msfrs_time now)
{
    return age < 0 ? Never : now - static_cast<msfrs_time>(age);
}

/// A busy class or user is saved as idle since now: resumed() makes it busy again, if it still has an item.
inline double IdleAge(const Presence &p, const msfrs_time now) { return Age(p.busy ? now : p.idleSince, now); }

inline void RestorePresence(Presence &p, const double idle, const double busy, const msfrs_time now)
{
    p.idleSince = At(idle, now);
    p.busySince = At(busy, now);
}

inline void Save(void *const inst, const msfrs_move *const move, const msfrs_time now)
{
    const auto &self = Self(inst);
    Put(*move, {}, std::array{*self.virtualTime, self.favour.left(now), self.favour.inTurn() ? 1.0 : 0.0,
                              Age(self.favour.servedAt(), now)});
    for (uint32_t n = 0; n < move->n_classes; ++n) {
        const auto &c = StateOf(move->classes[n]);
        Put(*move, {c.cls, nullptr, nullptr},
            std::array{c.service(), c.userTime, IdleAge(c, now), Age(c.busySince, now), c.earnedBy});
    }
    for (uint32_t n = 0; n < move->n_flows; ++n) {
        const auto &f = StateOf(move->flows[n]);
        Put(*move, {nullptr, f.flow, nullptr},
            std::array{f.service, IdleAge(f, now), Age(f.busySince, now), Age(f.servedAt, now),
                       f.outOfOrder ? 1.0 : 0.0});
    }
    for (uint32_t n = 0; n < move->n_served; ++n) {
        if (StateOf(move->served[n]).ofFavour)
            Put(*move, {nullptr, nullptr, move->served[n]}, std::array{1.0});
    }
}

inline int Restore(void *const inst, const msfrs_owner *const whose, const double *const figures, const uint32_t n,
                   const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    if (n != (whose->item ? 1 : whose->flow || whose->cls ? 5 : 4) || figures[0] < 0)
        return -1;
    if (whose->item) {
        StateOf(whose->item).ofFavour = true;
    } else if (whose->flow) {
        auto &f = StateOf(whose->flow);
        f.service = figures[0];
        RestorePresence(f, figures[1], figures[2], now);
        f.servedAt = At(figures[3], now);
        f.outOfOrder = figures[4] > 0;
    } else if (whose->cls) {
        auto &c = StateOf(whose->cls);
        *c.cls->service = figures[0];
        c.userTime = figures[1];
        RestorePresence(c, figures[2], figures[3], now);
        c.earnedBy = figures[4];
    } else {
        *self.virtualTime = figures[0];
        self.favour.restore(figures[1], figures[2] > 0, At(figures[3], now), now);
    }
    return 0;
}

inline void Resumed(void *const inst, msfrs_item *const i, const int served, const msfrs_time now)
{
    auto &self = Self(inst);
    self.now = now;
    StateOf(i->flow).busy = StateOf(i->flow->cls).busy = true;
    if (!served)
        Insert(*i);
    Settle(self, *i->flow);
}

} // namespace msfrs::msf
