/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Messages.h"
#include "debug/Stream.h"
#include "event.h"
#include "fatal.h"
#include "globals.h"
#include "msfrs/Config.h"
#include "msfrs/Directives.h"
#include "msfrs/Gateway.h"
#include "msfrs/lib/plugin/loader.h"
#include "msfrs/Routes.h"
#include "msfrs/Ticket.h"
#include "msfrs/Uplink.h"
#include "msfrs/WorkerLedger.h"
#include "SquidConfig.h"
#include "tools.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace msfrs::squid
{

namespace
{

Gateway *ThisGateway = nullptr;

constexpr msfrs_time Second = 1'000'000'000;
constexpr msfrs_time AtLeastEvery = 10 * Second; ///< the timer

uint64_t
Seed()
{
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
}

/// \throws ConfigError
std::unique_ptr<Neighbours>
KernelsNeighbours()
{
    try {
        return std::make_unique<Neighbours>(KernelNeighbours());
    } catch (const std::system_error &problem) {
        throw ConfigError(std::string("msfrs_user mac needs a netlink socket, to ask the kernel for the hardware "
                                      "addresses of clients: ") + problem.what() +
                          "; allow AF_NETLINK, or give msfrs_user src6/128");
    }
}

} // namespace

Gateway *
TheGateway()
{
    return ThisGateway;
}

bool
SeveralLinks()
{
    return ThisGateway && ThisGateway->several();
}

void
Gateway::Configure()
{
    if (!IamWorkerProcess())
        return;

    if (!Config.msfrs.on()) {
        if (ThisGateway)
            debugs(97, DBG_IMPORTANT, "msfrs: off; requests that were waiting go on");
        Shutdown();
        return;
    }

    try {
        if (ThisGateway)
            ThisGateway->change();
        else
            ThisGateway = new Gateway();
        for (const auto &uplink: ThisGateway->uplinks_) {
            const auto scheduler = uplink->scheduler();
            if (!scheduler)
                continue; // it has failed meanwhile
            ThisGateway->readings.buffers.check(*scheduler);
            debugs(97, 2, "msfrs: on, " << scheduler->config().classes.size() << " classes, " <<
                   scheduler->config().rate << " bit/s " << scheduler->config().interface);
        }
    } catch (const std::exception &e) {
        if (!reconfiguring)
            fatalf("msfrs: %s", e.what());
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: " << e.what() << "; " <<
               (ThisGateway ? "the previous configuration stays" : "requests are not scheduled"));
    }
}

void
Gateway::Shutdown()
{
    delete ThisGateway;
}

Gateway::Gateway():
    random(Seed())
{
    change();
}

Gateway::~Gateway()
{
    if (ThisGateway == this) {
        each(&Ticket::report); // access.log gets their lines later
        ThisGateway = nullptr; // so that tickets do not call us back
    }
    if (eventFind(&Gateway::Tick, nullptr))
        eventDelete(&Gateway::Tick, nullptr);
}

