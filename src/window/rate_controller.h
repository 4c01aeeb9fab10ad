// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The window-based rate controller (WRC): how many responses may be outstanding, W+, so that the link is just
/// full. Paper: Tsao, Lai, Tsao, Lin, "On applying fair queuing discipline to schedule requests at access
/// gateway for downlink differential QoS", section 3.2, equations (2) and (3).
#ifndef MSFRS_WINDOW_RATE_CONTROLLER_H
#define MSFRS_WINDOW_RATE_CONTROLLER_H

#include "engine/ledger.h"
#include "plugin/msfrs_plugin.h"

namespace msfrs {

/// Parameters; refused by the configuration, not here, when out of range.
struct WindowParams {
    double target = 0.98;               ///< U+, share of C, 0 < U+ < 1
    msfrs_time interval = 1'000'000'000; ///< T in ns, > 0
    double growth = 2.0;                ///< K, > 1
    double reserve = 0.5;               ///< share of W+ kept open for first quanta, >= 0
};

class RateController {
public:
    RateController(const WindowParams &, LedgerWindow &, msfrs_time now);
    void configure(const WindowParams &params) { params_ = params; }

    /// W < W+: a release of any kind is allowed.
    bool open() const;
    /// W < (1 + reserve) W+: a release of a first quantum is allowed.
    bool openForFresh() const;
    void released() { ++window_.outstanding; }
    void returned();

    /// Someone had to wait for a place: the window was full in this interval.
    void wasFull() { full_ = true; }

    /// When the current interval ends.
    msfrs_time nextUpdate() const { return start_ + params_.interval; }
    /// Ends the interval. Called with now >= nextUpdate(); a clock that stood still or went back changes nothing.
    /// \param bytes what the link carried in the interval, >= 0
    /// \param rate C in bit/s
    /// \returns whether an interval ended
    bool update(msfrs_time now, double bytes, double rate);

    double utilisation() const { return utilisation_; } ///< U_m of the last interval, share of C
    bool fullInLastInterval() const { return lastFull_; }
    const WindowParams &params() const { return params_; }
    const LedgerWindow &window() const { return window_; }

private:
    WindowParams params_;
    LedgerWindow &window_;
    msfrs_time start_;
    double utilisation_ = 0;
    bool full_ = false, lastFull_ = false;
};

} // namespace msfrs

#endif
