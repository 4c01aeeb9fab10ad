// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How RequestScheduler shares the bytes in flight among the responses in service by their receive windows, and what
/// its window must know of these.
#include "engine/request_config.h"
#include "engine/request_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace msfrs {

constexpr int64_t Segment = 1460; ///< bytes of payload in an Ethernet frame, without TCP options
constexpr int64_t LeastWindow = 3 * Segment; ///< bytes: keeps one segment in flight all the time
/// Bytes: the largest receive buffer. It bounds the kernel's memory: over an RTT of 0.3 s, a single response fills no
/// more than 450 Mbit/s.
constexpr double MostBuffer = 16.0 * 1024 * 1024;
/// Number of windows that a response counts as. With one, all responses of a few users are in service, and windows
/// alone keep weights less well than turns do. With as many as make a quantum, too few are in service, and q* grows to
/// compensate. docs/lab/constants.md has larger and smaller values, also of the next two.
constexpr double Booked = 1.25;
/// Part of a user's lag by which its windows grow, and by how many of its shares they grow at most: where a share is
/// small, since far servers or many users divide C, a part of the lag would be many windows.
constexpr double LagGain = 0.3, MostGrowth = 2;
/// Responses in service up to which each read looks at all of them; with N, each N/64th does. Half or double changes
/// the cost of a read on links of 100 Mbit/s and more.
constexpr size_t FewInService = 64;

int RequestScheduler::Impl::mostBuffer() const
{
    if (config.quantum == 0)
        return 0;
    // The bandwidth-delay product, and room for the quantum in service.
    const double most = std::max(BandwidthDelay(config), static_cast<double>(config.quantum));
    return static_cast<int>(std::min(most, MostBuffer));
}

int RequestScheduler::receiveBuffer() const { return impl_->mostBuffer(); }

/// Bytes that a new response may have in flight until its window is first adjusted. Uses q0 instead of q*, which is
/// long beside other traffic: initial bursts would lengthen that queue further.
int RequestScheduler::Impl::windowOf(const msfrs_time base) const
{
    const double round = Seconds(base > 0 ? base + windowParams.queue : config.rtt);
    const double share = floor.factor() * config.rate / 8 * round / std::max(outstanding(), 1.0);
    const auto least = static_cast<double>(std::min(config.quantum, LeastWindow));
    return static_cast<int>(std::min(std::max(share, least), static_cast<double>(mostBuffer())));
}

/// Weights of all users who have a request, waiting or in service.
double RequestScheduler::Impl::activeWeights() const
{
    double weights = 0;
    for (const auto &slot : slots)
        weights += slot.cls->weight * slot.cls->users;
    return weights;
}

uint32_t RequestScheduler::Impl::activeUsers() const
{
    uint32_t active = 0;
    for (const auto &slot : slots)
        active += slot.cls->users;
    return active;
}

/// The users among whom C is divided: each with the part of its weight that it uses, but `of` with all of it.
RequestScheduler::Impl::Receivers RequestScheduler::Impl::receivers(const NamedFlow &of)
{
    if (looked.stillGood == 0)
        lookAtReceivers();
    else
        --looked.stillGood;
    const bool counted = of.counted == looked.round;
    return {looked.weights + (counted ? of.cls->weight - of.uses : 0), counted ? of.responses : 0};
}

/// Max-min fair shares. If the responses of a user of weight w are expected to bring x bytes/s, less than its share s,
/// the user counts with weight w x / s, and the others divide the rest. s is the share as of the previous pass, or all
/// of C if no user used any. A user with a waiting request can use more than it has, and counts with w. So streams and
/// silent servers do not shorten the windows of other users. A pass visits every response in service; the more there
/// are, the more reads pass between two of them, so that the cost of a read does not grow.
void RequestScheduler::Impl::lookAtReceivers()
{
    const double before = looked.weights;
    looked = {looked.round + 1, activeWeights(), inService() / FewInService};
    const double capacityHere = config.rate / 8 * others->part; // bytes/s
    for (const auto list : {&served, &early}) {
        for (const auto r : *list) {
            auto &flow = flowOf(*r);
            const double weight = flow.cls->weight;
            if (std::exchange(flow.counted, looked.round) != looked.round) {
                flow.responses = 0;
                flow.uses = flow.backlog > 0 ? weight : 0;
                looked.weights += flow.uses - weight;
            }
            if (r->item->attained > 0)
                ++flow.responses;
            const auto bytes = static_cast<double>(expected(*r, inFlight(*r), engine->latest()));
            const double part = bytes / roundTrip(r->base) / capacityHere;
            const double more = std::min(part * std::max(before, weight), weight - flow.uses);
            flow.uses += more;
            looked.weights += more;
        }
    }
}

