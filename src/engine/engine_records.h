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

/// \throws PluginError
[[noreturn]] void FailPlugin(const msfrs_plugin &, const std::string &answer);

/// What a flow has beside what the scheduling looks at.
struct FlowAccount {
    std::string name;
    uint64_t bytes = 0;        ///< charged in resource 0
    NamedFlow *flow = nullptr; ///< in Engine::flowPool_, the plugins' state behind it
};

struct Engine::ClassRecord : msfrs_class {
    std::string storedName;
    double served = 0;         ///< msfrs_class::service
    uint32_t children; ///< classes whose parent it is
    State schedState, aqmState;
    std::unordered_map<std::string_view, std::unique_ptr<FlowAccount>> flows; ///< by their own names
};

/// Two cache lines; the plugins' state is behind it, and then ItemCosts. What is the engine's alone is in
/// msfrs_item::engine, which would be a gap otherwise.
struct Engine::ItemRecord : msfrs_item {
    enum Mark : uint32_t {
        Queued = 1,
        Judged = 2,     ///< admitted by the AQM and still queued since: the AQM is owed an end
        Requeued = 4,   ///< est[] is no longer what it was when it was offered
        Marked = 8      ///< by the AQM
    };
    static constexpr uint32_t Marks = 4;                             ///< bits
    static constexpr size_t MostDrawable = UINT32_MAX >> Marks;

    bool is(const Mark m) const { return engine & m; }
    void set(const Mark m, const bool on) { engine = on ? engine | m : engine & ~uint32_t(m); }
    /// Place in drawable_ while queued.
    uint32_t drawIndex() const { return engine >> Marks; }
    void drawIndex(const size_t n) { engine = (engine & ((1u << Marks) - 1)) | static_cast<uint32_t>(n) << Marks; }
};

/// What packets do without. Of `used` there are as many as the engine has resources.
struct Engine::ItemCosts {
    int64_t offered;                 ///< est[0] when it was offered; only if `requeued`
    int64_t used[MSFRS_RESOURCES];   ///< charged since the latest pick; only with Cost::Measured
};

} // namespace msfrs

#endif
