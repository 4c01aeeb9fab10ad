// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The window-based rate controller (WRC): the number of responses that may be outstanding, W+, so that the link is
/// just full. Paper: Tsao, Lai, Tsao, Lin, "On applying fair queuing discipline to schedule requests at access
/// gateway for downlink differential QoS", section 3.2, equations (2) and (3).
///
/// The paper recomputes W+ only when W = W+: a link that is not full while nobody waits says nothing about W+. So U_m
/// is measured over the time in which the window was full, that is, in which a request waited for a place. This time
/// adds up, and once it reaches half an interval W+ is recomputed at the end of the interval. Under backlog this is
/// exactly the paper's rule. With bursts it keeps the idle gaps between them out of U_m, which would otherwise open
/// the window until it holds nothing back.
///
/// W+ decides releases with `law=paper`, and without quanta. With `law=bytes` FlightCredit does, and only the measurements
/// made here are used: U, and for how long requests waited.
#ifndef MSFRS_WINDOW_RATE_CONTROLLER_H
#define MSFRS_WINDOW_RATE_CONTROLLER_H

#include "plugin/msfrs_plugin.h"
#include "window/window_floor.h"

#include <algorithm>

namespace msfrs {

/// What decides when the next response is released: bytes in flight (FlightCredit), or W < W+.
enum class WindowLaw { Bytes, Paper };

/// Parameters. The configuration checks the ranges and refuses; nothing is checked here.
struct WindowParams {
    double target = 0.99;               ///< U+, share of C, 0 < U+ < 1
    msfrs_time interval = 1'000'000'000; ///< T in ns, > 0
    double growth = 2.0;                ///< K, > 1
    double reserve = 0.5;               ///< share of W+, or of C, kept open for first quanta, >= 0
    double floor = 0.6;                 ///< share of C kept beside other traffic, 0 <= floor < 1; 0: none
    msfrs_time queue = 0;               ///< q0 in ns >= 0, queue that may stand at the provider
    WindowLaw law = WindowLaw::Bytes;   ///< Bytes needs quanta
};

/// What the controller steers.
struct LedgerWindow {
    uint32_t outstanding = 0; ///< items released and neither paused nor done
    uint32_t elsewhere = 0;   ///< the same of other parties on the link
    double limit = 1.0;       ///< W+: how many may be outstanding; real, >= 1

    uint32_t all() const { return outstanding + elsewhere; } ///< W
};

class RateController {
public:
    /// \param total bytes the link has carried since some fixed time
    RateController(const WindowParams &, LedgerWindow &, msfrs_time now, double total);
    void configure(const WindowParams &params) { params_ = params; }

    /// W < W+: any item may be released.
    bool open() const;
    /// W <= W+: no item has to give its place back.
    bool within() const;
    /// W < (1 + reserve) W+: an item without service may be released.
    bool openForFresh() const;
    void released() { ++window_.outstanding; } ///< W + 1
    /// So many are outstanding of other parties on the link.
    void elsewhere(const uint32_t outstanding) { window_.elsewhere = outstanding; }
    /// Another party computes W+ from here on: nothing here changes it.
    void follow(double limit);
    /// It is computed here, from what it is.
    void lead() { led_ = false; }
    void returned();                           ///< W - 1; 0 stays 0

    /// Says whether a request waits for a place: then the window is full. To be called at least at every change.
    /// \param total bytes the link has carried since some fixed time
    void setFull(bool full, msfrs_time now, double total);
    bool full() const { return full_; }
    /// For how long somebody has waited for a place in all, ns.
    msfrs_time fullTime(const msfrs_time now) const
    {
        return fullEver_ + (full_ ? std::max<msfrs_time>(now - fullSince_, 0) : 0);
    }
    /// The same as of the last call of setFull() or update(), and the bytes that the link carried in it.
    msfrs_time fullTime() const { return fullEver_; }
    double carriedWhileFull() const { return fullEverBytes_; }
    /// From here on totals are counted from another origin.
    void rebase(msfrs_time now, double total);

    /// When the current interval ends.
    msfrs_time nextUpdate() const { return start_ + params_.interval; }
    /// Whether update() is due: the interval is over, or the clock went back to before its start.
    bool due(const msfrs_time now) const { return now >= nextUpdate() || now < start_; }
    /// Ends the interval. Called when due(). If the clock stood still or went back, U and W+ do not change; in the
    /// second case the interval starts again.
    /// \param total bytes the link has carried since some fixed time
    /// \param rate C in bit/s, > 0
    /// \param own share of C that responses had in the interval; negative: not known
    /// \returns whether an interval ended
    bool update(msfrs_time now, double total, double rate, double own = -1);

    /// Sets W+ to 1 and forgets what was learned; the interval goes on.
    void reset(msfrs_time now, double total);

    /// Share of C that is the responses': what other traffic leaves, and at least the floor unless that traffic is
    /// known not to give way.
    double leftByOthers() const
    {
        return std::max(1 - floor_.others(), floor_.inVain() ? 1 - params_.target : params_.floor);
    }
    double floorGrowth() const { return floor_.factor(); } ///< >= 1: the part of it that is the floor's
    double utilisation() const { return utilisation_; } ///< of the whole last interval, share of C
    /// Of the time in the last interval in which a request waited, share of C; of all of it if none did.
    double usedWhileFull() const { return usedWhileFull_; }
    double fullShare() const { return fullShare_; }     ///< share of the last interval in which a request waited
    const WindowParams &params() const { return params_; }
    const LedgerWindow &window() const { return window_; }

private:
    WindowParams params_;
    LedgerWindow &window_;
    void accountFull(msfrs_time now, double total);
    void recompute(msfrs_time now, double total, double rate);
    void beginMeasurement(msfrs_time now, double total);
    void change(double limit);

    msfrs_time start_;                ///< of the current interval
    double startTotal_;               ///< what the link had carried then
    bool full_ = false;
    bool led_ = false;                ///< see follow()
    msfrs_time fullSince_ = 0;        ///< accounted up to here, while full
    double fullSinceTotal_ = 0;
    msfrs_time fullEver_ = 0;         ///< full up to fullSince_
    double fullEverBytes_ = 0;        ///< what the link carried in that time
    msfrs_time fullTime_ = 0;         ///< full since the last recomputation of W+
    double fullBytes_ = 0;            ///< what the link carried in that time
    msfrs_time sinceRecomputed_;      ///< when that was
    double sinceRecomputedTotal_;     ///< what the link had carried then
    msfrs_time intervalFull_ = 0;     ///< full in the current interval
    double utilisation_ = 0, fullShare_ = 0;
    double usedWhileFull_ = 0, intervalFullBytes_ = 0;
    WindowFloor floor_;
};

} // namespace msfrs

#endif
