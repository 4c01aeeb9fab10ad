// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The engine's own data behind the plugins' view of classes, flows and items. Not installed.
#pragma once

#include "engine/engine.h"

namespace msfrs {

/// Memory for a plugin's state; bytes, since only those are zeroed without gaps.
using State = std::unique_ptr<unsigned char[]>;

inline void Count(Tally &t, const int64_t cost) { ++t.items; t.cost += cost; }
inline void Uncount(Tally &t, const int64_t cost) { --t.items; t.cost -= cost; }

/// \throws PluginError
[[noreturn]] void FailPlugin(const msfrs_plugin &, const std::string &answer);

/// Data of a flow that scheduling does not need.
struct FlowAccount {
    std::string name;
    uint64_t bytes = 0;        ///< charged in resource 0
    NamedFlow *flow = nullptr; ///< in Engine::flowPool_, followed by the plugins' state
};

struct Engine::ClassRecord : msfrs_class {
    std::string storedName;
    double served = 0;         ///< msfrs_class::service
    State schedState, aqmState;
    std::unordered_map<std::string_view, std::unique_ptr<FlowAccount>> flows; ///< keyed by their own names
};

/// Two cache lines, followed by the plugins' state and then ItemCosts. The engine's own bits are in msfrs_item::engine,
/// which would otherwise be padding.
struct Engine::ItemRecord : msfrs_item {
    enum Mark : uint32_t {
        Queued = 1,
        Judged = 2,     ///< admitted by the AQM and queued since then: the AQM must see it leave
        Requeued = 4,   ///< est[] has changed since it was offered
        Marked = 8      ///< by the AQM
    };
    static constexpr uint32_t Marks = 4;                             ///< bits
    static constexpr size_t MostDrawable = UINT32_MAX >> Marks;

    bool is(const Mark m) const { return engine & m; }
    void set(const Mark m, const bool on) { engine = on ? engine | m : engine & ~uint32_t(m); }
    /// Index in drawable_ while queued.
    uint32_t drawIndex() const { return engine >> Marks; }
    void drawIndex(const size_t n) { engine = (engine & ((1u << Marks) - 1)) | static_cast<uint32_t>(n) << Marks; }
};

/// Costs that packets do not need. `used` has as many elements as the engine has resources.
struct Engine::ItemCosts {
    int64_t offered;                 ///< est[0] as offered; only if `requeued`
    int64_t used[MSFRS_RESOURCES];   ///< charged since the latest pick; only with Cost::Measured
};

} // namespace msfrs
