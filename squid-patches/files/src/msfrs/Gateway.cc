/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Messages.h"
#include "debug/Stream.h"
#include "event.h"
#include "fatal.h"
#include "globals.h"
#include "msfrs/Config.h"
#include "msfrs/Gateway.h"
#include "msfrs/lib/ledger/shared.h"
#include "msfrs/LinkDirectory.h"
#include "msfrs/Ticket.h"
#include "msfrs/WorkerLedger.h"
#include "SquidConfig.h"
#include "tools.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace msfrs::squid
{

namespace
{

Gateway *ThisGateway = nullptr;

constexpr msfrs_time Second = 1'000'000'000;
constexpr msfrs_time RestartAfter = 10 * Second;

uint64_t
Seed()
{
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
}

} // namespace

Gateway *
TheGateway()
{
    return ThisGateway;
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
        const auto running = ThisGateway ? ThisGateway->scheduler() : nullptr;
        const auto config = Config.msfrs.requestConfig(running ? &running->config() : nullptr);
        if (ThisGateway)
            ThisGateway->change(config);
        else
            ThisGateway = new Gateway(config);
        if (const auto &scheduler = ThisGateway->scheduler_) { // it may have failed meanwhile
            ThisGateway->readings.buffers.check(*scheduler);
            debugs(97, 2, "msfrs: on, " << config.classes.size() << " classes, " << scheduler->config().rate << " bit/s");
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

Gateway::Gateway(const RequestConfig &config):
    config_(config),
    random_(Seed())
{
    start();
    arm(0);
}

Gateway::~Gateway()
{
    if (ThisGateway == this) {
        const auto tickets = tickets_; // a scheduler that fails in report() releases all of them
        for (const auto ticket: tickets)
            ticket->report(); // access.log gets their lines later
    }
    // so that tickets do not call us back
    if (ThisGateway == this)
        ThisGateway = nullptr;
    if (eventFind(&Gateway::Tick, nullptr))
        eventDelete(&Gateway::Tick, nullptr);
    releaseAll();
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

void
Gateway::start()
{
    RequestHost host;
    host.log = &Gateway::Log;
    host.random = [this] { return random_(); };
    const auto now = Now();
    const auto ledger = JoinWorkerLedger(config_, now);
    host.ledger = ledger;
    scheduler_ = std::make_unique<RequestScheduler>(config_, host, now);
    ledger_ = ledger;
    TellClasses(config_);
}

/// \throws ConfigError, and then nothing has changed
void
Gateway::change(const RequestConfig &config)
{
    if (scheduler_) {
        try {
            scheduler_->reconfigure(config, Now());
        } catch (const ConfigError &) {
            throw;
        } catch (const std::exception &e) {
            config_ = config;
            quotas.configure();
            failed("reconfigure", e.what());
            return;
        }
        renumber(config);
        config_ = config;
        if (ledger_)
            ledger_->configured(NumberOf(config_));
        TellClasses(config_);
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
    quotas.configure();
    accessChanged_ = true; // handled when all of Squid's new configuration is in force
    arm(0);
}

/// gives tickets the indices that classes of config_ have in the scheduler's new configuration
void
Gateway::renumber(const RequestConfig &config)
{
    std::vector<uint32_t> numbers;
    for (const auto &cls: config_.classes) {
        const auto number = scheduler_->classIndex(cls.name);
        numbers.push_back(number < config.classes.size() ? number : config.defaultClass);
    }
    for (const auto ticket: tickets_)
        ticket->renumber(numbers);
}

/// evaluates msfrs_access again for all tickets
void
Gateway::classifyAgain()
{
    for (const auto ticket: tickets_)
        ticket->classifyAgain();
}

void
Gateway::moveByQuota()
{
    const auto tickets = tickets_; // a scheduler that fails releases all of them
    for (const auto ticket: tickets)
        ticket->reclass();
}

/// Releases all tickets, which continue unscheduled.
void
Gateway::releaseAll()
{
    const auto released = std::move(tickets_);
    tickets_.clear();
    for (const auto ticket: released)
        ticket->release();
}

/// reacts to an exception of the scheduler
void
Gateway::failed(const char * const what, const char * const why) noexcept
{
    debugs(97, DBG_CRITICAL, "ERROR: msfrs: the scheduler failed in " << what << ": " << why <<
           "; its " << tickets_.size() << " requests go on unscheduled and a new scheduler starts in " <<
           RestartAfter / Second << " seconds");
    releaseAll();
    scheduler_.reset();
    ledger_.reset();
    arm(Now() + RestartAfter);
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
        AnswerAboutAddresses(scheduler.config(), now);
    });
    const auto accessChanged = std::exchange(accessChanged_, false);
    if (accessChanged)
        classifyAgain();
    if (quotas.tick() || accessChanged)
        moveByQuota();
    if (quotas.any())
        next = std::min(next, Now() + Second);
    checkBatches();
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
    for (const auto ticket: tickets_)
        ticket->checkBatch();
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
Gateway::noteWait()
{
    wakeBy(Now() + config_.maxWait);
}

void
Gateway::keepTime()
{
    if (Now() > nextTick_ + Second)
        tick();
}

} // namespace msfrs::squid
