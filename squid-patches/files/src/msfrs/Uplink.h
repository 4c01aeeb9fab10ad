/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_UPLINK_H
#define SQUID_SRC_MSFRS_UPLINK_H

#include "msfrs/Gateway.h"

#include <exception>
#include <list>
#include <memory>
#include <string>

namespace msfrs
{
class SharedLedger;
}

namespace msfrs::squid
{

/// A link: its scheduler, the tickets that this knows, and its failures.
/// Fails open, within shares: a scheduler that throws is dropped, and its requests continue unscheduled. A simple
/// one schedules new requests at once, until the configured one is tried again a little later.
class Uplink
{
public:
    /// \throws ConfigError
    Uplink(Gateway &, const RequestConfig &);
    ~Uplink(); ///< the tickets continue unscheduled

    Uplink(Uplink &&) = delete; // no copying or moving of any kind

    /// nil for a while after a failure of the simple one, too
    const RequestScheduler *scheduler() const { return scheduler_.get(); }

    /// the configuration that the scheduler was made with, or will be made with again
    const RequestConfig &config() const { return config_; }

    /// Adopts another configuration.
    /// \throws ConfigError, and then nothing has changed
    void change(const RequestConfig &);

    /// Lets the scheduler do what is due, and restarts it after a failure.
    /// \returns when to call it next
    msfrs_time tick();

    using Tickets = std::list<Ticket *>;
    const Tickets &tickets() const { return tickets_; } ///< those that the scheduler knows

    /* the rest is for tickets */

    /// job(scheduler, now) if there is a scheduler; see the class description for what an exception does
    /// \returns whether the job was done
    template <class Job>
    bool attempt(const char *what, Job job) noexcept;

    /// remembers a ticket that the scheduler knows
    Tickets::iterator enlist(Ticket &t) { return tickets_.insert(tickets_.end(), &t); }
    void forget(Tickets::iterator place) { tickets_.erase(place); }

    /// A request has begun to wait: sets the timer so that its time limit is noticed.
    void noteWait() { gateway_.wakeBy(Gateway::Now() + config_.maxWait); }

private:
    void start(const RequestConfig &);
    void renumber(const RequestConfig &);
    void failed(const char *what, const char *why) noexcept;
    void restart();
    void releaseAll();

    Gateway &gateway_;
    RequestConfig config_;
    std::shared_ptr<SharedLedger> ledger_; ///< of scheduler_; nil if this process has the link to itself
    std::unique_ptr<RequestScheduler> scheduler_;
    Tickets tickets_;
    msfrs_time startAt_ = 0; ///< after a failure: when to schedule as configured again; 0: that is done already
};

template <class Job>
bool
Uplink::attempt(const char * const what, Job job) noexcept
{
    if (!scheduler_)
        return false;
    try {
        job(*scheduler_, Gateway::Now());
        if (const auto wake = scheduler_->wakeAt())
            gateway_.wakeBy(wake);
        gateway_.wakeBy(gateway_.readings.looks.nextCheck());
        return true;
    } catch (const std::exception &e) {
        failed(what, e.what());
    } catch (...) {
        failed(what, "unknown exception");
    }
    return false;
}

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_UPLINK_H */
