// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What the engine keeps behind the plugin's view of classes, flows and items. Not installed.
#ifndef MSFRS_ENGINE_ENGINE_RECORDS_H
#define MSFRS_ENGINE_ENGINE_RECORDS_H

#include "engine/engine.h"

namespace msfrs {

/// Memory for a plugin's state; as bytes, since only those are zeroed without gaps.
using State = std::unique_ptr<unsigned char[]>;

inline void Count(Tally &t, const int64_t cost) { ++t.items; t.cost += cost; }
inline void Uncount(Tally &t, const int64_t cost) { --t.items; t.cost -= cost; }

struct Engine::ClassRecord : msfrs_class {
    struct Flow : NamedFlow {
        State schedState, aqmState;
    };
    std::string storedName;
    uint32_t children; ///< classes whose parent it is
    State schedState, aqmState;
    std::unordered_map<std::string, std::unique_ptr<Flow>> flows;
};

struct Engine::ItemRecord : msfrs_item {
    bool queued;
    bool judged;                     ///< admitted by the AQM and still queued since: the AQM is owed an end
    uint32_t drawIndex;              ///< place in drawable_ while queued
    int64_t offeredCost;             ///< est[0] when it was offered, what the totals count
    int64_t used[MSFRS_RESOURCES];   ///< charged since the latest pick
};

} // namespace msfrs

#endif