msfrs_time
Gateway::Now()
{
    using std::chrono::duration_cast;
    using std::chrono::nanoseconds;
    return duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void
Gateway::Log(const int level, const std::string &message)
{
    debugs(97, (level == 0 ? DBG_IMPORTANT : level == 1 ? 2 : 5), "msfrs: " << message);
}

/// Adopts Config.msfrs. A link stays the same if its interface does, or if there is one before and after.
/// \throws ConfigError, and then nothing has changed
void
Gateway::change()
{
    const auto running = uplinks_.empty() ? nullptr : uplinks_.front()->scheduler();
    std::vector<RequestConfig> configs;
    for (const auto line: *Config.msfrs.links)
        configs.push_back(Config.msfrs.requestConfig(*line, running ? &running->config() : nullptr));
    const auto count = configs.size();
    const auto sole = count == 1 && uplinks_.size() == 1;
    const auto placeOf = [&](const Uplink &uplink) -> size_t {
        const auto same = [&](const RequestConfig &c) { return sole || c.interface == uplink.config().interface; };
        return std::find_if(configs.begin(), configs.end(), same) - configs.begin();
    };

    const auto byMac = Config.msfrs.user && Config.msfrs.user->kind == UserKey::Mac;
    auto neighbours = byMac && !neighbours_ ? KernelsNeighbours() : nullptr;
    auto routes = count > 1 && !routes_ ? std::make_unique<Routes>() : nullptr;
    std::vector<Uplink *> kept(count + 1);
    for (const auto &uplink: uplinks_)
        kept[placeOf(*uplink)] = uplink.get();
    Uplinks next(count);
    for (size_t n = 0; n < count; ++n) {
        if (!kept[n])
            next[n] = std::make_unique<Uplink>(*this, configs[n]);
    }
    for (size_t n = 0; n < count; ++n) {
        if (kept[n])
            kept[n]->change(configs[n]); // throws nothing for a second link that it has not for the first
    }
    for (auto &uplink: uplinks_) {
        if (const auto n = placeOf(*uplink); n < count)
            next[n] = std::move(uplink);
    }
    std::swap(uplinks_, next);
    if (routes || count == 1)
        routes_ = std::move(routes);
    if (neighbours || !byMac)
        neighbours_ = std::move(neighbours);

    quotas.configure();
    accessChanged_ = true; // handled when all of Squid's new configuration is in force
    arm(0);
    for (const auto &gone: next) { // what waits there waits elsewhere from now on
        const auto tickets = gone ? gone->tickets() : Uplink::Tickets();
        for (const auto ticket: tickets)
            ticket->reroute();
    }
}

Uplink *
Gateway::uplinkOf(const Comm::Connection * const server) const
{
    if (!routes_)
        return uplinks_.front().get();
    if (!server)
        return nullptr;
    const auto interface = routes_->interfaceOf(*server);
    for (const auto &uplink: uplinks_) {
        if (uplink->config().interface == interface)
            return uplink.get();
    }
    debugs(97, 3, "not scheduled: " << *server << " leaves by " << (interface.empty() ? "no interface" : interface));
    return nullptr;
}

Ip::Address
Gateway::sourceOf(const Comm::Connection &fresh) const
{
    return routes_->sourceOf(fresh);
}

std::optional<MacAddress>
Gateway::hardwareAddressOf(const HostAddress &host)
{
    return neighbours_ ? neighbours_->find(host) : std::nullopt;
}

/// Calls a method of each ticket, in the order in which they came to their links. A scheduler that fails meanwhile
/// releases its tickets, but does not end them.
template <class Method>
void
Gateway::each(const Method method)
{
    std::vector<Ticket *> tickets;
    for (const auto &uplink: uplinks_)
        tickets.insert(tickets.end(), uplink->tickets().begin(), uplink->tickets().end());
    for (const auto ticket: tickets)
        (ticket->*method)();
}

void
Gateway::moveByQuota()
{
    each(&Ticket::reclass);
}

void
Gateway::Tick(void *)
{
    if (ThisGateway) // the event may have been due already when the gateway ended
        ThisGateway->tick();
}

void
Gateway::tick()
{
    auto next = Now() + AtLeastEvery;
    for (const auto &uplink: uplinks_)
        next = std::min(next, uplink->tick());
    const auto accessChanged = std::exchange(accessChanged_, false);
    if (accessChanged)
        each(&Ticket::classifyAgain);
    if (quotas.tick() || accessChanged)
        moveByQuota();
    if (routes_ && routes_->changed())
        each(&Ticket::reroute);
    if (quotas.any() || routes_)
        next = std::min(next, Now() + Second);
    checkBatches();
    EndHungWorkers(Now());
    readings.looks.check(Now());
    arm(std::min(next, readings.looks.nextCheck()));
}

/// ends read batches of servers that have fallen silent
void
Gateway::checkBatches()
{
    if (Now() < nextBatchCheck_)
        return;
    nextBatchCheck_ = Now() + ReadBatch::CheckEvery;
    for (const auto &uplink: uplinks_) {
        for (const auto ticket: uplink->tickets())
            ticket->checkBatch();
    }
}

/// sets the one timer
void
Gateway::arm(const msfrs_time when)
{
    if (eventFind(&Gateway::Tick, nullptr))
        eventDelete(&Gateway::Tick, nullptr);
    nextTick_ = when;
    // at least a millisecond: Squid's time stands still within a loop iteration
    const auto delay = std::max(static_cast<double>(when - Now()) / Second, 0.001);
    eventAdd("msfrs::Gateway::Tick", &Gateway::Tick, nullptr, delay, 0, false);
}

void
Gateway::keepTime()
{
    if (Now() > nextTick_ + Second)
        tick();
}

} // namespace msfrs::squid
