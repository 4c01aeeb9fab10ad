// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Moves all work of one engine to another, as needed when a new configuration names another plugin, or no longer has a
/// class that is in use. Squid's reconfiguration and the reload of msfrs-edge both use it. To move one item within an
/// engine there is Engine::move().
///
/// Classes and flows continue where the new engine has ones of the same names, with what the scheduler saves of them:
/// see msfrs_sched_ops. An AQM always starts anew: waiting items are not judged again, and do not count for it.
#pragma once

#include "engine/engine.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace msfrs {

/// The migration plan: the host's part of the move.
struct MigrationPlan {
    struct Place {
        msfrs_flow *flow; ///< of the new engine
        /// Estimate from now on, >= 0. Ignored for an item in service: it keeps what was charged in advance and is
        /// unused.
        std::array<int64_t, MSFRS_RESOURCES> est;
    };

    std::vector<msfrs_item *> served; ///< all that are in service
    bool sameFlows = true;            ///< whether both engines name flows in the same way
    /// Where an item of the old engine goes.
    std::function<Place(const msfrs_item &)> place;
    /// An item is now this one, with the same host pointer. Must not throw. Called when nothing can fail any more.
    std::function<void(msfrs_item &)> moved;
};

/// Moves everything. Afterwards the old engine has no item in service, and must be freed.
/// \param to has its classes, but no flows or items; with the same Engine::Cost
/// \throws PluginError, std::bad_alloc: the old engine still has all that it had, and the new one must be freed
void Migrate(Engine &from, Engine &to, const MigrationPlan &, msfrs_time now);

/// A message about a change of scheduler; empty if the new one continues with what the old one has kept.
std::string BeginsAnew(const msfrs_plugin &from, const msfrs_plugin &to);

} // namespace msfrs
