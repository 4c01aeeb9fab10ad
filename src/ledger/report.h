// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A snapshot of a segment, the same from every party.
#pragma once

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
};

/// All live parties, by slot.
std::vector<PartyReport> Parties(const Segment &, msfrs_time now);

} // namespace msfrs::ledger
