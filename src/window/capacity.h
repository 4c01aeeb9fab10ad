// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What the link carries, C, found from what passes anyway: nothing is sent to find out.
///
/// Measured: *D*, what the interface received; *q*, by how much round trips to servers exceed their least: a queue at
/// the provider, which stands only where the link is full; *limited*, whether somebody waits and the window is full.
/// Who is not limited shows with little D that little was asked for, and with a long q that its server is slow: C may
/// only grow then. Controlled: C, from `min` to `max`; what is on its way is C (R + q*), so that a queue goes away once
/// C is right.
///
///      +------------- q <= allowed, or in vain -------------+
///      v                                                    |
///     Steady ---- limited, q long, or D fell and q grows --> Draining
///      |  ^                                                 |
///      |  +-- q long or short on end, or a minute quiet     |
///      |                                       |            |
///      +------- four swings in a minute ---> Wandering <----+         any ---> Following (another finds C)
///
/// - *Steady*: D over C by the margin: C is D, and a fifth more if that goes on while q is short. Limited, q short and D
///   is C: C grows by half the margin, once in a round trip; where D does not follow it ends there, 3 to 5 % too high
///   where delays say nothing (a queue that an AQM or a policer keeps short).
/// - *Draining*: C is D, by no more than half at a time, once in a round trip, until q is what is allowed. A cut that
///   brings D down and not q was in vain: three in a row, and it was no queue (a longer route, a full uplink): C is what
///   it was, and q counts from there. If D falls on and q grows within a round trip C follows at once.
/// - *Wandering* (window/swings.h): a queue comes and goes, and round trips tell it too late. C is D of 200 ms and 7 %
///   more, which finds what is beyond; while nobody waits it only grows.
/// - With a tenth of the packets out of order and D that much less, C is D of a second (a policer).
/// Else C stays; so it does while nothing comes at all.
///
/// Greatest delivery as evidence is BBR's (Cardwell et al., CACM 60(2), 2017); the rest is of our own.
#ifndef MSFRS_WINDOW_CAPACITY_H
#define MSFRS_WINDOW_CAPACITY_H

#include "plugin/msfrs_plugin.h"
#include "window/capacity_day.h"
#include "window/swings.h"

#include <cstdint>
#include <deque>
#include <optional>

namespace msfrs {

/// Between what C is looked for; refused by the configuration, not here, when out of range.
struct CapacityParams {
    double min = 0; ///< bit/s, > 0
    double max = 0; ///< bit/s, >= min
};

/// What the law is made of. docs/lab/constants.md has what half and double of each do. D of a second, by which rates are
/// judged where a moment is too uneven, is not among them.
struct CapacityLaw {
    msfrs_time brief = 300'000'000;  ///< ns, of D: a few quanta of a slow link, a round trip of most
    msfrs_time prompt = 200'000'000; ///< ns, of D where C has to come down: two updates
    double limited = 0.9;            ///< share of that time in which somebody waited
    double margin = 0.03;            ///< of C: more than packets and clocks make of D
    double further = 1.2;            ///< times D, while D goes on growing: from 1 to 60 Mbit/s in ten seconds
    double beyond = 1.07;            ///< times D on a link that wanders
    double shortQueue = 0.25, longQueue = 2; ///< times the queue that is allowed
    double fall = 0.7;               ///< D over C: the link carries less, before q tells
    double alike = 0.1;              ///< of two queues, and of rates: no difference; of packets: few
    int inVain = 3;                  ///< cuts in a row
    msfrs_time settled = 10'000'000'000; ///< ns: it does not wander, the queue being long or short for so long
    uint64_t packets = 20;           ///< of fewer no share of loss is known
};

/// What is seen. Sums count from any time on.
struct CapacitySample {
    double total = 0;                ///< bytes that the link has carried; a sum, never less than before
    msfrs_time full = 0;             ///< ns in which somebody has waited for a place; a sum
    std::optional<msfrs_time> queue; ///< ns >= 0: what round trips of the last `Recent` are beyond their least, to
                                     ///< all servers
    msfrs_time base = 0;             ///< ns: the mean of these least round trips; 0: not known
    msfrs_time allowed = 30'000'000; ///< ns, > 0: the queue that the window lets stand
    uint64_t packets = 0;            ///< that connections to servers have received; a sum
    uint64_t outOfOrder = 0;         ///< of these, that came before others sent earlier; a sum
};

/// Why C was changed.
enum class CapacityReason { Carried, NoQueue, Queue, CarriesLess, Loss, LongerPath, Bounds, Followed, Wanders };
const char *CapacityReasonText(CapacityReason);

struct CapacityChange {
    msfrs_time at;        ///< ns
    double from, to;      ///< bit/s
    CapacityReason why;
};

/// What is believed and why.
struct CapacityReport {
    CapacityParams params;
    double rate = 0;      ///< C, bit/s
    double delivered = 0; ///< D of the last 300 ms, bit/s
    double loss = 0;      ///< share of the packets of the last second that came out of order
    double queue = -1;    ///< q, s; negative: too few round trips were seen lately
    double ignored = 0;   ///< s of q that are taken for a longer path
    bool limited = false;
    double known = 0;     ///< s of the last day in which somebody waited, so that C was not only heard of
    double mostly = 0, half = 0; ///< what C was at least for nine tenths of that time, and for half of it, bit/s
    std::deque<CapacityChange> changes; ///< the latest last, at most 16; what had one reason for a second is one
};

/// See the diagram above.
enum class CapacityMode { Steady, Draining, Wandering, Following };

class Capacity {
public:
    static constexpr msfrs_time Every = 100'000'000; ///< ns: how often it wants to be told
    static constexpr msfrs_time Recent = 400'000'000; ///< ns: of how long it wants to know the round trips

