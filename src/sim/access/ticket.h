// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One transaction at the simulated gateway: Squid's Session, and its connection and continuations as in squid::Ticket.
/// Transaction uses it to forward an HTTP/1 response, and Tunnel a tunnel.
#pragma once

#include "session/session.h"
#include "sim/access/gateway.h"

#include <string_view>

namespace msfrs::sim::access {

class Ticket : private SessionHolder, private ServerConnection {
public:
    Ticket(Gateway &gateway, uint32_t cls, std::string user):
        gateway_(gateway), cls_(cls), user_(std::move(user)) {}
    Ticket(const Ticket &) = delete;
    Ticket &operator=(const Ticket &) = delete;

    /// Queues it; forward() follows, unless it is refused.
    void start();
    void checkBatch() { session_.checkBatch(); }
    /// The client leaves.
    void giveUp() { finish(true); }

    std::list<std::shared_ptr<Ticket>>::iterator place; ///< in the gateway's list

protected:
    /// As Squid's FwdState or TunnelStateData, when the scheduler grants it.
    virtual void forward() = 0;
    virtual void finish(bool refused) = 0;
    /// Remaining bytes of the server, and the number stated to the scheduler; -1: unknown.
    virtual int64_t rest() const { return -1; }
    virtual int64_t stated() const { return rest(); }
    /// `bytes` were read from the server. \returns them, if they are a tunnel's
    virtual const char *took(int64_t bytes) = 0;
    /// Sends bytes to the client. May end the transaction.
    virtual void deliver(int64_t bytes) = 0;
    /// Forwards the client's bytes to the server after maySend() has held them.
    virtual void send() {}

    /// Reads the server whenever that is allowed and there are bytes.
    void goOn();
    void read();
    /// Whether bytes of a tunnel's client may be sent to the server. If not, send() is called later.
    bool maySend(std::string_view data);
    /// Removes it from the scheduler.
    void leave();

    Gateway &gateway_;
    Connection *connection_ = nullptr;

private:
    /// Calls job(scheduler, now), if a scheduler knows this transaction.
    template <class Job> void attempt(Job job);
    int64_t take();
    void endPause();
    void readSoon();

    /* SessionHolder API */
    msfrs_time now() const override { return gateway_.clock_.now(); }
    void granted() override;
    void expired() override { finish(true); }
    void dropped(msfrs::Refusal) override { finish(true); }
    void paused(int64_t rest, int64_t least) override;

    /* ServerConnection API */
    bool open() const override { return connection_ != nullptr; }
    int64_t unread() const override { return connection_->receiver().unread(); }
    PathSample path(msfrs_time now) const override;
    uint64_t key() const override { return connection_->server(); }
    msfrs_time roundTrip() const override { return connection_->smoothed(); }
    int64_t segment() const override { return Mss; }
    int64_t bufferedWindow(int64_t bound, int64_t quantum) override;
    void setWindow(int64_t bytes) override;
    void setLowWater(int64_t bytes) override;
    bool readsAhead() const override { return looking_; }
    void cameAhead(int64_t, const int64_t least, msfrs_time) override { least_ = least; }
    int64_t takeAhead() override;

    const uint32_t cls_;
    const std::string user_;
    Session session_{*this, *this};
    bool waiting_ = false;         ///< forward() at the next turn
    bool reading_ = false;         ///< read() when there are bytes to read
    bool paused_ = false;          ///< goOn() at the next turn
    bool watching_ = false;        ///< for the rest to arrive
    bool looking_ = false;         ///< in this pause, arriving bytes are forwarded
    int64_t least_ = 1;            ///< bytes that are forwarded at least; valid while looking_
    int64_t ahead_ = 0;            ///< bytes sent to the client that stay in the kernel until the pause ends
    int64_t taken_ = 0;            ///< of these, those of pauses that have ended
    bool saying_ = false;          ///< send() at the next turn
};

} // namespace msfrs::sim::access
