// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/queue_estimate.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace msfrs {

constexpr msfrs_time Never = std::numeric_limits<msfrs_time>::max();

QueueSeen Together(const std::vector<QueueSeen> &parts)
{
    QueueSeen all;
    double queues = 0, bases = 0, known = 0;
    for (const auto &part : parts) {
        const auto trips = static_cast<double>(part.trips), counts = part.base > 0 ? std::max(trips, 1.0) : 0;
        all.trips += part.trips;
        queues += trips * static_cast<double>(part.queue);
        bases += counts * static_cast<double>(part.base);
        known += counts;
    }
    all.queue = all.trips > 0 ? static_cast<msfrs_time>(queues / static_cast<double>(all.trips)) : 0;
    all.base = known > 0 ? static_cast<msfrs_time>(bases / known) : 0;
    return all;
}

QueueEstimate::Base &QueueEstimate::baseOf(const uint64_t server, const msfrs_time now)
{
    const auto known = bases_.find(server);
    if (known != bases_.end()) {
        auto &base = known->second;
        if (now - base.since >= 2 * basesLast_ || now < base.since)
            base = {Never, Never, now};
        else if (now - base.since >= basesLast_)
            base = {Never, base.now, base.since + basesLast_};
        return base;
    }
    if (bases_.size() >= MostServers) { // evict the server with the oldest base
        const auto older = [](const auto &a, const auto &b) { return a.second.since < b.second.since; };
        bases_.erase(std::min_element(bases_.begin(), bases_.end(), older));
    }
    return bases_.emplace(server, Base{Never, Never, now}).first->second;
}

void QueueEstimate::seen(const uint64_t server, const msfrs_time rtt, const msfrs_time least, const msfrs_time now)
{
    auto &base = baseOf(server, now);
    base.now = std::min({base.now, rtt, least});
    samples_.push_back({now, base.least(), std::max<msfrs_time>(rtt - base.least(), 0), server});
    if (samples_.size() > MostSamples)
        samples_.pop_front();
}

QueueSeen QueueEstimate::seen(const msfrs_time now, const msfrs_time lately, const double share) const
{
    std::vector<msfrs_time> queues;
    for (const auto &sample : samples_) {
        if (now - sample.at <= lately && sample.at <= now)
            queues.push_back(sample.queue);
    }
    if (queues.empty())
        return {0, 0, meanBase(now)};
    const auto wanted = queues.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(queues.size()));
    std::nth_element(queues.begin(), wanted, queues.end());
    return {queues.size(), *wanted, meanBase(now)};
}

QueueSeen QueueEstimate::atAll(const msfrs_time now, const msfrs_time lately) const
{
    QueueSeen all{0, 0, meanBase(now)};
    std::unordered_set<uint64_t> counted;
    for (auto sample = samples_.rbegin(); sample != samples_.rend(); ++sample) {
        if (now - sample->at > lately || sample->at > now)
            continue;
        if (counted.insert(sample->server).second)
            all.queue = all.trips > 0 ? std::min(all.queue, sample->queue) : sample->queue;
        ++all.trips;
    }
    return counted.size() == 1 ? seen(now, lately, 0) : all;
}

msfrs_time QueueEstimate::base(const uint64_t server) const
{
    const auto known = bases_.find(server);
    return known == bases_.end() ? 0 : known->second.least();
}

msfrs_time QueueEstimate::meanBase(const msfrs_time now) const
{
    msfrs_time sum = 0, count = 0;
    for (const auto &sample : samples_) {
        if (now - sample.at <= SampleLasts && sample.at <= now) {
            sum += sample.base;
            ++count;
        }
    }
    return count ? sum / count : 0;
}

} // namespace msfrs
