// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What the link carries, C, found from what passes anyway: nothing is sent to find out.
///
/// Three things are seen. *D*, what the interface received: a link that has carried so much can. *q*, what round trips
/// to servers are beyond their least: a queue at the provider, which stands only where the link is full. And whether it
/// is *limited*: somebody waits and the window is full. Who is not limited shows with little D that little was asked
/// for, and with a long q that his server is slow, so that C may only grow then.
///
/// Every 100 ms:
/// - D of 300 ms is more than C by 3 %: C is D. If that goes on while q is short, C is D and a fifth.
/// - Limited, q short, and D is C: there may be more, so C grows by 1.5 %, once in a round trip. Where D does not
///   follow it ends there, so that C is at most 3 to 5 % too high where delays say nothing (a queue that an AQM or a
///   policer keeps short).
/// - Limited, q long: C is D, which shortens q, as what may be on the way is C times a round trip. If D gets less and q
///   does not, three times in a row, it was no queue of ours (a longer route, an uplink that is full): C
///   is what it was, and q counts from there. A cut shows a round trip later; if D falls and q grows before,
///   C is D at once.
/// - Limited, q longer than it should be: the same with D of a second, if that is less than C by 3 %, by 4 % at a time.
/// - Limited, q short yet but growing, and D less than C by 30 %: the same. Kernels tell late how long a queue is, and
///   D falls at once; but it also has gaps, so that of a slow link D of up to a second is looked at.
/// - Limited, D is less, and many packets come out of order: C is the most that came in 200 ms of the last second.
/// - The link wanders (see Swings), and what is on its way goes by C: C is D of 200 ms to a second, by how long a
///   quantum takes, and 7 % more, so that it finds what is beyond; q is too late to wait for. While it is not limited,
///   C is at most 1.25 times the most of the last second. It is over when q is long on end for 5 s, or short and
///   limited for 15: then it is the path, or the servers, and D went down with C. C is what it was before.
/// Else C stays; so it does while nothing comes at all. It is never below `min` or above `max`.
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
    /// It is found here, from what it is.
    void lead() { led_ = false; }

    bool wanders() const { return wanders_; }    ///< the link does, and so does C
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
        double rate;          ///< bit/s
        double full;          ///< share of it in which somebody waited
        double loss;          ///< share of packets out of order; 0 if there were few
    };
    Span over(msfrs_time) const;
    double greatest() const;
    bool grows() const;
    void watch(bool known, msfrs_time queue, msfrs_time now);
    void goWith(const Span &brief, msfrs_time now);
    void judge(const Span &brief, msfrs_time now);
    void judgeQueue(msfrs_time queue, const Span &brief, const Span &whole, msfrs_time now);
    void cut(msfrs_time queue, double carried, CapacityReason, msfrs_time now, double least);
    void change(double rate, CapacityReason, msfrs_time now);

    CapacityReport report_;       ///< but for what day_ knows
    CapacityDay day_;
    std::deque<Tick> ticks_;      ///< of the last second and a bit; never empty
    msfrs_time ignored_ = 0;      ///< ns of q that are a longer path
    msfrs_time provedAt_ = -1;    ///< when D was last more than C; negative: never
    msfrs_time grownAt_ = 0;      ///< when C last grew by itself
    msfrs_time lossAt_ = 0;       ///< when C was last changed for loss
    // While q is long:
    double cutFrom_ = 0;          ///< C before D began to follow C down, bit/s; 0: q is not long
    msfrs_time cutQueue_ = 0, cutAt_ = 0;
    bool led_ = false;            ///< see follow()
    int inVain_ = 0;              ///< cuts in a row that brought D down and not q
    bool bounding_;               ///< see the constructor
    Swings swings_;
    bool wanders_ = false;
    int side_ = 0;                ///< 1: q is long, -1: it is short and somebody waits; 0: neither
    msfrs_time sideSince_ = 0;
    double sideFrom_ = 0;         ///< C then, bit/s
};

} // namespace msfrs

#endif
