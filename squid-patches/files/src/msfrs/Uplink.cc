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

} // namespace

Uplink::Uplink(Gateway &gateway, const RequestConfig &config):
    gateway_(gateway),
    config_(config)
{
    start();
}

Uplink::~Uplink()
{
    releaseAll();
}

void
Uplink::start()
{
    RequestHost host;
    host.log = &Gateway::Log;
    host.random = [this] { return gateway_.random(); };
    const auto now = Gateway::Now();
    const auto ledger = JoinWorkerLedger(config_, now);
    host.ledger = ledger;
    scheduler_ = std::make_unique<RequestScheduler>(config_, host, now);
    ledger_ = ledger;
    TellClasses(config_);
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
        if (ledger_)
            ledger_->configured(NumberOf(config_));
        TellClasses(config_);
    } else { // reconfiguring after a failure
        const auto previous = std::exchange(config_, config);
        try {
            start();
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
    debugs(97, DBG_CRITICAL, "ERROR: msfrs: the scheduler failed in " << what << ": " << why <<
           "; its " << tickets_.size() << " requests go on unscheduled and a new scheduler starts in " <<
           RestartAfter / Second << " seconds");
    releaseAll();
    scheduler_.reset();
    ledger_.reset();
    startAt_ = Gateway::Now() + RestartAfter;
    gateway_.wakeBy(startAt_);
}

msfrs_time
Uplink::tick()
{
    if (!scheduler_ && Gateway::Now() >= startAt_) {
        try {
            start();
            debugs(97, DBG_IMPORTANT, "msfrs: scheduling again");
        } catch (const std::exception &e) {
            debugs(97, DBG_CRITICAL, "ERROR: msfrs: " << e.what());
            startAt_ = Gateway::Now() + RestartAfter;
        }
    }
    msfrs_time next = 0;
    attempt("tick", [&next](auto &scheduler, const auto now) {
        next = scheduler.tick(now);
        AnswerAboutAddresses(scheduler.config(), now);
    });
    return scheduler_ ? next : startAt_;
}

} // namespace msfrs::squid
