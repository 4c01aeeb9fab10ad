// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Estimates the capacity of the link, C, from passing traffic. It sends no probes.
///
/// Measured: *D*, the delivery rate at the interface; *q*, the queueing delay at the bottleneck, by which RTT samples
/// exceed the base RTT of their server; *limited*, whether requests wait and the window is full. While not limited, a
/// low D means low demand and a long q means a slow server, so C can only grow.
/// Controlled: C, from `min` to `max`. Bytes in flight are C (R + q*), so a standing queue drains once C is right.
///
///     from          to            when
///     Steady        Draining      limited, and q is long, or D has fallen and q grows, or q is more than
///                                   the allowed queue and D less than C
///     Draining      Steady        q is at most the allowed queue, or cuts were in vain
///     any           VariableRate  four swings in a minute
///     VariableRate  Steady        fewer than that in the last minute, or q was long, or short, for 7.5 s
///     any           Following     follow(): another worker estimates C
///     Following     Steady        lead()
///
/// - *Steady*. If D exceeds C by the margin, C becomes D, or 1.2 D while this continues and q is short. While limited,
///   with a short q and D equal to C, C grows by half the margin once per RTT. Growth stops when D no longer follows.
///   Where delay shows no queue (an AQM or a policer keeps it short) C ends up 3 to 5 % too high, a fifth at
///   most, by its last growth.
/// - *Draining*. Once per RTT C is cut to D, by at most half, until q is down to the allowed queue. A cut that reduces
///   D but not q was in vain. After three of these in a row the delay is not our queue but a longer route or a full
///   uplink: C is restored, and q is measured from there. If D keeps falling and q grows within the RTT, C follows at
///   once.
/// - *VariableRate* (window/swings.h). RTT samples show a queue too late on such a link, so C is 1.06 times D over
///   200 ms; the 6 % discover spare capacity. While not limited, C only grows.
/// - If a tenth of the packets arrive out of order and D is lower by a tenth (a policer), C becomes D over one second,
///   or over 300 ms if that is higher.
/// Otherwise C does not change, not even while nothing arrives.
///
/// BBR argues that a delivered rate proves capacity (Cardwell et al., CACM 60(2), 2017); the rest is not from a paper.
#pragma once

#include "plugin/msfrs_plugin.h"
#include "window/capacity_day.h"
#include "window/swings.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace msfrs {

/// Bounds of C. The configuration rejects values out of range.
struct CapacityParams {
    double min = 0; ///< bit/s, > 0
    double max = 0; ///< bit/s, >= min
};

/// A measurement. Sums may have any origin.
struct CapacitySample {
    double total = 0;                ///< bytes that the link has carried; a sum, never decreases
    msfrs_time full = 0;             ///< ns in which requests have waited for a slot; a sum
    std::optional<msfrs_time> queue; ///< ns >= 0: queueing delay seen in RTT samples of the last `Recent`
    msfrs_time base = 0;             ///< ns: mean base RTT; 0: not known
    msfrs_time allowed = 30'000'000; ///< ns, > 0: the standing queue that the window allows
    uint64_t packets = 0;            ///< received on connections to servers; a sum
    uint64_t outOfOrder = 0;         ///< of these, the ones that arrived out of order; a sum
};

/// Why C was changed.
enum class CapacityReason { Carried, NoQueue, Queue, CarriesLess, Loss, LongerPath, Bounds, Followed, VariableRate };
const char *CapacityReasonText(CapacityReason);

struct CapacityChange {
    msfrs_time at;        ///< ns
    double from, to;      ///< bit/s
    CapacityReason why;
};

/// The estimate and the reasons for it.
struct CapacityReport {
    CapacityParams params;
    double rate = 0;      ///< C, bit/s
    double delivered = 0; ///< D, bit/s
    double loss = 0;      ///< share of the packets of the last second that arrived out of order
    double queue = -1;    ///< q, s; negative: too few RTT samples
    double ignored = 0;   ///< s of q that count as part of the base RTT
    bool limited = false;
    double known = 0;     ///< s of the last day in which requests waited, so that C was measured
    double mostly = 0, half = 0; ///< lower bound of C in nine tenths, and in half, of that time, bit/s
    std::deque<CapacityChange> changes; ///< latest last, at most 16; changes for one reason within a second are merged
};

