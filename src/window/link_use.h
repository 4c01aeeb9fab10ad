// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Utilisation of the link, per interval and over the time in which a request waited for a slot: a link that is not
/// full while no request waits says nothing about the window.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <algorithm>

namespace msfrs {

/// U_m (Tsao et al. 2008, equation 2): `bytes` in `time` as a share of C.
/// \param time ns > 0
/// \param rate C, bit/s > 0
double Utilisation(double bytes, msfrs_time time, double rate);

class LinkUse {
public:
    /// A point in time and the counts at that time.
    struct Mark {
        msfrs_time at;         ///< ns
        double total;          ///< bytes the link had carried since some fixed time
        msfrs_time full = 0;   ///< fullTime()
        double fullBytes = 0;  ///< carriedWhileFull()
    };

    /// \param interval T, ns > 0
    /// \param total bytes the link has carried since some fixed time
    LinkUse(msfrs_time interval, msfrs_time now, double total);
    void configure(const msfrs_time interval) { interval_ = interval; }

    /// Sets whether a request waits for a slot, that is, whether the window is full. Call at least at every change.
    void setFull(bool full, msfrs_time now, double total);
    bool full() const { return full_; }
    /// Total time in which a request has waited for a slot, ns.
    msfrs_time fullTime(const msfrs_time now) const
    {
        return fullEver_ + (full_ ? std::max<msfrs_time>(now - fullSince_, 0) : 0);
    }
    /// The same as of the last call of setFull() or update(), and the bytes that the link carried in that time.
    msfrs_time fullTime() const { return fullEver_; }
    double carriedWhileFull() const { return fullEverBytes_; }
    Mark mark(const msfrs_time now, const double total) const { return {now, total, fullEver_, fullEverBytes_}; }
    /// Totals count from another origin from now on.
    void rebase(msfrs_time now, double total);

    /// When the current interval ends.
    msfrs_time nextUpdate() const { return start_.at + interval_; }
    /// Whether update() is due: the interval is over, or the clock went back to before its start.
    bool due(const msfrs_time now) const { return now >= nextUpdate() || now < start_.at; }
    /// Ends the interval. Called when due(). If the clock stood still or went back U does not change; in the second
    /// case the interval starts again.
    /// \param rate C in bit/s, > 0
    /// \returns whether an interval ended
    bool update(msfrs_time now, double total, double rate);

    // Of the last interval:
    msfrs_time elapsed() const { return elapsed_; }     ///< its length, ns; 0 before the first
    double utilisation() const { return utilisation_; } ///< share of C
    /// Utilisation while a request waited, share of C; that of the whole interval if none did.
    double usedWhileFull() const { return usedWhileFull_; }
    double fullShare() const { return fullShare_; }     ///< share of it in which a request waited

private:
    void accountFull(msfrs_time now, double total);

    msfrs_time interval_;
    Mark start_;                      ///< of the current interval
    bool full_ = false;
    msfrs_time fullSince_ = 0;        ///< accounted up to here, while full
    double fullSinceTotal_ = 0;
    msfrs_time fullEver_ = 0;         ///< full up to fullSince_
    double fullEverBytes_ = 0;        ///< bytes carried in that time
    msfrs_time elapsed_ = 0;
    double utilisation_ = 0, fullShare_ = 0, usedWhileFull_ = 0;
};

} // namespace msfrs
