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

/// What a flow has beside what the scheduling looks at.
struct FlowAccount {
    std::string name;
    uint64_t bytes = 0;        ///< charged in resource 0
    NamedFlow *flow = nullptr; ///< in Engine::flowPool_, the plugins' state behind it
};

struct Engine::ClassRecord : msfrs_class {
    std::string storedName;
    uint32_t children; ///< classes whose parent it is
    State schedState, aqmState;
    std::unordered_map<std::string_view, std::unique_ptr<FlowAccount>> flows; ///< by their own names
};

/// Two cache lines; the plugins' state is behind it, and then ItemCosts.
struct Engine::ItemRecord : msfrs_item {
    bool queued;
    bool judged;        ///< admitted by the AQM and still queued since: the AQM is owed an end
    bool requeued;      ///< est[] is no longer what it was when it was offered
    uint32_t drawIndex; ///< place in drawable_ while queued
};

/// What packets do without.
struct Engine::ItemCosts {
    int64_t offered;                 ///< est[0] when it was offered; only if `requeued`
    int64_t used[MSFRS_RESOURCES];   ///< charged since the latest pick; only with Cost::Measured
};

} // namespace msfrs

#endif
