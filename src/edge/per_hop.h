// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Per-hop behaviours: the code points that rules may set, and the scheduler class of each.
#pragma once

#include <cstdint>

namespace msfrs::edge {

/// The paper's six classes, highest first.
enum class PerHop : uint8_t { Ef, Af1, Af2, Af3, Af4, Be };

/// A class of the `diffserv` scheduler for each PerHop, in its order; quanta 2:1 between neighbours.
struct PerHopClass {
    const char *name;
    double weight;
};
constexpr PerHopClass PerHopClasses[] = {{"ef", 32}, {"af1", 16}, {"af2", 8}, {"af3", 4}, {"af4", 2}, {"be", 1}};

/// A differentiated services code point (RFC 2474, 2597, 3246).
struct CodePoint {
    const char *name;
    uint8_t value; ///< 0..63
    PerHop cls;
};
constexpr CodePoint CodePoints[] = {
    {"ef", 46, PerHop::Ef},
    {"af11", 10, PerHop::Af1}, {"af12", 12, PerHop::Af1}, {"af13", 14, PerHop::Af1},
    {"af21", 18, PerHop::Af2}, {"af22", 20, PerHop::Af2}, {"af23", 22, PerHop::Af2},
    {"af31", 26, PerHop::Af3}, {"af32", 28, PerHop::Af3}, {"af33", 30, PerHop::Af3},
    {"af41", 34, PerHop::Af4}, {"af42", 36, PerHop::Af4}, {"af43", 38, PerHop::Af4},
    {"be", 0, PerHop::Be},
};
constexpr CodePoint BestEffort = CodePoints[13];

} // namespace msfrs::edge
