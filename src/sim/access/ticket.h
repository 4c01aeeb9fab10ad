// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The scheduling of one transaction at the simulated gateway, and how its server is read: what squid::Ticket with its
/// ServerReading does. Transaction forwards an HTTP/1 response with it, Tunnel a tunnel.
#ifndef MSFRS_SIM_ACCESS_TICKET_H
#define MSFRS_SIM_ACCESS_TICKET_H

#include "exchange/exchange.h"
#include "sim/access/gateway.h"

#include <string_view>

namespace msfrs::sim::access {

class Ticket : private RequestOwner {
public:
    Ticket(Gateway &gateway, uint32_t cls, std::string user):
        gateway_(gateway), cls_(cls), user_(std::move(user)) {}
    Ticket(const Ticket &) = delete;
    Ticket &operator=(const Ticket &) = delete;

    /// Queues it; forward() follows, unless it is refused.
    void start();
    /// Once a second: an endless wait for a whole batch ends.
    void checkBatch();

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
    /// As in Squid's Ticket.h; Reading, for a transaction that is not scheduled, is FREE there.
    enum class State { Waiting, Served, Paused, Arrived, Silent, Asking, Reading };

    bool mayRead();
    bool looksAhead() const { return state_ == State::Paused && looking_; }
    int64_t take();
    void takeAhead();
    bool ask();
    void readSoon();
    void setBatch(int64_t bytes);
    void prepareBatch(bool contended);

    void granted() override;
    void expired() override { finish(true); }
    bool silent(msfrs_time now) override;
    PathSample path(msfrs_time now) override;
    bool asked() const override { return exchange_.state() == Exchange::State::Asked; }

    const uint32_t cls_;
    const std::string user_;
    State state_ = State::Reading;
    Request *scheduled_ = nullptr;
    Exchange exchange_;
    bool holding_ = false;         ///< inside hold()
    bool reading_ = false;         ///< the gateway wants to know when there is something to read
    bool paused_ = false;          ///< goOn() when a turn is had
    bool watching_ = false;        ///< for the rest to arrive
    bool looking_ = false;         ///< in this pause what arrives goes on
    int64_t ahead_ = 0;            ///< bytes that have gone to the client and stay in the kernel until the pause is over
    bool saying_ = false;          ///< send() when a turn is had
    msfrs_time srtt_ = 0;
    int64_t untilFitting_ = 1, window_ = 0;
    int64_t lowWater_ = 1;
    bool batched_ = false, batchRead_ = true, batchSilent_ = false;
};

} // namespace msfrs::sim::access

#endif
