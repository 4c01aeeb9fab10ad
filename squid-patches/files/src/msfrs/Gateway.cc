/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "CachePeer.h"
#include "comm/Connection.h"
#include "debug/Messages.h"
#include "debug/Stream.h"
#include "event.h"
#include "fde.h"
#include "fatal.h"
#include "globals.h"
#include "msfrs/Classify.h"
#include "msfrs/Gateway.h"
#include "msfrs/SocketOptions.h"
#include "msfrs/Ticket.h"
#include "SquidConfig.h"
#include "tools.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <fstream>
#include <functional>
#include <string_view>
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
constexpr msfrs_time CheckBatchesEvery = Second;
constexpr msfrs_time LookEvery = Second / 50; ///< at connections, each a system call
constexpr uint32_t SampleFirst = 64, SampleEvery = 16; ///< quanta; a sample takes two system calls

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

uint64_t
KeyOf(const Ip::Address &address)
{
    struct in6_addr bytes;
    address.getInAddr(bytes);
    return std::hash<std::string_view>()({reinterpret_cast<const char *>(&bytes), sizeof(bytes)});
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
        const auto config = ShareOfWorker(Config.msfrs.requestConfig());
        if (ThisGateway)
            ThisGateway->change(config);
        else
            ThisGateway = new Gateway(config);
        ThisGateway->checkReceiveBuffer();
        debugs(97, 2, "msfrs: on, " << config.classes.size() << " classes, " << config.rate << " bit/s");
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
    checkBatches();
    arm(batches_.empty() ? next : std::min(next, nextCheck_));
}

Msfrs::ReadBatch::List::iterator
Msfrs::Gateway::enlist(ReadBatch &batch)
{
    if (batches_.empty()) {
        nextCheck_ = Now() + CheckBatchesEvery;
        if (nextCheck_ < nextTick_)
            arm(nextCheck_);
    }
    return batches_.insert(batches_.end(), &batch);
}

void
Msfrs::Gateway::checkBatches()
{
    const auto now = Now();
    if (batches_.empty() || now < nextCheck_)
        return;
    nextCheck_ = now + CheckBatchesEvery;
    for (auto place = batches_.begin(); place != batches_.end(); )
        (*place++)->check(); // which may forget itself
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
    const auto limit = Now() + config_.maxWait;
    if (limit < nextTick_)
        arm(limit);
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

/// \returns the SO_RCVBUF for a window of so many bytes: Linux doubles it
int
Msfrs::Gateway::socketOption(const int64_t window) const
{
    return static_cast<int>(std::min<int64_t>(bufferShare_.bufferFor(window) / 2, INT_MAX / 2));
}

int
Msfrs::Gateway::ReceiveBufferFor(const Comm::Connection &conn)
{
    const auto scheduler = ThisGateway ? ThisGateway->scheduler() : nullptr;
    if (!scheduler || NearBy(conn))
        return 0;
    const auto base = scheduler->baseRoundTrip(KeyOf(conn.remote));
    const auto size = ThisGateway->socketOption(scheduler->receiveBufferShare(base));
    return (Config.tcpRcvBufsz == 0 || Config.tcpRcvBufsz > static_cast<size_t>(size)) ? size : 0;
}

void
Msfrs::Gateway::lookAtPath(const Comm::Connection &conn, const msfrs_time now)
{
    if (!scheduler_ || now < nextLook_)
        return;
    const auto path = Path(conn);
    if (path.latest <= 0)
        return;
    nextLook_ = now + LookEvery;
    scheduler_->seenRoundTrip(KeyOf(conn.remote), path.latest, path.least, now);
}

void
Msfrs::Gateway::fitWindow(Comm::Connection &conn, const msfrs::Request &request, int64_t &window)
{
    if (!scheduler_ || conn.rcvbuf <= 0)
        return; // somebody else's business

    // The kernel guesses until some packets have come.
    if (fd_table[conn.fd].bytes_read > scheduler_->config().quantum &&
            (++quanta_ < SampleFirst || quanta_ % SampleEvery == 0)) {
        const auto offered = Path(conn).window;
        if (offered < window) // and not what we have bounded it to
            bufferShare_.seen(offered, ReceiveBuffer(conn));
    }

    // The window scale was derived from the first buffer, in steps of 64 KB times a power of two.
    int64_t most = 65535;
    while (most < conn.rcvbuf)
        most *= 2;
    const auto base = scheduler_->baseRoundTrip(KeyOf(conn.remote));
    const auto wanted = std::min<int64_t>(scheduler_->receiveBuffer(request, base), most);
    if (wanted <= window / 4 * 5 && wanted >= window / 4 * 3)
        return; // not worth the system calls
    window = wanted;
    const auto size = socketOption(wanted);
    if (size > conn.rcvbuf) { // a smaller one might drop what is under way
        conn.rcvbuf = size;
        SetReceiveBuffer(conn, size);
    }
    SetWindowClamp(conn, static_cast<int>(wanted));
}

/// warns if the kernel gives less than what a response that is alone should have
void
Msfrs::Gateway::checkReceiveBuffer() const
{
    const auto wanted = socketOption(scheduler_->receiveBuffer());
    std::ifstream file("/proc/sys/net/core/rmem_max");
    int64_t most = 0;
    if (file >> most && most < wanted)
        debugs(97, DBG_IMPORTANT, "WARNING: msfrs: a single response from afar can fill the link only if the sysctl "
               "net.core.rmem_max is at least " << wanted << "; it is " << most);
}