    /// C is `min` at first.
    /// \param bounding what is on its way is bounded by C, as Squid does it: C may then go with D where the link
    ///        wanders. Who paces packets sees no D that is more than the pace
    Capacity(const CapacityParams &, msfrs_time now, bool bounding = false);
    /// Takes other bounds over; C stays if they allow.
    void configure(const CapacityParams &, msfrs_time now);

    msfrs_time nextUpdate() const { return ticks_.back().at + Every; }
    /// To be called when that is due; a clock that went back begins anew with what is known of C.
    /// \returns whether C has changed
    bool update(const CapacitySample &, msfrs_time now);
    /// Another finds C from here on, and has found this, bit/s > 0: it is taken over as far as the bounds allow. What
    /// is seen here is noted all the same, in case that one dies.
    void follow(double rate, msfrs_time now);
    void lead(); ///< it is found here, from what it is

    bool wanders() const { return mode_ == CapacityMode::Wandering; } ///< the link does, and so does C
    double rate() const { return report_.rate; } ///< C, bit/s, from min to max
    CapacityReport report() const;
    /// The same without what is known of a day; cheaper.
    const CapacityReport &latest() const { return report_; }

private:
    struct Tick {
        msfrs_time at;
        CapacitySample seen;
    };
    /// What was seen over some time.
    struct Span {
        double rate;    ///< D, bit/s
        double limited; ///< share of it in which somebody waited
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
    void goWithDelivery(msfrs_time now);
    void judgeQueue(msfrs_time queue, double settled, const Span &whole, msfrs_time now);
    void drain(msfrs_time queue, double delivered, CapacityReason, msfrs_time now);
    bool cutsInVain(msfrs_time queue, double ratio, msfrs_time now);
    void change(double rate, CapacityReason, msfrs_time now);

    CapacityReport report_;       ///< but for what day_ knows
    CapacityDay day_;
    std::deque<Tick> ticks_;      ///< of the last second and a bit; never empty
    msfrs_time ignored_ = 0;      ///< ns of q that are a longer path
    msfrs_time carriedAt_ = -1;   ///< when D was last more than C; negative: never
    msfrs_time grownAt_ = 0;      ///< when C last grew by itself
    CapacityMode mode_ = CapacityMode::Steady;
    Cut cut_ = {};                ///< Draining: the latest
    bool bounding_;               ///< see the constructor
    Swings swings_;
    int side_ = 0;                ///< 1: q is long, -1: it is short and somebody waits; 0: neither
    msfrs_time sideSince_ = 0;    ///< Wandering: since when
    double sideFrom_ = 0;         ///< C then, bit/s
};

} // namespace msfrs

#endif
