// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Tells a link that wanders from one that stays, has taken a step or drifts, by what C does.
///
/// A swing is a fall of C by 30 %, for a queue at the provider, after it had risen by as much or was at rest. A link
/// whose rate goes up and down by itself has several in a minute; a step, a cell's busy hour and a satellite's new
/// place have one or none. Falls that a longer path made look like a queue are to be forgotten.
#ifndef MSFRS_WINDOW_SWINGS_H
#define MSFRS_WINDOW_SWINGS_H

#include "plugin/msfrs_plugin.h"

#include <cstddef>
#include <deque>

namespace msfrs {

class Swings {
public:
    static constexpr size_t Several = 4;                  ///< swings in Lately: it wanders
    static constexpr msfrs_time Lately = 60'000'000'000;  ///< ns

    /// C is this, bit/s > 0, while somebody waits.
    /// \param queue whether one stands at the provider
    void seen(double rate, bool queue, msfrs_time now);
    bool wander(msfrs_time now) const; ///< whether there were several lately

private:
    bool falling_ = false;
    double extreme_ = 0;           ///< bit/s: greatest C since it began to rise, or least since it began to fall
    std::deque<msfrs_time> falls_; ///< ns, the latest last, at most Several
};

} // namespace msfrs

#endif
