/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Messages.h"
#include "debug/Stream.h"
#include "msfrs/lib/ledger/shared.h"
#include "msfrs/LinkDirectory.h"
#include "msfrs/Ticket.h"
#include "msfrs/Uplink.h"
#include "msfrs/WorkerLedger.h"

#include <utility>

namespace msfrs::squid
{

namespace
{

constexpr msfrs_time Second = 1'000'000'000;
constexpr msfrs_time RestartAfter = 10 * Second;

/// the same shares by the simplest of our schedulers, and no other plugin
RequestConfig
Simple(RequestConfig config)
{
    config.arbiter = {"drr", {}};
    config.admission = RequestConfig().admission;
    return config;
}

} // namespace

Uplink::Uplink(Gateway &gateway, const RequestConfig &config):
    gateway_(gateway),
    config_(config)
{
    start(config_);
}

Uplink::~Uplink()
{
    releaseAll();
}

void
Uplink::start(const RequestConfig &config)
{
    RequestHost host;
    host.log = &Gateway::Log;
    host.random = [this] { return gateway_.random(); };
    const auto now = Gateway::Now();
    const auto ledger = JoinWorkerLedger(config, now);
    host.ledger = ledger;
    scheduler_ = std::make_unique<RequestScheduler>(config, host, now);
    ledger_ = ledger;
    TellClasses(config);
}

void
Uplink::change(const RequestConfig &config)
{
    if (scheduler_) {
        try {
            scheduler_->reconfigure(config, Gateway::Now());
        } catch (const ConfigError &) {
            throw;
        } catch (const std::exception &e) {
            config_ = config;
            failed("reconfigure", e.what());
            return;
        }
        renumber(config);
        config_ = config;
        startAt_ = 0;
        if (ledger_)
            ledger_->configured(NumberOf(config_));
        TellClasses(config_);
    } else { // reconfiguring after a failure
        const auto previous = std::exchange(config_, config);
        try {
            start(config_);
            startAt_ = 0;
        } catch (...) {
            config_ = previous;
            throw;
        }
    }
}

/// gives tickets the indices that classes of config_ have in the scheduler's new configuration
void
Uplink::renumber(const RequestConfig &config)
{
    std::vector<uint32_t> numbers;
    for (const auto &cls: config_.classes) {
        const auto number = scheduler_->classIndex(cls.name);
        numbers.push_back(number < config.classes.size() ? number : config.defaultClass);
    }
    for (const auto ticket: tickets_)
        ticket->renumber(numbers);
}

/// Releases all tickets, which continue unscheduled.
void
Uplink::releaseAll()
{
    const auto released = std::move(tickets_);
    tickets_.clear();
    for (const auto ticket: released)
        ticket->release();
}

/// reacts to an exception of the scheduler
void
Uplink::failed(const char * const what, const char * const why) noexcept
{
    const auto simple = startAt_ > 0; // this is the one that has failed
    debugs(97, DBG_CRITICAL, "ERROR: msfrs: the scheduler failed in " << what << ": " << why <<
           "; its " << tickets_.size() << " requests go on unscheduled, " <<
           (simple ? "as do new ones" : "new ones are scheduled by drr") << ", and it is tried again in " <<
           RestartAfter / Second << " seconds");
    releaseAll();
    scheduler_.reset();
    ledger_.reset();
    startAt_ = Gateway::Now() + RestartAfter;
    gateway_.wakeBy(startAt_);
    if (simple)
        return;
    try {
        start(Simple(config_));
    } catch (const std::exception &e) {
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: drr does not start: " << e.what());
    }
}

/// after a failure: schedules as configured again
void
Uplink::restart()
{
    startAt_ = 0;
    try {
        if (scheduler_)
            scheduler_->reconfigure(config_, Gateway::Now());
        else
            start(config_);
        debugs(97, DBG_IMPORTANT, "msfrs: scheduling again");
    } catch (const ConfigError &e) { // a scheduler that runs is as it was
        debugs(97, DBG_CRITICAL, "ERROR: msfrs: " << e.what());
        startAt_ = Gateway::Now() + RestartAfter;
    } catch (const std::exception &e) {
        failed("restart", e.what());
    }
}

msfrs_time
Uplink::tick()
{
    if (startAt_ && Gateway::Now() >= startAt_)
        restart();
    msfrs_time next = 0;
    attempt("tick", [&next](auto &scheduler, const auto now) {
        next = scheduler.tick(now);
        AnswerAboutAddresses(scheduler.config(), now);
    });
    return scheduler_ && !(startAt_ && startAt_ < next) ? next : startAt_;
}

} // namespace msfrs::squid
