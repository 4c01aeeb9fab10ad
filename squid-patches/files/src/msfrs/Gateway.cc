/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "CachePeer.h"
#include "comm/Connection.h"
#include "debug/Messages.h"
#include "debug/Stream.h"
#include "event.h"
#include "fatal.h"
#include "globals.h"
#include "msfrs/Classify.h"
#include "msfrs/Gateway.h"
#include "msfrs/Ticket.h"
#include "SquidConfig.h"
#include "tools.h"

#include <algorithm>
#include <chrono>
#include <unistd.h>

namespace
{

/// Plugins are opened as squid.conf is: with the rights that Squid was started with. Its effective user need not be
/// able to read them, say below the home of who has built them.
class AsRoot
{
public:
    AsRoot(): dropped_(geteuid() != 0) { if (dropped_) enter_suid(); }
    ~AsRoot() { if (dropped_) leave_suid(); }

    AsRoot(AsRoot &&) = delete; // no copying or moving of any kind

private:
    const bool dropped_; ///< whether privileges were dropped before us
};

Msfrs::Gateway *ThisGateway = nullptr;

constexpr msfrs_time Second = 1'000'000'000;
constexpr msfrs_time RestartAfter = 10 * Second;

void
Log(const int level, const std::string &message)
{
    debugs(97, (level == 0 ? DBG_IMPORTANT : level == 1 ? 2 : 5), "msfrs: " << message);
}

uint64_t
Seed()
{
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
}

/// What one of several workers may use. Every worker schedules alone: it gets its part of the rate and has to
/// measure by what it carries itself, as the interface counts what all of them do.
msfrs::RequestConfig
ShareOfWorker(msfrs::RequestConfig config)
{
    if (Config.workers > 1) {
        config.rate /= Config.workers;
        if (!config.interface.empty()) {
            debugs(97, DBG_IMPORTANT, "WARNING: msfrs_link interface=" << config.interface << " is not used with " <<
                   Config.workers << " workers: each measures its own payload");
            config.interface.clear();
        }
    }
    return config;
}

} // namespace

Msfrs::Gateway *
Msfrs::TheGateway()
{
    return ThisGateway;
}

void
Msfrs::Gateway::Configure()
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
        const auto running = ThisGateway ? ThisGateway->scheduler() : nullptr;
        const auto config = ShareOfWorker(Config.msfrs.requestConfig(running ? &running->config() : nullptr));
        if (ThisGateway)
            ThisGateway->change(config);
        else
            ThisGateway = new Gateway(config);
        ThisGateway->readings.buffers.check(*ThisGateway->scheduler_);
        debugs(97, 2, "msfrs: on, " << config.classes.size() << " classes, " <<
               ThisGateway->scheduler_->config().rate << " bit/s");
        if (config.maxWait >= Config.Timeout.read * Second)
            debugs(97, DBG_IMPORTANT, "WARNING: msfrs_queue max_wait should be below read_timeout");
    } catch (const std::exception &e) {
        if (!reconfiguring)
            fatalf("msfrs: %s", e.what());
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: " << e.what() << "; " <<
               (ThisGateway ? "the previous configuration stays" : "requests are not scheduled"));
    }
}

void
Msfrs::Gateway::Shutdown()
{
    delete ThisGateway;
}

Msfrs::Gateway::Gateway(const msfrs::RequestConfig &config):
    config_(config),
    random_(Seed())
{
    start();
    arm(0);
}

Msfrs::Gateway::~Gateway()
{
    if (ThisGateway == this) {
        const auto tickets = tickets_; // a scheduler that fails to tell lets all of them go
        for (const auto ticket: tickets)
            ticket->report(); // access.log gets their lines later
    }
    // so that tickets do not come back to us
    if (ThisGateway == this)
        ThisGateway = nullptr;
    if (eventFind(&Gateway::Tick, nullptr))
        eventDelete(&Gateway::Tick, nullptr);
    releaseAll();
}

msfrs_time
Msfrs::Gateway::Now()
{
    using std::chrono::duration_cast;
    using std::chrono::nanoseconds;
    return duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void
Msfrs::Gateway::start()
{
    msfrs::RequestHost host;
    host.log = &Log;
    host.random = [this] { return random_(); };
    const AsRoot forPlugins;
    scheduler_ = std::make_unique<msfrs::RequestScheduler>(config_, host, Now());
}

/// \throws msfrs::ConfigError and then nothing has changed
void
Msfrs::Gateway::change(const msfrs::RequestConfig &config)
{
    if (scheduler_) {
        const AsRoot forPlugins;
        scheduler_->reconfigure(config, Now());
        config_ = config;
    } else { // reconfiguring after a failure
        const auto previous = config_;
        config_ = config;
        try {
            start();
        } catch (...) {
            config_ = previous;
            throw;
        }
    }
    arm(0);
}

/// Lets everybody go on unscheduled.
void
Msfrs::Gateway::releaseAll()
{
    const auto released = std::move(tickets_);
    tickets_.clear();
    for (const auto ticket: released)
        ticket->release();
}

/// reacts to an exception of the scheduler
void
Msfrs::Gateway::failed(const char * const what, const char * const why) noexcept
{
    debugs(97, DBG_CRITICAL, "ERROR: msfrs: the scheduler failed in " << what << ": " << why <<
           "; its " << tickets_.size() << " requests go on unscheduled and a new scheduler starts in " <<
           RestartAfter / Second << " seconds");
    releaseAll();
    scheduler_.reset();
    arm(Now() + RestartAfter);
}

void
Msfrs::Gateway::Tick(void *)
{
    if (ThisGateway) // the event may have been on its way when the gateway ended
        ThisGateway->tick();
}

void
Msfrs::Gateway::tick()
{
    auto next = Now() + RestartAfter;
    try {
        if (!scheduler_) {
            start();
            debugs(97, DBG_IMPORTANT, "msfrs: scheduling again");
        }
    } catch (const std::exception &e) {
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: " << e.what());
    }
    attempt("tick", [&next](auto &scheduler, const auto now) {
        next = scheduler.tick(now);
    });
    readings.batches.check(Now());
    arm(std::min(next, readings.batches.nextCheck()));
}

/// sets the one timer
void
Msfrs::Gateway::arm(const msfrs_time when)
{
    if (eventFind(&Gateway::Tick, nullptr))
        eventDelete(&Gateway::Tick, nullptr);
    nextTick_ = when;
    // at least a millisecond: Squid's time stands still within a loop iteration
    const auto delay = std::max(static_cast<double>(when - Now()) / Second, 0.001);
    eventAdd("Msfrs::Gateway::Tick", &Gateway::Tick, nullptr, delay, 0, false);
}

bool
Msfrs::Gateway::NearBy(const Comm::Connection &conn)
{
#if USE_DELAY_POOLS
    const auto peer = conn.getPeer();
    return peer && peer->options.no_delay;
#else
    (void)conn;
    return false;
#endif
}

void
Msfrs::Gateway::noteWait()
{
    wakeBy(Now() + config_.maxWait);
}

void
Msfrs::Gateway::keepTime()
{
    if (Now() > nextTick_ + Second)
        tick();
}

void
Msfrs::Gateway::noteRefusal(const char * const reason, const Party &party)
{
    if (refusals_.count(Now()))
        debugs(97, DBG_IMPORTANT, "WARNING: msfrs: " << refusals_.summary("request", "") << ", the latest of user " <<
               party.user << ": " << reason);
}

int
Msfrs::Gateway::retryAfter() const
{
    // by then, all that waits now was served or refused
    return std::max<msfrs_time>((config_.maxWait + Second - 1) / Second, 1);
}