/// A user's share of C (R + q*) by weight among the active users, plus a bounded part of its lag, divided among its
/// responses in service. Turns do not give a user with one response its share: while its bytes are in flight, the user
/// has no other response to release. A user ahead of its share keeps its windows: nobody might use what shorter ones
/// would leave. Unacknowledged data that has arrived, none to two segments, is not in flight.
double RequestScheduler::Impl::userShare(const Request &r, const msfrs_time base)
{
    if (!r.item)
        return 0;
    auto &flow = flowOf(r);
    const auto active = receivers(flow);
    const double share = config.rate / 8 * roundTrip(base) * flow.cls->weight * others->part / active.weights;
    const double growth = std::clamp(LagGain * law->lag(flow), 0.0, MostGrowth * share);
    const double part = floor.factor() > 1 ? floor.factor() : leftByOthers();
    return Segment + part * (share + growth) / std::max(active.responses, 1u);
}

/// R + q*, s.
double RequestScheduler::Impl::roundTrip(const msfrs_time base) const
{
    return Seconds((base > 0 ? base : usualBase > 0 ? usualBase : config.rtt) + queueTarget.get());
}

/// W and W+ at the first grant, for the log.
void RequestScheduler::Impl::noteWindow(Request &r) const
{
    r.w = static_cast<uint32_t>(std::lround(outstanding()));
    r.wplus = law->limit();
}

bool RequestScheduler::Impl::endInterval(const msfrs_time now, const double total, const double responses)
{
    if (!use.update(now, total, rated()))
        return false;
    paper.update(windowParams, use, now, total, rated());
    const auto seen = withOthers(path.seen(now, QueueEstimate::SampleLasts, 0.5)); // a worker alone has too few samples
    floor.update({use.elapsed(), use.utilisation(), responses, use.fullShare(), seen.enough() ? seen.queue : -1},
                 windowParams.floor);
    path.basesLast(floor.below() ? WindowFloor::Lasts : Remembered);
    return true;
}

void RequestScheduler::Impl::rebase(const msfrs_time now)
{
    const auto total = carried();
    use.rebase(now, total);
    paper.rebase(now, total);
}

void RequestScheduler::Impl::adoptWindow(const WindowParams &params)
{
    windowParams = params;
    use.configure(params.interval);
}

double RequestScheduler::Impl::leftByOthers() const
{
    return std::max(1 - floor.others(), floor.inVain() ? 1 - windowParams.target : windowParams.floor);
}

void RequestScheduler::Impl::expectAnswer(Request &r, const msfrs_time now)
{
    r.arrivals.ask(now, roundTrip(r.base), r.base > 0 ? 2 : 3); // a new connection needs a handshake first
}

int64_t RequestScheduler::Impl::inFlight(const Request &r) const
{
    return static_cast<int64_t>(Booked * (r.window > 0 ? r.window : windowOf(r.base)));
}

/// \param most what it may bring in a round trip
int64_t RequestScheduler::Impl::expected(const Request &r, const int64_t most, const msfrs_time now) const
{
    // With rate=auto a link that becomes slower delays responses: that must not let more be released.
    return capacity ? most : r.arrivals.expected(most, now);
}

void RequestScheduler::Impl::book(Request &r, const msfrs_time now)
{
    int64_t bytes = 0;
    if ((r.state == Request::State::Served || r.state == Request::State::Early) && r.item) {
        bytes = std::min(r.quantumLeft, inFlight(r));
        // Even a response that is small on average may bring a least window.
        const auto usual = firstQuantum > 0 ? std::max(static_cast<int64_t>(firstQuantum), LeastWindow) : 0;
        if (r.remaining != MSFRS_UNKNOWN)
            bytes = std::min(bytes, r.remaining);
        else if (r.first && r.item->attained < usual)
            bytes = std::min(bytes, usual - r.item->attained);
        bytes = expected(r, std::max<int64_t>(bytes, 0), now);
    }
    credit.book(r.booking, bytes, roundTrip(r.base));
}

int RequestScheduler::receiveBufferShare(const msfrs_time base) const { return impl_->windowOf(base); }

int RequestScheduler::receiveBuffer(Request &r, const msfrs_time base)
{
    r.base = base;
    const auto byUser = static_cast<int>(std::min(impl_->userShare(r, base), static_cast<double>(impl_->mostBuffer())));
    // The rest of a response that ends with this turn arrives in one RTT: it is booked as no more.
    const auto last = r.remaining != MSFRS_UNKNOWN && r.remaining <= r.quantumLeft ? r.remaining : 0;
    r.window = std::max(byUser, static_cast<int>(std::max(last, std::min(impl_->config.quantum, LeastWindow))));
    impl_->book(r, impl_->engine->latest());
    return r.window;
}

msfrs_time RequestScheduler::baseRoundTrip(const uint64_t server) const { return impl_->path.base(server); }

/// Share of C that responses had since the last call; negative: unknown.
double RequestScheduler::Impl::ownShare(const msfrs_time now)
{
    const double bytes = sums.own - std::exchange(ownBefore, sums.own);
    const auto since = now - std::exchange(ownAt, now);
    own = since > 0 && bytes >= 0 ? bytes * 8 / (rated() * Seconds(since)) : -1;
    return own;
}

} // namespace msfrs
