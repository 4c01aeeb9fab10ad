// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Detects a variable-rate link by the course of C.
///
/// A swing is a fall of C by 30 %, caused by a bottleneck queue, after a rise by as much. A variable-rate link has
/// several in a minute; a step, the busy hour of a cell and the handover of a satellite have one or none. The caller
/// discards falls that turn out to be a longer path.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <cstddef>
#include <deque>

namespace msfrs {

class Swings {
public:
    static constexpr size_t Several = 4;                  ///< swings in Lately
    static constexpr msfrs_time Lately = 60'000'000'000;  ///< ns

    /// Adds a value of C, bit/s > 0, taken while requests wait.
    /// \param queue whether there is a standing queue at the bottleneck
    void seen(double rate, bool queue, msfrs_time now);
    bool varies(msfrs_time now) const; ///< whether there were several lately

private:
    bool falling_ = false;
    double extreme_ = 0;           ///< bit/s: greatest C since it began to rise, or least since it began to fall
    std::deque<msfrs_time> falls_; ///< ns, the latest last, at most Several
};

} // namespace msfrs
