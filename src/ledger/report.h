// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A snapshot of a segment, the same from every party.
#ifndef MSFRS_LEDGER_REPORT_H
#define MSFRS_LEDGER_REPORT_H

#include "ledger/slots.h"

#include <vector>

namespace msfrs::ledger {

/// A live party.
struct PartyReport {
    uint32_t slot = 0;
    bool leads = false;
    SlotReading now;
    SlotFigures figures;
    double share = 0;                   ///< of C, 0..1: by demand, among parties with work in service or waiting
    struct Class { uint64_t key, served; double demand; };
    std::vector<Class> classes;         ///< in the order of its configuration
};

/// All live parties, by slot.
std::vector<PartyReport> Parties(const Segment &, msfrs_time now);

/// Sums over all live parties.
struct SumReport {
    uint32_t parties = 0, places = 0;
    uint64_t waiting = 0, queued = 0;
    double limit = 1;                   ///< W+ of the leader
};
SumReport Sum(const std::vector<PartyReport> &);

} // namespace msfrs::ledger

#endif
