// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/capacity.h"

#include "window/thresholds.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace msfrs {

namespace {
constexpr msfrs_time Second = 1'000'000'000;
// Parameters of the law. docs/lab/constants.md has the effect of half and double of each.
constexpr msfrs_time Brief = 300'000'000;   ///< ns over which D is averaged: a few quanta on a slow link, most RTTs
constexpr double Margin = 0.03;             ///< of C: variation of D caused by bursts and timer granularity
constexpr double Further = 1.2;             ///< times D while D grows: from 1 to 60 Mbit/s within ten seconds
constexpr double Short = 0.25, Long = 2;    ///< times the allowed queue
constexpr int InVain = 3;                   ///< cuts in a row without effect on q
constexpr size_t MostChanges = 16;          ///< kept for the report

double Seconds(const msfrs_time t) { return static_cast<double>(t) * 1e-9; }

/// The bottleneck queue over the allowed one.
double QueueRatio(const msfrs_time queue, const CapacitySample &seen)
{
    return static_cast<double>(queue) / static_cast<double>(seen.allowed);
}
} // namespace

const char *CapacityReasonText(const CapacityReason why)
{
    switch (why) {
    case CapacityReason::Carried: return "the link carried more";
    case CapacityReason::NoQueue: return "requests wait and no queue stands at the provider";
    case CapacityReason::Queue: return "a queue stood at the provider";
    case CapacityReason::CarriesLess: return "the link was full at a lower rate";
    case CapacityReason::Loss: return "packets were lost and the link carried less";
    case CapacityReason::LongerPath: return "round trips stay long at a lower rate: a longer path, not a queue";
    case CapacityReason::Bounds: return "min= or max= was changed";
    case CapacityReason::Followed: return "found by another worker";
    case CapacityReason::VariableRate: return "variable-rate link: the rate last delivered";
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
    mode_ = CapacityMode::Following;
    swings_ = {};
    change(rate, CapacityReason::Followed, now);
}

void Capacity::lead()
{
    if (mode_ == CapacityMode::Following)
        mode_ = CapacityMode::Steady;
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
            packets == 0 ? 0 : static_cast<double>(outOfOrder) / static_cast<double>(packets)};
}

/// Whether requests waited nearly all the time.
bool Capacity::isLimited(const Span &span) { return span.limited >= 1 - Alike; }

bool Capacity::update(const CapacitySample &seen, const msfrs_time now)
{
    const bool back = now < ticks_.back().at || seen.total < ticks_.back().seen.total;
    if (back || ticks_.back().seen.total == 0)
        ticks_.clear(); // totals before the first sample are unknown
    if (back) {
        carriedAt_ = -1;
        grownAt_ = sideSince_ = 0;
        swings_ = {};
        if (mode_ != CapacityMode::Following)
            mode_ = CapacityMode::Steady;
    }
    if (ticks_.empty() || now > ticks_.back().at)
        ticks_.push_back({now, seen});
    while (ticks_.size() > 2 && ticks_[1].at <= now - Second)
        ticks_.pop_front();
    if (now - ticks_.front().at < Brief)
        return false;
    const double before = report_.rate;
    judge(now);
    if (report_.limited)
        day_.add(report_.rate, now - std::prev(ticks_.end(), 2)->at, now);
    return report_.rate != before;
}

void Capacity::judge(const msfrs_time now)
{
    const auto &seen = ticks_.back().seen;
    const auto brief = over(Brief), whole = over(Second);
    const double settled = std::max(brief.rate, whole.rate);
    std::optional<msfrs_time> queue;
    if (seen.queue && *seen.queue >= 0 && *seen.queue <= Remembered) {
        ignored_ = std::min(ignored_, *seen.queue);
        queue = *seen.queue - ignored_;
    }
    report_.delivered = brief.rate;
    report_.loss = whole.loss;
    report_.queue = queue ? Seconds(*queue) : -1;
    report_.ignored = Seconds(ignored_);
    report_.limited = isLimited(brief);
    if (mode_ == CapacityMode::Following)
        return;

    watchSwings(queue, now);
    if (mode_ == CapacityMode::VariableRate) {
        followDelivery(now);
        return;
    }
    if (brief.rate > (1 + Margin) * report_.rate) {
        const bool goesOn = report_.limited && queue && QueueRatio(*queue, seen) < Short && carriedAt_ >= 0 &&
                            now - carriedAt_ <= Second + seen.base;
        carriedAt_ = now;
        change(brief.rate * (goesOn ? Further : 1), CapacityReason::Carried, now);
    } else if (report_.limited && queue) {
        judgeQueue(*queue, settled, whole, now);
    }
    const bool less = isLimited(whole) && whole.rate > 0 && whole.rate < (1 - Alike) * report_.rate;
    if (less && whole.loss >= Alike)
        change(settled, CapacityReason::Loss, now);
}