/// See the table above.
enum class CapacityMode { Steady, Draining, VariableRate, Following };

class Capacity {
public:
    static constexpr msfrs_time Every = 100'000'000; ///< ns between updates
    /// ns, two updates: the span of D from which C is reduced, and the age limit of the RTT samples beside it.
    static constexpr msfrs_time Prompt = 2 * Every;
    static constexpr msfrs_time Recent = 400'000'000; ///< ns of RTT samples from which q is estimated

    /// C is `min` at first.
    /// \param bounding whether C bounds the bytes in flight, as in Squid: then C may follow D on a variable-rate
    ///   link. If packets are paced at C instead, D never exceeds C
    Capacity(const CapacityParams &, msfrs_time now, bool bounding = false);
    /// Sets other bounds; C stays if it is within them.
    void configure(const CapacityParams &, msfrs_time now);

    msfrs_time nextUpdate() const { return ticks_.back().at + Every; }
    /// To be called when due. If the clock goes back, measurement starts again and C stays.
    /// \returns whether C has changed
    bool update(const CapacitySample &, msfrs_time now);
    /// From now on another worker estimates C. Adopts its estimate, bit/s > 0, within the bounds. Measurement
    /// continues in case that worker dies.
    void follow(double rate, msfrs_time now);
    void lead(); ///< estimates C here again, from its present value

    bool varies() const { return mode_ == CapacityMode::VariableRate; } ///< whether it is a variable-rate link
    double rate() const { return report_.rate; } ///< C, bit/s, from min to max
    CapacityReport report() const;
    /// The same without the figures of the last day; cheaper.
    const CapacityReport &latest() const { return report_; }

private:
    struct Tick {
        msfrs_time at;
        CapacitySample seen;
    };
    /// Measurements over some time.
    struct Span {
        double rate;    ///< D, bit/s
        double limited; ///< share of it in which requests waited
        double loss;    ///< share of packets out of order
    };
    struct Cut {
        double from;          ///< C before D began to follow C down, bit/s
        msfrs_time queue, at; ///< of the latest cut, ns
        int inVain;           ///< cuts in a row that reduced D but not q
    };
    Span over(msfrs_time) const;
    static bool isLimited(const Span &);
    bool queueGrows() const;
    void judge(msfrs_time now);
    void watchSwings(std::optional<msfrs_time> queue, msfrs_time now);
    void followDelivery(msfrs_time now);
    void judgeQueue(msfrs_time queue, double settled, const Span &whole, msfrs_time now);
    void drain(msfrs_time queue, double delivered, CapacityReason, msfrs_time now);
    bool needsAnotherCut(msfrs_time queue, double delivered, msfrs_time now);
    bool cutsInVain(msfrs_time queue, double ratio, msfrs_time now);
    void change(double rate, CapacityReason, msfrs_time now);

    CapacityReport report_;       ///< without the figures of day_
    CapacityDay day_;
    std::deque<Tick> ticks_;      ///< of the last second and a bit; never empty
    msfrs_time ignored_ = 0;      ///< ns of q that are part of the base RTT
    msfrs_time carriedAt_ = -1;   ///< when D was last more than C; negative: never
    msfrs_time grownAt_ = 0;      ///< when C last grew because q was short
    CapacityMode mode_ = CapacityMode::Steady;
    Cut cut_ = {};                ///< Draining: the latest
    bool bounding_;               ///< see the constructor
    Swings swings_;
    int side_ = 0;                ///< 1: q is long, -1: it is short and requests wait; 0: neither
    msfrs_time sideSince_ = 0;    ///< VariableRate: since when
    double sideFrom_ = 0;         ///< C then, bit/s
};

} // namespace msfrs
