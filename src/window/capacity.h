// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Estimates the capacity of the link, C, from passing traffic: no probes are sent.
///
/// Measured: *D*, the delivery rate at the interface; *q*, the queueing delay at the bottleneck, by which RTT samples
/// exceed the base RTT of their server; *limited*, whether requests wait and the window is full. If it is not
/// limited, a low D means little demand and a long q a slow server, so C can only grow. Controlled: C, from `min` to
/// `max`. Bytes in flight are C (R + q*), so that a standing queue drains once C is right.
///
///     from          to            when
///     Steady        Draining      limited, and q is long, or D has fallen and q grows
///     Draining      Steady        q is at most what is allowed, or cuts were in vain
///     any           VariableRate  four swings in a minute
///     VariableRate  Steady        fewer than that in the last minute, or q was long, or short, for 10 s
///     any           Following     follow(): another worker finds C
///     Following     Steady        lead()
///
/// - *Steady*. If D exceeds C by the margin, C is D, and a fifth more while that goes on and q is short. If it is
///   limited, q is short and D is C, C grows by half the margin once per RTT; it stops where D does not follow, 3 to
///   5 % too high where delays show nothing (an AQM or a policer keeps the queue short).
/// - *Draining*. C is D, reduced by at most half at a time, once per RTT, until q is what is allowed. A cut that
///   reduces D but not q was in vain. After three in a row the cause is no queue of ours but a longer route or a full
///   uplink: C is restored, and q counts from there. If D falls on and q grows within the RTT, C follows at once.
/// - *VariableRate* (window/swings.h). RTT samples show a queue too late there, so C is D of 200 ms and 7 % more,
///   which finds what the link can carry beyond. If it is not limited C only grows.
/// - If a tenth of the packets arrive out of order and D is lower by a tenth, C is D of a second, or of 300 ms if that
///   is more (a policer).
/// Otherwise C stays, also while nothing arrives at all.
///
/// That delivery proves capacity is BBR's argument (Cardwell et al., CACM 60(2), 2017); the rest is not from a paper.
#ifndef MSFRS_WINDOW_CAPACITY_H
#define MSFRS_WINDOW_CAPACITY_H

#include "plugin/msfrs_plugin.h"
#include "window/capacity_day.h"
#include "window/swings.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace msfrs {

/// Bounds of C. The configuration refuses what is out of range.
struct CapacityParams {
    double min = 0; ///< bit/s, > 0
    double max = 0; ///< bit/s, >= min
};

/// Parameters of the law. docs/lab/constants.md shows the effect of half and double of each.
struct CapacityLaw {
    msfrs_time brief = 300'000'000;  ///< ns that D is averaged over: a few quanta of a slow link, most RTTs
    msfrs_time prompt = 200'000'000; ///< ns that D is averaged over before C is reduced: two updates
    double limited = 0.9;            ///< share of that time in which requests waited
    double margin = 0.03;            ///< of C: variation of D that bursts and timer granularity cause
    double further = 1.2;            ///< times D while D grows: from 1 to 60 Mbit/s within ten seconds
    double beyond = 1.07;            ///< times D on a variable-rate link
    double shortQueue = 0.25, longQueue = 2; ///< times the allowed queue
    double fall = 0.7;               ///< D over C at which the link has become slower, before q shows it
    double alike = 0.1;              ///< relative difference of queues or rates that does not count; share of packets
    int inVain = 3;                  ///< cuts in a row without effect on q
    msfrs_time settled = 10'000'000'000; ///< ns of a long, or short, queue that end VariableRate
    uint64_t packets = 20;           ///< fewest in a second that give a share of loss
};

/// A measurement. Sums may start anywhere.
struct CapacitySample {
    double total = 0;                ///< bytes that the link has carried; a sum, never less than before
    msfrs_time full = 0;             ///< ns in which requests have waited for a slot; a sum
    std::optional<msfrs_time> queue; ///< ns >= 0: queueing delay seen in RTT samples of the last `Recent`
    msfrs_time base = 0;             ///< ns: mean base RTT; 0: not known
    msfrs_time allowed = 30'000'000; ///< ns, > 0: the standing queue that the window allows
    uint64_t packets = 0;            ///< that connections to servers have received; a sum
    uint64_t outOfOrder = 0;         ///< of these, that came before others sent earlier; a sum
};

/// Why C was changed.
enum class CapacityReason { Carried, NoQueue, Queue, CarriesLess, Loss, LongerPath, Bounds, Followed, VariableRate };
const char *CapacityReasonText(CapacityReason);

struct CapacityChange {
    msfrs_time at;        ///< ns
    double from, to;      ///< bit/s
    CapacityReason why;
};

/// The estimate, and why it is what it is.
struct CapacityReport {
    CapacityParams params;
    double rate = 0;      ///< C, bit/s
    double delivered = 0; ///< D, bit/s
    double loss = 0;      ///< share of the packets of the last second that came out of order
    double queue = -1;    ///< q, s; negative: too few RTT samples
    double ignored = 0;   ///< s of q that count as part of the base RTT
    bool limited = false;
    double known = 0;     ///< s of the last day in which requests waited, so that C was measured
    double mostly = 0, half = 0; ///< what C was at least for nine tenths of that time, and for half of it, bit/s
    std::deque<CapacityChange> changes; ///< the latest last, at most 16; what had one reason for a second is one
};

/// See the table above.
enum class CapacityMode { Steady, Draining, VariableRate, Following };

class Capacity {
public:
    static constexpr msfrs_time Every = 100'000'000; ///< ns between updates
    static constexpr msfrs_time Recent = 400'000'000; ///< ns that RTT samples may be old

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
    /// Another worker finds C from here on, and has found this, bit/s > 0: adopted within the bounds. Measurements go
    /// on, in case that worker dies.
    void follow(double rate, msfrs_time now);
    void lead(); ///< C is found here again, from its present value

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
    /// Measured over some time.
    struct Span {
        double rate;    ///< D, bit/s
        double limited; ///< share of it in which requests waited
        double loss;    ///< share of packets out of order; 0 if there were few
    };
    struct Cut {
        double from;          ///< C before D began to follow C down, bit/s
        msfrs_time queue, at; ///< of the latest, ns
        int inVain;           ///< cuts in a row that brought D down and not q
    };
    Span over(msfrs_time) const;
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
    msfrs_time grownAt_ = 0;      ///< when C last grew by itself
    CapacityMode mode_ = CapacityMode::Steady;
    Cut cut_ = {};                ///< Draining: the latest
    bool bounding_;               ///< see the constructor
    Swings swings_;
    int side_ = 0;                ///< 1: q is long, -1: it is short and requests wait; 0: neither
    msfrs_time sideSince_ = 0;    ///< VariableRate: since when
    double sideFrom_ = 0;         ///< C then, bit/s
};

} // namespace msfrs

#endif
