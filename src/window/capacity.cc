// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/capacity.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace msfrs {

namespace {
constexpr msfrs_time Ms = 1'000'000, Second = 1000 * Ms;
constexpr msfrs_time Brief = 300 * Ms;        ///< of D: a few quanta of a slow link, a round trip of most
constexpr msfrs_time Prompt = 200 * Ms;       ///< of D where C has to come down
constexpr double Limited = 0.9;               ///< share of time in which somebody waited
constexpr double Proof = 1.03;                ///< D over C: more than packets and clocks make of it
constexpr double Further = 1.2;               ///< times D, while it goes on growing
constexpr double Step = 1.015;
constexpr double Follows = 0.97;              ///< D over C: it is used
constexpr double LongPart = 0.4;              ///< of the base: with a long way, a queue as long again does less harm
constexpr double Slight = 0.96;               ///< at once, where q is not long: D of a second is uneven by as much
constexpr double Begun = 0.25;                ///< times the queue that may stand: it has begun to grow
constexpr double Falls = 0.7, FallsOn = 0.8;  ///< D over C: the link carries less, at first, and after a cut
constexpr double FallTimes = 12;              ///< times the queue that may stand, where a quantum is long
constexpr double WanderTimes = 6;             ///< the same where the link wanders: the next fall is near
constexpr double Beyond = 1.07;               ///< times D, there
constexpr double Spare = 1.25;                ///< times the most of a second, while little is asked for there
constexpr msfrs_time LongFor = 5 * Second, ShortFor = 15 * Second; ///< on end: it does not wander
constexpr double LeastCut = 0.25;             ///< at once: right after an outage D is nearly nothing
constexpr double Falling = 0.9, Steady = 1.15; ///< q over what it was
constexpr int InVain = 3;
constexpr double Lossy = 0.1, LossRate = 0.9; ///< share out of order, and D over C
constexpr uint64_t FewPackets = 20;
constexpr msfrs_time Longest = 60 * Second;   ///< of q that is believed
constexpr size_t MostChanges = 16;

double Seconds(const msfrs_time t) { return static_cast<double>(t) * 1e-9; }

/// q beyond which it is long, ns.
msfrs_time LongFrom(const CapacitySample &seen)
{
    return std::max(2 * seen.allowed, static_cast<msfrs_time>(LongPart * static_cast<double>(seen.base)));
}

bool IsShort(const msfrs_time queue, const CapacitySample &seen) { return queue * 4 < seen.allowed; }

/// Whether it has begun to grow.
bool HasBegun(const msfrs_time queue, const CapacitySample &seen)
{
    return static_cast<double>(queue) > Begun * static_cast<double>(seen.allowed);
}

/// Of what time D tells a fall from the gaps between quanta, ns.
msfrs_time FallTime(const CapacitySample &seen, const double times = FallTimes, const msfrs_time least = Brief)
{
    return std::clamp(static_cast<msfrs_time>(times * static_cast<double>(seen.allowed)), least, Second);
}
} // namespace

const char *CapacityReasonText(const CapacityReason why)
{
    switch (why) {
    case CapacityReason::Carried: return "the link carried more";
    case CapacityReason::NoQueue: return "requests wait and no queue stands at the provider";
    case CapacityReason::Queue: return "a queue stood at the provider";
    case CapacityReason::CarriesLess: return "the link was full with less";
    case CapacityReason::Loss: return "packets were lost and the link carried less";
    case CapacityReason::LongerPath: return "the round trips are long whatever is sent: it is no queue";
    case CapacityReason::Bounds: return "min= or max= was changed";
    case CapacityReason::Followed: return "another worker looks for it, and changed it";
    case CapacityReason::Wanders: return "the link goes up and down by itself: it is what came last";
    }
    return "";
}

Capacity::Capacity(const CapacityParams &params, const msfrs_time now, const bool bounding): bounding_(bounding)
{
    report_.params = params;
    report_.rate = params.min;
    ticks_.push_back({now, {}});
}

void Capacity::configure(const CapacityParams &params, const msfrs_time now)
{
    report_.params = params;
    change(report_.rate, CapacityReason::Bounds, now);
}

void Capacity::change(const double rate, const CapacityReason why, const msfrs_time now)
{
    const double next = std::clamp(rate, report_.params.min, report_.params.max);
    const double before = std::exchange(report_.rate, next);
    if (next == before)
        return;
    auto &changes = report_.changes;
    if (!changes.empty() && changes.back().why == why && now - changes.back().at <= Second) {
        changes.back().at = now;
        changes.back().to = next;
        return;
    }
    changes.push_back({now, before, next, why});
    if (changes.size() > MostChanges)
        changes.pop_front();
}

