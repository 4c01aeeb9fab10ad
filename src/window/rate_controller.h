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
///
/// The way down. Once W+ exceeds what is asked for, nobody waits, (3) is silent and the window holds nothing back. So with
/// `queue` W+ also comes down whenever the link is full, whether or not anybody waits: from what is in service, if that
/// is less than W+. Where nobody waits, or the round trips to servers show a queue at the provider of more than `queue`,
/// it comes down fast to what does by these round trips, and below that by what is too much on the way; otherwise
/// slowly, until U is just below full, so that W+ is the smallest that fills the link. While the link is nearly idle W+
/// goes back to W0+. Not in the paper; off by default.
///
/// The floor. Other traffic that fills the link would take W+ down to 1, and whoever is scheduled would have nothing. While
/// requests wait and responses have less than `floor` of C, W+ does not come down, and places and receive windows grow: see
/// window_floor.h. Not in the paper.
#ifndef MSFRS_WINDOW_RATE_CONTROLLER_H
#define MSFRS_WINDOW_RATE_CONTROLLER_H

#include "engine/ledger.h"
#include "plugin/msfrs_plugin.h"
#include "window/flight_budget.h"
#include "window/window_floor.h"

#include <algorithm>
#include <optional>

namespace msfrs {

/// Parameters; refused by the configuration, not here, when out of range.
struct WindowParams {
    double target = 0.99;               ///< U+, share of C, 0 < U+ < 1
    msfrs_time interval = 1'000'000'000; ///< T in ns, > 0
    double growth = 2.0;                ///< K, > 1
    double reserve = 0.5;               ///< share of W+ kept open for first quanta, >= 0
    msfrs_time memory = 0;              ///< ns, full time that is gathered before W+ is recomputed; 0: half an interval
    double early = 0;                   ///< share of U+ below which W+ grows without waiting for `memory`; 0: never
    double initial = 1.0;               ///< W0+, >= 1
    double floor = 0.6;                 ///< share of C that responses keep beside other traffic, 0 <= floor < 1; 0: none
    msfrs_time queue = 0;               ///< ns, what may stand at the provider; 0: W+ does not come down by that
};

/// Why W+ was changed last.
enum class WindowChange { None, LinkNotFull, QueueAtProvider, NobodyWaits, LinkFull, Idle, Floor, Reset };
const char *WindowChangeText(WindowChange);

/// What connections to servers see, ns.
struct PathState {
    std::optional<msfrs_time> queue;    ///< what the queue at the provider adds to their round trips
    msfrs_time base = 0;                ///< their mean round trip without it; 0: not known
    double own = -1;                    ///< what responses had of C in the last interval, a share; negative: not known
    double places = 0;                  ///< that do by that round trip, with room to spare; 0: not known
    double weighted = 0;                ///< places that could be had by weight until a class has nobody waiting
};

class RateController {
public:
    RateController(const WindowParams &, LedgerWindow &, msfrs_time now, double total);
    void configure(const WindowParams &params) { params_ = params; }

    /// W < W+: a release of any kind is allowed.
    bool open() const;
    /// W <= W+: nobody has to give his place back.
    bool within() const;
    /// W < (1 + reserve) W+: a release of a first quantum is allowed.
    bool openForFresh() const;
    void released() { ++window_.outstanding; }
    void returned();

    /// Tells whether someone waits for a place (then the window is full), at every change at least.
    /// \param total bytes the link has carried since some fixed time
    void setFull(bool full, msfrs_time now, double total);
    bool full() const { return full_; }
    /// For how long somebody has waited for a place in all, ns.
    msfrs_time fullTime(const msfrs_time now) const
    {
        return fullEver_ + (full_ ? std::max<msfrs_time>(now - fullSince_, 0) : 0);
    }
    /// C is `factor` > 0 times what it was, and places hold about as much as before: W+ goes with it.
    void scale(double factor);
    /// W+ becomes a little less than what is in service, so that whoever asks for more waits.
    void tighten();
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
    bool update(msfrs_time now, double total, double rate, const PathState &path = {});

    /// W+ is W0+ again, whatever has been learned; the interval goes on.
    void reset(msfrs_time now, double total);

    /// Notes how many are outstanding, for their mean over an interval.
    void sample() { outstandingSum_ += window_.outstanding; ++outstandingSamples_; }

    /// Phi: receive windows of those in service add up to so many times C (R + q*), >= 1; with what the floor asks for.
    double onTheWay() const { return budget_.factor() * floor_.factor(); }
    double utilisation() const { return utilisation_; } ///< of the whole last interval, share of C
    double fullShare() const { return fullShare_; }     ///< share of the last interval in which it was full
    const WindowParams &params() const { return params_; }
    const LedgerWindow &window() const { return window_; }
    WindowChange lastChange() const { return lastChange_; }
    msfrs_time changedAt() const { return changedAt_; } ///< when; 0 if it never was

private:
    WindowParams params_;
    LedgerWindow &window_;
    void accountFull(msfrs_time now, double total);
    void recompute(msfrs_time now, double total, double rate, const PathState &);
    void lower(msfrs_time elapsed, const PathState &);
    bool keepFloor(msfrs_time elapsed, const PathState &);
    void change(double limit, WindowChange);

    msfrs_time start_;                ///< of the current interval
    double startTotal_;               ///< what the link had carried then
    bool full_ = false;
    msfrs_time fullSince_ = 0;        ///< accounted up to here, while full
    double fullSinceTotal_ = 0;
    msfrs_time fullEver_ = 0;         ///< full up to fullSince_
    msfrs_time fullTime_ = 0;         ///< full since the last recomputation of W+
    double fullBytes_ = 0;            ///< what the link carried in that time
    msfrs_time sinceRecomputed_;      ///< when that was
    double sinceRecomputedTotal_;     ///< what the link had carried then
    msfrs_time intervalFull_ = 0;     ///< full in the current interval
    double utilisation_ = 0, fullShare_ = 0;
    double outstandingSum_ = 0;       ///< of samples in the current interval
    uint32_t outstandingSamples_ = 0;
    msfrs_time fullFor_ = 0;          ///< intervals in a row in which the link was full
    double fullForBytes_ = 0;         ///< U times time over them, ns
    msfrs_time idleFor_ = 0;          ///< intervals in a row in which the link was nearly idle
    WindowChange lastChange_ = WindowChange::None;
    FlightBudget budget_;
    WindowFloor floor_;
    msfrs_time changedAt_ = 0;
};

} // namespace msfrs

#endif
