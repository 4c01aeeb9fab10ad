// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// All work of one engine goes on in another, as it must when a new configuration names another plugin, or no longer
/// has a class that is in use. Squid's reconfiguration and the reload of msfrs-edge both use it. For one item that goes
/// on in the same engine there is Engine::move().
///
/// Classes and flows go on where the new engine has some of their names. What the scheduler keeps of them (counters,
/// debts, places in a round) it saves and restores itself: msfrs_sched_ops has the order of the calls. Between two
/// schedulers that are not the same, nothing of that is handed over. An AQM always begins anew: what waits is not
/// judged again, and does not count for it.
#ifndef MSFRS_ENGINE_MIGRATE_H
#define MSFRS_ENGINE_MIGRATE_H

#include "engine/engine.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace msfrs {

/// What the host of both engines knows of the move.
struct Passage {
    struct Place {
        msfrs_flow *flow; ///< of the new engine
        /// Estimate from now on, >= 0. Does not count for what is in service: that keeps what was charged in advance
        /// and is not used yet.
        std::array<int64_t, MSFRS_RESOURCES> est;
    };

    std::vector<msfrs_item *> served; ///< all that are in service
    bool sameFlows = true;            ///< whether flows are called in the same way in both
    /// Where an item of the old engine goes on.
    std::function<Place(const msfrs_item &)> place;
    /// An item is now this one, with the same host pointer. Must not throw. Called when nothing can go wrong any more.
    std::function<void(msfrs_item &)> moved;
};

/// Moves everything. Afterwards the old engine has no item in service, and is to be freed.
/// \param to has its classes, and neither flows nor items; of the same Engine::Cost
/// \throws PluginError, std::bad_alloc: the old engine has all that it had, the new one is to be freed
void Migrate(Engine &from, Engine &to, const Passage &, msfrs_time now);

/// What is to be told when a scheduler takes the place of another: empty if it goes on with what that one has kept.
std::string BeginsAnew(const msfrs_plugin &from, const msfrs_plugin &to);

} // namespace msfrs

#endif