void Capacity::follow(const double rate, const msfrs_time now)
{
    led_ = true;
    cutFrom_ = 0; // of a C that was ours
    inVain_ = 0;
    swings_ = {};
    wanders_ = false;
    change(rate, CapacityReason::Followed, now);
}

CapacityReport Capacity::report() const
{
    auto report = report_;
    report.known = Seconds(day_.known());
    report.mostly = day_.least(0.9);
    report.half = day_.least(0.5);
    return report;
}

Capacity::Span Capacity::over(const msfrs_time time) const
{
    const auto &last = ticks_.back();
    auto first = ticks_.begin();
    while (std::next(first)->at <= last.at - time)
        ++first;
    const double elapsed = Seconds(last.at - first->at);
    const auto packets = last.seen.packets - first->seen.packets;
    const auto outOfOrder = last.seen.outOfOrder - first->seen.outOfOrder;
    return {(last.seen.total - first->seen.total) * 8 / elapsed, Seconds(last.seen.full - first->seen.full) / elapsed,
            packets < FewPackets ? 0 : static_cast<double>(outOfOrder) / static_cast<double>(packets)};
}

/// The most that 200 ms of the last second brought, bit/s.
double Capacity::greatest() const
{
    double most = 0;
    auto from = ticks_.begin();
    for (auto to = from; to != ticks_.end(); ++to) {
        while (to->at - from->at > Prompt && to->at - std::next(from)->at >= Prompt)
            ++from;
        if (to->at - from->at >= Prompt)
            most = std::max(most, (to->seen.total - from->seen.total) * 8 / Seconds(to->at - from->at));
    }
    return most;
}

bool Capacity::update(const CapacitySample &seen, const msfrs_time now)
{
    const bool back = now < ticks_.back().at || seen.total < ticks_.back().seen.total;
    if (back || ticks_.back().seen.total == 0)
        ticks_.clear(); // and what was seen before the first time is not known
    if (back) {
        provedAt_ = -1;
        grownAt_ = lossAt_ = cutAt_ = sideSince_ = 0;
        swings_ = {};
    }
    if (ticks_.empty() || now > ticks_.back().at)
        ticks_.push_back({now, seen});
    while (ticks_.size() > 2 && ticks_[1].at <= now - Second)
        ticks_.pop_front();
    if (now - ticks_.front().at < Brief)
        return false;
    const double before = report_.rate;
    judge(over(Brief), now);
    if (report_.limited)
        day_.add(report_.rate, now - std::prev(ticks_.end(), 2)->at, now);
    return report_.rate != before;
}

void Capacity::judge(const Span &brief, const msfrs_time now)
{
    const auto &seen = ticks_.back().seen;
    const auto whole = over(Second);
    const bool known = seen.queue && *seen.queue >= 0 && *seen.queue <= Longest;
    ignored_ = known ? std::min(ignored_, *seen.queue) : ignored_;
    const auto queue = known ? *seen.queue - ignored_ : 0;
    report_.delivered = brief.rate;
    report_.loss = whole.loss;
    report_.queue = known ? Seconds(queue) : -1;
    report_.ignored = Seconds(ignored_);
    report_.limited = brief.full >= Limited;
    if (led_)
        return;

    watch(known, queue, now);
    if (wanders_) {
        goWith(brief, now);
        return;
    }
    const bool shortQueue = known && IsShort(queue, seen);
    if (brief.rate > Proof * report_.rate) {
        const bool goesOn = report_.limited && shortQueue && provedAt_ >= 0 && now - provedAt_ <= Second + seen.base;
        provedAt_ = now;
        change(brief.rate * (goesOn ? Further : 1), CapacityReason::Carried, now);
    } else if (report_.limited && known) {
        judgeQueue(queue, brief, whole, now);
    }
    const bool less = whole.full >= Limited && whole.rate > 0 && whole.rate < LossRate * report_.rate;
    if (less && whole.loss >= Lossy && now - lossAt_ >= Second) {
        lossAt_ = now;
        change(std::min(greatest(), report_.rate), CapacityReason::Loss, now);
    }
}

/// Whether the link wanders. On one that does, a queue comes and goes.
void Capacity::watch(const bool known, const msfrs_time queue, const msfrs_time now)
{
    const auto &seen = ticks_.back().seen;
    const bool isShort = known && IsShort(queue, seen) && report_.limited;
    const int side = known && queue > LongFrom(seen) ? 1 : isShort ? -1 : 0;
    if (side != std::exchange(side_, side) || !wanders_) {
        sideSince_ = now;
        sideFrom_ = report_.rate;
    }
    if ((side > 0 && now - sideSince_ > LongFor) || (side < 0 && now - sideSince_ > ShortFor)) {
        swings_ = {};
        change(std::max(sideFrom_, report_.rate), side > 0 ? CapacityReason::LongerPath : CapacityReason::NoQueue, now);
    }
    if (report_.limited)
        swings_.seen(report_.rate, known && queue > seen.allowed, now);
    wanders_ = bounding_ && swings_.wander(now);
}

