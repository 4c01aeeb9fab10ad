// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The gateway: patched Squid, driving the real RequestScheduler with Squid's Session. Without a configuration it is
/// unmodified Squid.
#pragma once

#include "engine/request_scheduler.h"
#include "sim/access/connection.h"

#include <functional>
#include <list>
#include <optional>
#include <random>

namespace msfrs::sim::access {

class Http2Session;
class Ticket;

/// Wish::thinks of a server that does not even answer a SYN. The client gives up after GiveUp.
constexpr msfrs_time Never = INT64_MAX, GiveUp = 10 * Second;

/// A client's request.
struct Wish {
    uint32_t cls;
    std::string user;
    uint32_t server;
    int64_t size;        ///< bytes of the body
    /// Remaining bytes stated by the server, from the true ones; none: the true ones.
    std::function<int64_t(int64_t left)> says = {};
    msfrs_time thinks = 0; ///< ns that the server takes between request and first byte, >= 0; Never: it is silent
};

/// Callbacks for the progress of a request.
struct Watcher {
    std::function<void(int64_t bytes)> received; ///< bytes of the body
    std::function<void(bool refused)> ended;
};

class Gateway {
public:
    /// \param paths to the servers
    /// \param config none: nothing is scheduled. Its interface, if named, counts what the link carries.
    /// \param ledger of all parties of the link; null: the gateway has it to itself
    /// \throws ConfigError
    Gateway(Clock &, Link &, std::vector<ServerPath> paths, const std::optional<RequestConfig> &config, uint64_t seed,
            std::shared_ptr<Ledger> ledger = {});
    ~Gateway();
    Gateway(const Gateway &) = delete;
    Gateway &operator=(const Gateway &) = delete;

    void fetch(const Wish &, Watcher);
    /// A client requests a tunnel to a server for its session.
    void tunnel(uint32_t cls, const std::string &user, uint32_t server, std::shared_ptr<Http2Session>);

    bool kernelTakesLeast = false; ///< see Receiver::takeLeast()

    const RequestScheduler *scheduler() const { return scheduler_.get(); }
    size_t open() const { return tickets_.size(); } ///< requests and tunnels that have not ended
    const std::list<std::unique_ptr<Connection>> &connections() const { return connections_; }
    const std::string &log() const { return log_; }

private:
    friend class Ticket;
    friend class Transaction;
    friend class Tunnel;

    /// Calls job(scheduler), then updates the scheduler's timer.
    template <class Job>
    void with(Job job)
    {
        job(*scheduler_);
        if (const auto wake = scheduler_->wakeAt(); wake && wake < timer_.when())
            arm(wake);
    }
    void tick();
    void arm(msfrs_time);
    Connection *reuse(uint32_t server);
    Connection &connect(uint32_t server);
    void keep(Connection &);
    void begin(std::shared_ptr<Ticket>);
    void end(Ticket &);

    Clock &clock_;
    Link &link_;
    std::vector<ServerPath> paths_;
    std::mt19937_64 random_;
    std::string log_;                                    ///< log of the scheduler
    std::list<std::unique_ptr<Connection>> connections_; ///< all that ever existed
    std::vector<std::vector<Connection *>> idle_;        ///< by server, latest last
    std::unique_ptr<RequestScheduler> scheduler_;
    std::list<std::shared_ptr<Ticket>> tickets_;
    Timer timer_, batches_;
};

} // namespace msfrs::sim::access
