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
/// Since U cannot exceed 1, (3) reduces W+ by at most 2 % but may double it: a noisy U drives W+ up. So `memory`
/// gathers full time over several intervals, while `early` lets W+ grow at once if the link is plainly not full.
/// Neither is in the paper, whose T is long; both are off by default.
///
/// The way down. If W+ exceeds the demand, nobody waits, (3) does not apply and the window holds nothing back. So with
/// `queue` W+ also shrinks whenever the link is full, whether or not requests wait. It starts from the number in
/// service, if that is less than W+. If nobody waits, or round trips show a queue at the provider of more than
/// `queue`, it shrinks fast to what these round trips need, and more gently below that while the queue is long.
/// Otherwise it shrinks slowly until U is just below full, so that W+ is the smallest that fills the link. While the
/// link is nearly idle W+ returns to W0+. Not in the paper; off by default.
///
/// Beside packets that msfrs-edge paces, U misses U+ by what their pace and their bursts leave. Phi is to make up for
/// receive windows that are not used, and for nothing else: it goes by 1 - 3 (1 - U+) then.
///
/// The floor. Other traffic that fills the link would reduce W+ to 1, and the scheduled traffic would get nothing.
/// While requests wait and responses have less than `floor` of C, W+ does not shrink, and places and receive windows
/// grow: see window_floor.h. Not in the paper.
#ifndef MSFRS_WINDOW_RATE_CONTROLLER_H
#define MSFRS_WINDOW_RATE_CONTROLLER_H

#include "plugin/msfrs_plugin.h"
#include "window/flight_budget.h"
#include "window/window_floor.h"

#include <algorithm>
#include <optional>

namespace msfrs {

/// What decides when the next response is released: bytes in flight (FlightCredit), or W < W+.
enum class WindowLaw { Bytes, Places };

/// Parameters. The configuration checks the ranges and refuses; nothing is checked here.
struct WindowParams {
    double target = 0.99;               ///< U+, share of C, 0 < U+ < 1
    msfrs_time interval = 1'000'000'000; ///< T in ns, > 0
    double growth = 2.0;                ///< K, > 1
    double reserve = 0.5;               ///< share of W+ kept open for first quanta, >= 0
    msfrs_time memory = 0;              ///< ns >= 0, full time gathered before W+ is recomputed; 0: half an interval
    double early = 0;                   ///< share of U+ below which W+ grows without `memory`; 0: never
    double initial = 1.0;               ///< W0+, >= 1
    double floor = 0.6;                 ///< share of C kept beside other traffic, 0 <= floor < 1; 0: none
    msfrs_time queue = 0;               ///< q0 in ns >= 0, queue tolerated at the provider; 0: no way down
    WindowLaw law = WindowLaw::Bytes;   ///< Bytes needs quanta
};

/// What the controller steers.
struct LedgerWindow {
    uint32_t outstanding = 0; ///< items released and neither paused nor done
    uint32_t elsewhere = 0;   ///< the same of other parties on the link
    double limit = 1.0;       ///< W+: how many may be outstanding; real, >= 1

    uint32_t all() const { return outstanding + elsewhere; } ///< W
};

/// Reason of the last change of W+.
enum class WindowChange { None, LinkNotFull, QueueAtProvider, NobodyWaits, LinkFull, Idle, Floor, Reset, Followed };
const char *WindowChangeText(WindowChange); ///< for reports

/// State of the path at the end of an interval.
struct PathState {
    std::optional<msfrs_time> queue;    ///< what the queue at the provider adds to round trips, ns; empty: not known
    msfrs_time base = 0;                ///< mean round trip without it, ns; 0: not known
    double own = -1;                    ///< share of C that responses had in the last interval; negative: not known
    double places = 0;                  ///< that `base` needs to fill the link, with a margin; 0: not known
    double weighted = 0;                ///< places by weight at which a class would have nobody waiting
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
    /// So many are outstanding of other parties on the link. \param paced of these, worth of packets that are paced
    void elsewhere(const uint32_t outstanding, const uint32_t paced = 0)
    {
        window_.elsewhere = outstanding;
        paced_ = paced;
    }
    /// Another party computes W+ from here on: nothing here changes it.
    void follow(double limit, msfrs_time now);
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
    /// C is `factor` > 0 times what it was, and places hold about as much as before: W+ goes with it.
    void scale(double factor);
    /// W+ becomes a little less than what is in service, so that whoever asks for more waits.
    void tighten();
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
    /// \returns whether an interval ended
    bool update(msfrs_time now, double total, double rate, const PathState &path = {});

    /// Sets W+ to W0+ and forgets what was learned; the interval goes on.
    void reset(msfrs_time now, double total);

    /// Takes a sample of W, for its mean over the interval.
    void sample() { outstandingSum_ += window_.all(); ++outstandingSamples_; }

    /// Phi >= 1, the factor of the floor included: receive windows in service add up to phi C (R + q*).
    double onTheWay() const { return budget_.factor() * floor_.factor(); }
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
    WindowChange lastChange() const { return lastChange_; }
    msfrs_time changedAt() const { return changedAt_; } ///< when W+ changed last; 0: never

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
    bool led_ = false;                ///< see follow()
    uint32_t paced_ = 0;              ///< see elsewhere()
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