void Capacity::goWith(const Span &brief, const msfrs_time now)
{
    cutFrom_ = 0; // what was cut before tells nothing afterwards
    inVain_ = 0;
    const double came = over(FallTime(ticks_.back().seen, WanderTimes, Prompt)).rate;
    if (came <= 0)
        return; // down
    if (brief.rate > Proof * report_.rate)
        change(std::max(brief.rate, Beyond * came), CapacityReason::Carried, now);
    else if (report_.limited)
        change(std::max(Beyond * came, LeastCut * report_.rate), CapacityReason::Wanders, now);
    else
        change(std::min(Spare * greatest(), report_.rate), CapacityReason::Wanders, now);
}

/// Whether q is longer than it was a moment ago.
bool Capacity::grows() const
{
    auto before = std::prev(ticks_.end());
    while (before != ticks_.begin() && before->at > ticks_.back().at - Brief)
        --before;
    return before->seen.queue && *ticks_.back().seen.queue > *before->seen.queue;
}

void Capacity::judgeQueue(const msfrs_time queue, const Span &brief, const Span &whole, const msfrs_time now)
{
    const auto &seen = ticks_.back().seen;
    const double settled = std::max(brief.rate, whole.rate);
    const double fallen = over(FallTime(seen)).rate;
    if (queue > LongFrom(seen)) {
        cut(queue, over(Prompt).rate, CapacityReason::Queue, now, LeastCut);
    } else if (fallen < Falls * report_.rate && grows() && HasBegun(queue, seen)) {
        cut(queue, fallen, CapacityReason::CarriesLess, now, LeastCut);
    } else if (queue > seen.allowed) {
        if (whole.full >= Limited && settled < Follows * report_.rate)
            cut(queue, settled, CapacityReason::CarriesLess, now, Slight);
    } else {
        cutFrom_ = 0;
        inVain_ = 0;
        const bool used = whole.full >= Limited && whole.rate >= Follows * report_.rate;
        if (IsShort(queue, seen) && used && now - grownAt_ >= std::max(Brief, seen.base + queue)) {
            grownAt_ = now;
            change(report_.rate * Step, CapacityReason::NoQueue, now);
        }
    }
}

/// q is long, and the link full or the path longer.
/// \param least what C may become at once, share of what it is
void Capacity::cut(const msfrs_time queue, const double carried, const CapacityReason why, const msfrs_time now,
                   const double least)
{
    const auto &seen = ticks_.back().seen;
    const bool again = cutFrom_ > 0;
    if (carried <= 0)
        return; // down
    const auto ratio = static_cast<double>(queue) / static_cast<double>(std::max<msfrs_time>(cutQueue_, 1));
    if (again && now - cutAt_ < std::max(Prompt, seen.base + cutQueue_)) {
        // The last cut cannot show yet: if D gets less and q longer all the same it is the link's doing.
        const double fallen = over(FallTime(seen)).rate;
        if (fallen > 0 && fallen < FallsOn * report_.rate && ratio > Steady)
            change(std::max(fallen, report_.rate * LeastCut), why, now);
        return;
    }
    if (again && ratio < Falling) {
        cutQueue_ = queue;
        cutAt_ = now;
        return; // the last cut is enough
    }
    // What is on the way is C (base + allowed): a path that is longer by q leaves this much of C, a queue leaves all.
    const double left = Seconds(seen.base + seen.allowed) / Seconds(seen.base + queue);
    // By the latest: D of longer times is that of before the last cut, and would be taken for a queue's.
    const bool inVain = again && ratio <= Steady && over(Prompt).rate <= report_.rate * (1 + left) / 2;
    inVain_ = inVain ? inVain_ + 1 : 0;
    if (!inVain)
        cutFrom_ = report_.rate;
    if (inVain_ >= InVain) {
        ignored_ += queue;
        change(std::exchange(cutFrom_, 0), CapacityReason::LongerPath, now);
        swings_ = {};
        inVain_ = 0;
        return;
    }
    if (carried < report_.rate)
        change(std::max(carried, report_.rate * least), why, now);
    cutQueue_ = queue;
    cutAt_ = now;
}

} // namespace msfrs
