/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_GATEWAY_H
#define SQUID_SRC_MSFRS_GATEWAY_H

#include "comm/forward.h"
#include "engine/request_scheduler.h"
#include "msfrs/forward.h"
#include "msfrs/ReadBatch.h"
#include "msfrs/RefusalLog.h"
#include "window/buffer_share.h"

#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <random>
#include <string>

namespace Msfrs
{

struct Party;

/// The one RequestScheduler of a Squid process and what it needs from Squid: a clock, a timer, a log.
/// Fails open: a scheduler that throws is dropped, its requests go on unscheduled, and a new one starts a
/// little later.
class Gateway
{
public:
    /// Starts, changes or ends scheduling as Config.msfrs says. To be called after squid.conf was read, at
    /// startup and at reconfiguration. Dies if the scheduler cannot start at startup; keeps what there was if
    /// it cannot change later.
    static void Configure();

    /// Ends scheduling before Squid exits. Who still waits is not answered any more.
    static void Shutdown();

    /// \throws msfrs::ConfigError
    explicit Gateway(const msfrs::RequestConfig &);
    ~Gateway();

    Gateway(Gateway &&) = delete; // no copying or moving of any kind

    /// nil for a while after a failure
    const msfrs::RequestScheduler *scheduler() const { return scheduler_.get(); }

    /// The SO_RCVBUF for a future connection to a server, or zero. While we do not read, what the server sends
    /// goes on until the kernel's receive buffer is full, and nobody has scheduled that: the buffer has to be
    /// small. It has to be so before connect(): the first window that the kernel announces is not taken back,
    /// and what then does not fit is dropped and comes again after seconds.
    static int ReceiveBufferFor(const Comm::Connection &);

    /// whether what comes from there does not come over the link: from a cache_peer with no-delay
    static bool NearBy(const Comm::Connection &);

    /// how long a server that begins no answer holds its place at least, ns
    msfrs_time patience() const { return config_.patience; }

    /// monotonic clock, ns; never negative, never goes back
    static msfrs_time Now();

    /* the rest is for tickets */

    using Tickets = std::list<Ticket *>;

    /// job(scheduler, now) if there is a scheduler; see the class description for what an exception does
    /// \returns whether the job was done
    template <class Job>
    bool attempt(const char *what, Job job) noexcept;

    /// remembers a ticket that the scheduler knows
    Tickets::iterator enlist(Ticket &t) { return tickets_.insert(tickets_.end(), &t); }
    void forget(Tickets::iterator place) { tickets_.erase(place); }

    /// keeps an eye on a batch until it is forgotten
    ReadBatch::List::iterator enlist(ReadBatch &);
    void forget(ReadBatch::List::iterator place) { batches_.erase(place); }

    /// A request has begun to wait: its time limit must be noticed.
    void noteWait();

    /// Makes up for a timer that is late: Squid's events go by the wall clock, which may be set back.
    void keepTime();

    /// Counts a refusal for the log, which gets a line a minute at most.
    void noteRefusal(const char *reason, const Party &);

    /// \returns what Retry-After should say, seconds
    int retryAfter() const;

    /// Looks from time to time at how long the round trips of those in service are.
    void lookAtPath(const Comm::Connection &, msfrs_time now);

    /// Lets a server have as much on its way to us as there is room now for this response.
    /// \param window what it was bounded to before, bytes; 0: not known
    void fitWindow(Comm::Connection &, const msfrs::Request &, int64_t &window);

private:
    void change(const msfrs::RequestConfig &);
    void start();
    void failed(const char *what, const char *why) noexcept;
    void releaseAll();
    int socketOption(int64_t window) const;
    void checkReceiveBuffer() const;
    void tick();
    void checkBatches();
    void arm(msfrs_time when);
    static void Tick(void *);

    msfrs::RequestConfig config_;
    std::mt19937_64 random_;
    std::unique_ptr<msfrs::RequestScheduler> scheduler_;
    Tickets tickets_; ///< those that scheduler_ knows
    ReadBatch::List batches_;
    msfrs_time nextCheck_ = 0; ///< of batches_, while there are any
    msfrs_time nextTick_ = 0;

    msfrs::BufferShare bufferShare_; ///< of connections to servers
    msfrs_time nextLook_ = 0; ///< at a connection's round trip
    uint32_t quanta_ = 0; ///< that looked at a receive buffer

    RefusalLog refusals_; ///< of requests
};

template <class Job>
bool
Gateway::attempt(const char * const what, Job job) noexcept
{
    if (!scheduler_)
        return false;
    try {
        job(*scheduler_, Now());
        if (const auto wake = scheduler_->wakeAt(); wake && wake < nextTick_)
            arm(wake);
        return true;
    } catch (const std::exception &e) {
        failed(what, e.what());
    } catch (...) {
        failed(what, "unknown exception");
    }
    return false;
}

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_GATEWAY_H */