/// Enters VariableRate, and leaves it if the queue stays long or short: then the path or the servers are the cause.
void Capacity::watchSwings(const std::optional<msfrs_time> queue, const msfrs_time now)
{
    const auto &seen = ticks_.back().seen;
    const double ratio = queue ? QueueRatio(*queue, seen) : 1;
    const bool varied = mode_ == CapacityMode::VariableRate;
    const int side = ratio > Long ? 1 : ratio < Short && report_.limited ? -1 : 0;
    if (side != std::exchange(side_, side) || !varied) {
        sideSince_ = now;
        sideFrom_ = report_.rate;
    }
    if (side != 0 && now - sideSince_ > Swings::Longest) {
        swings_ = {};
        change(std::max(sideFrom_, report_.rate), side > 0 ? CapacityReason::LongerPath : CapacityReason::NoQueue, now);
    }
    if (report_.limited)
        swings_.seen(report_.rate, ratio > 1, now);
    if (bounding_ && swings_.varies(now))
        mode_ = CapacityMode::VariableRate;
    else if (varied)
        mode_ = CapacityMode::Steady;
}

void Capacity::followDelivery(const msfrs_time now)
{
    const double delivered = over(Prompt).rate;
    if (delivered > 0 && (report_.limited || delivered > report_.rate))
        change((1 + 2 * Margin) * delivered, CapacityReason::VariableRate, now);
}

/// Whether the queue is longer than it was a moment ago.
bool Capacity::queueGrows() const
{
    auto before = std::prev(ticks_.end());
    while (before != ticks_.begin() && before->at > ticks_.back().at - Brief)
        --before;
    return before->seen.queue && *ticks_.back().seen.queue > *before->seen.queue;
}

/// \param settled D over a second, or over a shorter time if that is higher, bit/s
void Capacity::judgeQueue(const msfrs_time queue, const double settled, const Span &whole, const msfrs_time now)
{
    const auto &seen = ticks_.back().seen;
    const double ratio = QueueRatio(queue, seen), prompt = over(Prompt).rate;
    const bool full = isLimited(whole);
    if (ratio > Long) {
        drain(queue, prompt, CapacityReason::Queue, now);
    } else if (ratio >= Short && prompt < Swings::Fall * report_.rate && queueGrows()) {
        drain(queue, prompt, CapacityReason::CarriesLess, now);
    } else if (ratio > 1) {
        if (full && settled < (1 - Margin) * report_.rate)
            drain(queue, settled, CapacityReason::CarriesLess, now);
    } else {
        mode_ = CapacityMode::Steady;
        const bool used = full && whole.rate >= (1 - Margin) * report_.rate;
        if (ratio < Short && used && now - grownAt_ >= std::max(Brief, seen.base + queue)) {
            grownAt_ = now;
            change(report_.rate * (1 + Margin / 2), CapacityReason::NoQueue, now);
        }
    }
}

/// The queue is long: the link is full, or the path has become longer.
/// \param delivered the new C, bit/s
void Capacity::drain(const msfrs_time queue, const double delivered, const CapacityReason why, const msfrs_time now)
{
    if (delivered <= 0)
        return; // the link is down
    if (std::exchange(mode_, CapacityMode::Draining) != CapacityMode::Draining)
        cut_ = {report_.rate, queue, now, 0};
    else if (!needsAnotherCut(queue, delivered, now))
        return;
    if (delivered < report_.rate)
        change(std::max(delivered, report_.rate / 2), why, now);
}

/// Whether the last cut is not enough.
bool Capacity::needsAnotherCut(const msfrs_time queue, const double delivered, const msfrs_time now)
{
    const double ratio = static_cast<double>(queue) / static_cast<double>(std::max<msfrs_time>(cut_.queue, 1));
    // Too early for the cut to show. If D falls and q grows all the same, the link has become slower.
    if (now - cut_.at < std::max(Prompt, ticks_.back().seen.base + cut_.queue))
        return ratio > 1 + Alike && delivered < (1 - Alike) * report_.rate;
    cut_.queue = queue;
    cut_.at = now;
    return ratio >= 1 - Alike && !cutsInVain(queue, ratio, now);
}

/// Whether cuts have reduced D but not the queue: then C is restored, and the queue counts as part of the base RTT.
bool Capacity::cutsInVain(const msfrs_time queue, const double ratio, const msfrs_time now)
{
    const auto &seen = ticks_.back().seen;
    // Bytes in flight are C (base + allowed): D is this share of C if the path is longer by q, and C if q is a queue.
    const double left = Seconds(seen.base + seen.allowed) / Seconds(seen.base + queue);
    // D over a longer time includes delivery before the last cut.
    if (ratio > 1 + Alike || over(Prompt).rate > report_.rate * (1 + left) / 2) {
        cut_.inVain = 0;
        cut_.from = report_.rate;
        return false;
    }
    if (++cut_.inVain < InVain)
        return false;
    ignored_ += queue;
    change(cut_.from, CapacityReason::LongerPath, now);
    swings_ = {};
    mode_ = CapacityMode::Steady;
    return true;
}

} // namespace msfrs
