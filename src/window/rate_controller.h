// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The window-based rate controller (WRC): how many responses may be outstanding, W+, so that the link is just
/// full. Paper: Tsao, Lai, Tsao, Lin, "On applying fair queuing discipline to schedule requests at access
/// gateway for downlink differential QoS", section 3.2, equations (2) and (3).
///
/// "W+ should be recomputed only when W = W+": a link that is not full while nobody waits says nothing about W+.
/// U_m is therefore measured over the time in which the window was full, that is, in which someone waited for a
/// place, and W+ is recomputed at the end of an interval once that time has come to half an interval; until
/// then it adds up. Under backlog this is the paper's rule to the letter. With bursts it keeps the idle gaps
/// between them out of U_m, which would otherwise open the window until it holds nothing back.
///
/// Since U cannot exceed 1, (3) takes 2 % off W+ at most but may double it: a noisy U drives W+ up. So `memory` gathers
/// full time over several intervals, while `early` lets W+ grow at once when the link is plainly not full. Neither is
/// in the paper, whose T is long; both are off by default.
#ifndef MSFRS_WINDOW_RATE_CONTROLLER_H
#define MSFRS_WINDOW_RATE_CONTROLLER_H

#include "engine/ledger.h"
#include "plugin/msfrs_plugin.h"

namespace msfrs {

/// Parameters; refused by the configuration, not here, when out of range.
struct WindowParams {
    double target = 0.995;              ///< U+, share of C, 0 < U+ < 1
    msfrs_time interval = 1'000'000'000; ///< T in ns, > 0
    double growth = 2.0;                ///< K, > 1
    double reserve = 0.5;               ///< share of W+ kept open for first quanta, >= 0
    msfrs_time memory = 0;              ///< ns, full time that is gathered before W+ is recomputed; 0: half an interval
    double early = 0;                   ///< share of U+ below which W+ grows without waiting for `memory`; 0: never
    double initial = 1.0;               ///< W0+, >= 1
};

class RateController {
public:
    RateController(const WindowParams &, LedgerWindow &, msfrs_time now, double total);
    void configure(const WindowParams &params) { params_ = params; }

    /// W < W+: a release of any kind is allowed.
    bool open() const;
    /// W < (1 + reserve) W+: a release of a first quantum is allowed.
    bool openForFresh() const;
    void released() { ++window_.outstanding; }
    void returned();

    /// Tells whether someone waits for a place (then the window is full), at every change at least.
    /// \param total bytes the link has carried since some fixed time
    void setFull(bool full, msfrs_time now, double total);
    bool full() const { return full_; }
    /// From here on totals are counted from another origin.
    void rebase(msfrs_time now, double total);

    /// When the current interval ends.
    msfrs_time nextUpdate() const { return start_ + params_.interval; }
    /// Whether update() has something to do: the interval is over, or the clock went back before it began.
    bool due(const msfrs_time now) const { return now >= nextUpdate() || now < start_; }
    /// Ends the interval. Called when due(). A clock that stood still or went back leaves U and W+ as they are; in
    /// the second case the interval begins anew.
    /// \param total bytes the link has carried since some fixed time
    /// \param rate C in bit/s
    /// \returns whether an interval ended
    bool update(msfrs_time now, double total, double rate);

    double utilisation() const { return utilisation_; } ///< of the whole last interval, share of C
    double fullShare() const { return fullShare_; }     ///< share of the last interval in which it was full
    const WindowParams &params() const { return params_; }
    const LedgerWindow &window() const { return window_; }

private:
    WindowParams params_;
    LedgerWindow &window_;
    void accountFull(msfrs_time now, double total);
    void recompute(msfrs_time now, double total, double rate);

    msfrs_time start_;                ///< of the current interval
    double startTotal_;               ///< what the link had carried then
    bool full_ = false;
    msfrs_time fullSince_ = 0;        ///< accounted up to here, while full
    double fullSinceTotal_ = 0;
    msfrs_time fullTime_ = 0;         ///< full since the last recomputation of W+
    double fullBytes_ = 0;            ///< what the link carried in that time
    msfrs_time sinceRecomputed_;      ///< when that was
    double sinceRecomputedTotal_;     ///< what the link had carried then
    msfrs_time intervalFull_ = 0;     ///< full in the current interval
    double utilisation_ = 0, fullShare_ = 0;
};

} // namespace msfrs

#endif
