// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One transaction at the simulated gateway: the Session that Squid has, too, and the connection and continuations that
/// squid::Ticket has for it there. Transaction forwards an HTTP/1 response with it, Tunnel a tunnel.
#ifndef MSFRS_SIM_ACCESS_TICKET_H
#define MSFRS_SIM_ACCESS_TICKET_H

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

    std::list<std::shared_ptr<Ticket>>::iterator place; ///< the gateway's

protected:
    /// What squid's FwdState or TunnelStateData does when the scheduler lets it.
    virtual void forward() = 0;
    virtual void finish(bool refused) = 0;
    /// Bytes of the server that are still to be read, and what is said of that to the scheduler; -1: unknown.
    virtual int64_t rest() const { return -1; }
    virtual int64_t stated() const { return rest(); }
    /// `bytes` were read from the server. \returns them, if they are a tunnel's
    virtual const char *took(int64_t bytes) = 0;
    /// These go to the client. May end the transaction.
    virtual void deliver(int64_t bytes) = 0;
    /// What the client said may go on to the server, after maySend() has held it.
    virtual void send() {}

    /// The server is read whenever it may be and there is something to read.
    void goOn();
    void read();
    /// Whether what the client of a tunnel said may go on to the server. If not, send() is called later.
    bool maySend(std::string_view data);
    /// The scheduler is to know nothing more of it.
    void leave();

    Gateway &gateway_;
    Connection *connection_ = nullptr;

private:
    /// job(scheduler, now), if there is a scheduler that knows this transaction.
    template <class Job> void attempt(Job job);
    int64_t take();
    void endPause();
    void readSoon();

    /* SessionHolder API */
    msfrs_time now() const override { return gateway_.clock_.now(); }
    void granted() override;
    void expired() override { finish(true); }
    void dropped() override { finish(true); }
    void paused(int64_t rest) override;

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
    void cameAhead(int64_t, msfrs_time) override {}
    int64_t takeAhead() override;

    const uint32_t cls_;
    const std::string user_;
    Session session_{*this, *this};
    bool waiting_ = false;         ///< forward() when a turn is had
    bool reading_ = false;         ///< the gateway wants to know when there is something to read
    bool paused_ = false;          ///< goOn() when a turn is had
    bool watching_ = false;        ///< for the rest to arrive
    bool looking_ = false;         ///< in this pause what arrives goes on
    int64_t ahead_ = 0;            ///< bytes that have gone to the client and stay in the kernel until the pause is over
    int64_t taken_ = 0;            ///< of these, those of pauses that are over
    bool saying_ = false;          ///< send() when a turn is had
};

} // namespace msfrs::sim::access

#endif
