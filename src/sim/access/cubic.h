// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The congestion window of Linux servers: slow start that ends when RTT samples grow (HyStart), then CUBIC (RFC 9438).
/// In segments.
#pragma once

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
    /// \param round whether a round trip has passed since this was last true
    void acknowledged(double segments, msfrs_time rtt, bool round, msfrs_time now);
    /// The start of a recovery: the window will fall to the threshold.
    void lost();
    void recovered() { window_ = threshold_; }
    /// Sets the window during recovery, when the caller controls it.
    void set(const double window) { window_ = window; }
    /// A retransmission timeout. \param again for the same loss
    void timedOut(bool again);
    /// Nothing was sent for `timeouts` (>= 1) times the retransmission timeout.
    void restart(int timeouts);

private:
    void begin(msfrs_time now);

    double window_ = Initial, threshold_ = std::numeric_limits<double>::infinity();
    double most_ = 0;               ///< W_max: before the last loss
    double origin_ = 0, k_ = 0;     ///< of the cubic function; k in s
    double friendly_ = 0;           ///< the window that Reno would have
    msfrs_time epoch_ = -1;         ///< start of the window's growth by it; -1: not yet
    msfrs_time rtt_ = 0;            ///< least sample so far, ns
    msfrs_time roundLeast_ = 0;     ///< least sample of this round
    int roundSamples_ = 0;
};

} // namespace msfrs::sim::access
