// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The floor: the share of the link that responses keep beside traffic that does not pass the gateway.
///
/// Such traffic also fills the link, so the rate controller would keep yielding to it. And receive windows that leave
/// no standing queue lose against traffic that fills the bottleneck queue. So while requests wait and responses have
/// less than the floor, receive windows grow and more responses are released: they compete like that many TCP
/// connections. Some requests must still wait, since weights have no effect without a backlog (MostPlaces).
///
/// Growth is worth it only beside traffic that fills the buffer anyway, as TCP downloads do. Beside a constant stream
/// the queue would be the responses' own, and they would gain nothing. That is found by comparison: windows grow for
/// half a minute, and then do not for as long. If the queue is as long without growth, they grow for ten minutes,
/// otherwise they do not. The share that responses gain is no such test: it varies by more than that. Not in the paper.
#pragma once

#include "window/thresholds.h"

namespace msfrs {

class WindowFloor {
public:
    static constexpr double MostPlaces = 0.75; ///< times the slots at which a class would have none waiting
    static constexpr msfrs_time Lasts = 600'000'000'000; ///< ns: validity of a comparison

    /// None: other traffic leaves enough. Trial, then Without: windows grow, and do not. Kept and Vain: so they stay.
    enum class Phase : uint8_t { None = 1, Trial, Without, Kept, Vain };

    /// Figures of an interval that has ended.
    struct Interval {
        msfrs_time elapsed;  ///< its length, ns > 0
        double utilisation;  ///< U, share of C
        double own;          ///< share of C that responses had; negative: not known
        double fullShare;    ///< share of it in which a request waited for a slot, 0 to 1
        msfrs_time queue;    ///< usual queueing delay at the provider, ns; negative: not known
    };

    /// \param floor share of C that responses keep, 0 <= floor < 1; 0: none
    void update(const Interval &, double floor);
    /// Takes the phase of the party that leads, until the end of the next interval: all must grow, or none.
    void follow(Phase);
    Phase phase() const { return phase_; }

    double factor() const { return factor_; } ///< of receive windows, 1 to MostTimes
    /// Share of C that other traffic had, a mean over some seconds; 0 if a wrong overhead can explain it.
    double others() const { return others_ < Alike ? 0 : others_; }
    /// Whether responses have less than the floor beside other traffic: its queue may be there all the time.
    bool below() const { return phase_ != Phase::None; }
    /// Whether windows do not grow although responses are below the floor: to compare, or because growth is in vain.
    bool inVain() const { return phase_ == Phase::Without || phase_ == Phase::Vain; }

private:
    void notice(const Interval &);
    void enter(Phase);
    void advance(bool beside, double floor);
    /// Whether the queue is as long as it was with growth: then other traffic fills the buffer.
    bool asLong() const { return queue_ > (1 - Alike) * grown_; }

    Phase phase_ = Phase::None;
    bool follows_ = false; ///< in the next interval
    msfrs_time since_ = 0; ///< ns since the phase began
    double queue_ = 0;     ///< mean queue over some seconds, ns
    double grown_ = 0;     ///< queue_ when windows stopped growing
    double factor_ = 1;
    double own_ = 1, others_ = 0, waiting_ = 0; ///< means over some seconds: shares of C, share of time with waiting
};

} // namespace msfrs
