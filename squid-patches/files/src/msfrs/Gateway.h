/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_GATEWAY_H
#define SQUID_SRC_MSFRS_GATEWAY_H

#include "msfrs/forward.h"
#include "msfrs/lib/engine/request_scheduler.h"
#include "msfrs/QuotaBook.h"
#include "msfrs/reading/ServerReading.h"
#include "msfrs/RefusalLog.h"

#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <random>
#include <string>

namespace msfrs
{
class SharedLedger;
}

namespace msfrs::squid
{

/// The one RequestScheduler of a Squid process: its timer, its lifetime and its failures.
/// Fails open: a scheduler that throws is dropped, its requests continue unscheduled, and a new one starts a
/// little later.
class Gateway
{
public:
    /// Starts, changes or ends scheduling by Config.msfrs. To be called after squid.conf was read, at startup
    /// and at reconfiguration. Exits if the scheduler cannot start at startup; keeps the running one if it
    /// cannot change later.
    static void Configure();

    /// Ends scheduling before Squid exits. Requests that still wait are no longer answered.
    static void Shutdown();

    /// \throws ConfigError
    explicit Gateway(const RequestConfig &);
    ~Gateway();

    Gateway(Gateway &&) = delete; // no copying or moving of any kind

    /// nil for a while after a failure
    const RequestScheduler *scheduler() const { return scheduler_.get(); }

    /// the configuration that the scheduler was made with, or will be made with again
    const RequestConfig &config() const { return config_; }

    /// monotonic clock, ns; never negative, never goes back
    static msfrs_time Now();

    /// logs a message of the scheduler or its parts; level as in RequestHost
    static void Log(int level, const std::string &message);

    /* the rest is for tickets */

    using Tickets = std::list<Ticket *>;

    /// job(scheduler, now) if there is a scheduler; see the class description for what an exception does
    /// \returns whether the job was done
    template <class Job>
    bool attempt(const char *what, Job job) noexcept;

    /// remembers a ticket that the scheduler knows
    Tickets::iterator enlist(Ticket &t) { return tickets_.insert(tickets_.end(), &t); }
    void forget(Tickets::iterator place) { tickets_.erase(place); }

    /// A request has begun to wait: sets the timer so that its time limit is noticed.
    void noteWait();

    /// Makes up for a late timer: Squid's events follow the wall clock, which may be set back.
    void keepTime();

    /// Moves each ticket to the class where its user belongs. To be called when the quotas have changed that, and not
    /// from inside an attempt().
    void moveByQuota();

    /* shared by tickets */
    QuotaBook quotas;
    ServerReadings readings;
    RefusalLog refusals{"request"};

private:
    void change(const RequestConfig &);
    void renumber(const RequestConfig &);
    void classifyAgain();
    void start();
    void failed(const char *what, const char *why) noexcept;
    void releaseAll();
    void tick();
    void checkBatches();
    void arm(msfrs_time when);
    void wakeBy(msfrs_time when) { if (when < nextTick_) arm(when); }
    static void Tick(void *);

    RequestConfig config_;
    std::mt19937_64 random_;
    std::shared_ptr<SharedLedger> ledger_; ///< of scheduler_; nil if this process has the link to itself
    std::unique_ptr<RequestScheduler> scheduler_;
    Tickets tickets_; ///< those that scheduler_ knows
    bool accessChanged_ = false; ///< tickets may belong to other classes
    msfrs_time nextTick_ = 0;
    msfrs_time nextBatchCheck_ = 0;
};

template <class Job>
bool
Gateway::attempt(const char * const what, Job job) noexcept
{
    if (!scheduler_)
        return false;
    try {
        job(*scheduler_, Now());
        if (const auto wake = scheduler_->wakeAt())
            wakeBy(wake);
        wakeBy(readings.looks.nextCheck());
        return true;
    } catch (const std::exception &e) {
        failed(what, e.what());
    } catch (...) {
        failed(what, "unknown exception");
    }
    return false;
}

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_GATEWAY_H */
