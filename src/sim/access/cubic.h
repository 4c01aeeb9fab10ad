// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A congestion window as Linux servers have it: slow start that ends where round trips grow (HyStart), then CUBIC
/// (RFC 9438). In segments.
#ifndef MSFRS_SIM_ACCESS_CUBIC_H
#define MSFRS_SIM_ACCESS_CUBIC_H

#include "plugin/msfrs_plugin.h"

#include <limits>

namespace msfrs::sim::access {

class Cubic {
public:
    static constexpr double Initial = 10;

    double window() const { return window_; }
    double threshold() const { return threshold_; }
    bool slowStart() const { return window_ < threshold_; }

    /// `segments` more have arrived.
    /// \param rtt of the latest of them, ns; 0: not known
    /// \param round a round trip has passed since this was last true
    void acknowledged(double segments, msfrs_time rtt, bool round, msfrs_time now);
    /// The start of a recovery: the threshold is what the window comes down to.
    void lost();
    void recovered() { window_ = threshold_; }
    /// While recovering, the window is somebody else's affair.
    void set(const double window) { window_ = window; }
    /// Nothing was acknowledged for too long. \param again for the same loss
    void timedOut(bool again);
    /// Nothing was sent for `timeouts` (>= 1) times the retransmission timeout.
    void restart(int timeouts);

private:
    void begin(msfrs_time now);

    double window_ = Initial, threshold_ = std::numeric_limits<double>::infinity();
    double most_ = 0;               ///< W_max: before the last loss
    double origin_ = 0, k_ = 0;     ///< of the cubic function; k in s
    double friendly_ = 0;           ///< what Reno would have
    msfrs_time epoch_ = -1;         ///< since when the window grows by it; -1: not yet
    msfrs_time rtt_ = 0;            ///< the least seen, ns
    msfrs_time roundLeast_ = 0;     ///< the least of this round
    int roundSamples_ = 0;
};

} // namespace msfrs::sim::access

#endif
