// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How RequestScheduler estimates what the link carries, and what depends on the estimate.
#include "engine/request_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace msfrs {

namespace {
constexpr size_t MostLooks = 8;   ///< connections sampled in a Capacity::Every; half or double: docs/lab/constants.md
constexpr double Keeps = 7.0 / 8; ///< RFC 6298, 1 - alpha: of the smoothed RTT, at each sample

/// The RTT, ns, that has brought the kernel's smoothed RTT from `before` down to `mean`, if samples followed one
/// another during `elapsed`; the smoothed RTT itself if it has not fallen.
msfrs_time Latest(const msfrs_time mean, const msfrs_time before, const msfrs_time least, const msfrs_time elapsed)
{
    if (mean >= before)
        return mean;
    const double trips = std::max(static_cast<double>(elapsed) / static_cast<double>(mean), 1.0);
    const double kept = std::pow(Keeps, trips);
    const double latest = (static_cast<double>(mean) - kept * static_cast<double>(before)) / (1 - kept);
    return std::max(static_cast<msfrs_time>(latest), std::min(least, mean));
}
} // namespace

/// Adopts bounds of C, or that C is known.
void RequestScheduler::Impl::findBetween(const CapacityParams &bounds, const msfrs_time now)
{
    if (bounds.max <= 0)
        capacity.reset();
    else if (capacity)
        capacity->configure(bounds, now);
    else
        capacity.emplace(bounds, now, true);
    if (capacity)
        config.rate = capacity->rate();
}

/// Bytes that the link has carried since some origin. Where C is estimated, bytes are scaled by C at the time they
/// arrived, as if C had always been rated(): U of an interval in which C changes is then a mean.
double RequestScheduler::Impl::carried()
{
    const double total = meter->total() + others->received, responses = meter->own() + others->own;
    const double times = rated() / config.rate;
    sums.total += (total - std::exchange(sums.totalBefore, total)) * times;
    sums.own += (responses - std::exchange(sums.ownBefore, responses)) * times;
    return capacity ? sums.total : total;
}

/// Where C is estimated, the queue of the last moment, over all servers.
QueueSeen RequestScheduler::Impl::pathHere(const msfrs_time now) const
{
    return capacity ? path.atAll(now, Capacity::Recent) : path.seen(now);
}

/// Where C is estimated, includes what the connections of other parties see.
QueueSeen RequestScheduler::Impl::pathSeen(const msfrs_time now) const
{
    return capacity ? withOthers(pathHere(now)) : pathHere(now);
}

/// Together with what the connections of other parties see.
QueueSeen RequestScheduler::Impl::withOthers(const QueueSeen &here) const
{
    auto all = others->queues;
    all.push_back(here);
    return Together(all);
}

/// bit/s
double RequestScheduler::Impl::rated() const { return capacity ? config.bounds.min : config.rate; }

void RequestScheduler::lookAtPath(Request &r, const msfrs_time now)
{
    auto &self = *impl_;
    // Where C is estimated, a sample after a pause is too old: findRate() samples those in service.
    if (self.capacity || (now < self.nextLook && self.nextLook - now <= LookEvery))
        return;
    if (self.lookAtPath(r, now))
        self.nextLook = now + LookEvery;
}

bool RequestScheduler::Impl::lookAtPath(Request &r, const msfrs_time now)
{
    const auto seen = r.owner->path(now);
    const bool fresh = seen.age >= 0 && (!capacity || seen.age <= Capacity::Prompt);
    const bool known = fresh && seen.rtt > 0 && seen.rtt <= Remembered;
    if (known) {
        const auto least = seen.least > 0 ? seen.least : seen.rtt;
        // A quantum has few RTT samples, and C cannot wait until the smoothed RTT forgets those from before a pause.
        const auto latest = capacity ? Latest(seen.rtt, r.roundTrip, least, now - r.toldAt) : seen.rtt;
        path.seen(seen.server, latest, least, now);
        r.roundTrip = seen.rtt;
        r.toldAt = now;
    }
    if (r.packets > 0 && seen.packets >= r.packets && seen.outOfOrder >= r.outOfOrder) { // else: another connection
        packets += seen.packets - r.packets;
        outOfOrder += seen.outOfOrder - r.outOfOrder;
    }
    r.packets = seen.packets;
    r.outOfOrder = seen.outOfOrder;
    if (capacity && known && !seen.counted && !std::exchange(uncounted, true))
        host.log(0, "this kernel's TCP_INFO has no tcpi_rcv_ooopack (Linux has since 5.4): where the link's rate is "
                    "to be found losses are not detected");
    return known;
}

void RequestScheduler::Impl::findRate(const msfrs_time now)
{
    if (!capacity || now < capacity->nextUpdate())
        return;
    const auto stride = (served.size() + early.size()) / MostLooks + 1;
    size_t place = looks++ % stride;
    for (const auto list : {&served, &early}) {
        for (const auto r : *list) {
            if (place++ % stride == 0)
                lookAtPath(*r, now);
        }
    }
    carried();
    const auto way = pathSeen(now);
    const auto queue = way.enough() ? std::optional(way.queue) : std::nullopt;
    capacity->update({sums.totalBefore, use.fullTime(now), queue, way.base, windowParams.queue,
                      packets + others->packets, outOfOrder + others->outOfOrder}, now);
    adoptRate();
}

void RequestScheduler::Impl::adoptRate()
{
    const double found = capacity->rate();
    if (found == config.rate)
        return;
    carried(); // bytes until now count with C as it was
    config.rate = found;
    adoptWindow(WindowOf(config));
}

} // namespace msfrs
