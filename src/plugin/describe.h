// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// For plugins in C++: fills in msfrs_plugin from the types of their states and from their tables.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <type_traits>

namespace msfrs {

template <class Row>
struct RowsOf {
    const Row *first = nullptr;
    uint32_t count = 0;

    constexpr RowsOf() = default;
    template <size_t N>
    constexpr RowsOf(const Row (&rows)[N], const uint32_t n = N): first(rows), count(n) {}
    constexpr RowsOf(const Row &one): first(&one), count(1) {}
};

template <class State>
inline constexpr size_t SizeOf = sizeof(State);
template <>
inline constexpr size_t SizeOf<void> = 0;

/// \tparam Class \tparam Flow \tparam Item states; void: none \param ops msfrs_sched_ops or msfrs_aqm_ops
template <class Instance, class Class = void, class Flow = void, class Item = void, class Ops>
constexpr msfrs_plugin Describe(const char *const name, const char *const summary, const char *const paper,
                                const uint32_t flags, const Ops &ops, const RowsOf<msfrs_param> params = {},
                                const RowsOf<msfrs_gauge> gauges = {}, const uint32_t keeps = 0)
{
    constexpr bool Sched = std::is_same_v<Ops, msfrs_sched_ops>;
    msfrs_plugin p{MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(msfrs_plugin),
                   Sched ? MSFRS_SCHED : MSFRS_AQM, flags, name, summary, paper,
                   SizeOf<Instance>, SizeOf<Class>, SizeOf<Flow>, SizeOf<Item>,
                   params.first, params.count, gauges.first, gauges.count, nullptr, nullptr, sizeof(Ops), keeps};
    if constexpr (Sched)
        p.sched = &ops;
    else
        p.aqm = &ops;
    return p;
}

} // namespace msfrs

/// The one symbol that a plugin exports.
#define MSFRS_EXPORTED_PLUGIN extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin
