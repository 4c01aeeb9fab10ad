// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/found_rate.h"

#include "edge/daemon/packet_path.h"
#include "window/thresholds.h"

#include <algorithm>

namespace msfrs::edge {

// What half and double do: docs/lab/constants.md.
constexpr double FewPackets = 2 * 1514 * 8; ///< bits: on a slow link two full packets look like a queue, too
constexpr double Shorter = 0.25;            ///< q is this quantile of the RTTs in Capacity::Prompt, not smoothed,
constexpr uint64_t Many = 8;                ///< if there are as many; it is the second shortest then
constexpr double Shortest = 0.1;            ///< with fewer, q is this quantile over Capacity::Recent, as with Squid
constexpr double Crowded = 0.7;             ///< D over C from which the link counts as full: C may be too high
/// Pace over C; MuchLess and Half also over D while a queue drains. A deeper drain does not empty the queue sooner:
/// senders keep their minimum windows in flight.
constexpr double More = 1.05, Less = 0.95, MuchLess = 0.7, Half = 0.5;
/// ns. Half of C for LookFor every LookEvery costs 0.75 % of C. A base RTT lasts 60 s (QueueEstimate), three probes.
constexpr msfrs_time LookEvery = 20'000'000'000, LookFor = 300'000'000;

bool FoundRate::adopt(const Schedule &schedule, const msfrs_time now)
{
    const auto &link = schedule.config().link;
    if (link.found())
        capacity_.configure(link.bounds, now);
    return link.found();
}

bool FoundRate::seen(const Arrival &a, const Traits &t, const int64_t onLink, const Config &config,
                     const msfrs_time now)
{
    std::optional<TcpSegment> segment;
    if (t.readable && t.key.protocol == Tcp)
        segment = ReadTcp(a.data, a.captured, a.length, t.transport);
    if (t.readable && config.flow.isInside(t.key.source, t.key.family)) {
        if (segment)
            trips_.up(t.key, *segment, now);
        return true;
    }
    came_ += static_cast<double>(onLink);
    if (const auto trip = segment ? trips_.down(t.key, *segment, now) : std::nullopt)
        path_.seen(trip->server, trip->time, trip->time, now);
    return false;
}

void FoundRate::waits(const bool waiting, const msfrs_time now)
{
    if ((waiting_ || crowded_) && now > noted_)
        full_ += now - noted_;
    waiting_ = waiting;
    noted_ = now;
}

/// q from which the queue is long, ns, by the criterion of Capacity.
msfrs_time FoundRate::longQueue() const { return 2 * allowed_; }

bool FoundRate::settle(Schedule &, const msfrs_time now)
{
    waits(waiting_, now);
    allowed_ = LeastQueue + static_cast<msfrs_time>(FewPackets * 1e9 / capacity_.rate());
    auto way = path_.seen(now, Capacity::Prompt, Shorter);
    if (way.trips < Many)
        way = path_.seen(now, Capacity::Recent, Shortest);
    CapacitySample seen;
    seen.total = came_;
    seen.full = full_;
    if (way.enough())
        seen.queue = way.queue;
    base_ = way.base;
    // If the pace is less than C, D follows it only after a round trip and Capacity::Prompt.
    seen.base = way.base + (way.enough() && way.queue > longQueue() ? Capacity::Prompt : 0);
    seen.allowed = allowed_;
    seen.packets = trips_.packets();
    seen.outOfOrder = trips_.outOfOrder();
    capacity_.update(seen, now);
    const auto &latest = capacity_.latest();
    crowded_ = way.enough() && latest.queue * 1e9 > static_cast<double>(allowed_) &&
        latest.delivered >= Crowded * capacity_.rate();
    if (now >= lookAt_) {
        lookUntil_ = now + LookFor;
        lookAt_ = now + (way.base > 0 ? LookEvery : FirstLook);
    }
    looks_ = now < lookUntil_;
    return true;
}

int64_t FoundRate::pace() const
{
    const auto &seen = capacity_.latest();
    const double found = capacity_.rate();
    const auto queue = static_cast<msfrs_time>(seen.queue * 1e9);
    double pace = found;
    if (queue > longQueue())
        pace = std::clamp(1 - seen.queue, Half, MuchLess) * std::min(found, seen.delivered);
    else if (looks_)
        pace = Half * found;
    else if (queue * 2 > allowed_)
        pace = Less * found;
    else if (queue >= 0 && queue * 4 < allowed_)
        pace = More * found;
    return static_cast<int64_t>(std::clamp(pace, seen.params.min, seen.params.max));
}

FoundReport FoundRate::report(const msfrs_time now) const
{
    return {capacity_.report(), static_cast<double>(base_) * 1e-9, pace(), now};
}

} // namespace msfrs::edge
