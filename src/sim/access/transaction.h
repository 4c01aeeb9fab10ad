// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One request at the simulated gateway: what Squid's forwarding and squid::Ticket with its ReadBatch and ArrivalWatch
/// do for an HTTP/1 response.
#ifndef MSFRS_SIM_ACCESS_TRANSACTION_H
#define MSFRS_SIM_ACCESS_TRANSACTION_H

#include "exchange/exchange.h"
#include "sim/access/gateway.h"

namespace msfrs::sim::access {

class Transaction final : private RequestOwner {
public:
    Transaction(Gateway &, const Wish &, Watcher);

    void start();
    /// Once a second: an endless wait for a whole batch ends.
    void checkBatch();

    std::list<std::shared_ptr<Transaction>>::iterator place; ///< the gateway's

private:
    /// As in Ticket.h; Reading stands for FREE, of who is not scheduled.
    enum class State { Waiting, Served, Paused, Arrived, Silent, Asking, Reading };

    void forward();
    void request();
    void goOn();
    bool mayRead();
    void read();
    void readSoon();
    void finish(bool refused);
    void setBatch(int64_t bytes);
    void prepareBatch(bool contended);
    int64_t rest() const { return headed_ ? rest_ : -1; }

    void granted() override;
    void expired() override { finish(true); }
    bool silent(msfrs_time now) override;
    PathSample path(msfrs_time now) override;
    bool asked() const override { return exchange_.state() == Exchange::State::Asked; }

    Gateway &gateway_;
    const Wish wish_;
    Watcher watcher_;
    State state_ = State::Reading;
    Request *scheduled_ = nullptr;
    Exchange exchange_;
    Connection *connection_ = nullptr;
    int64_t rest_;                 ///< of header and body
    bool headed_ = false;          ///< the header has come, which says how much is to come
    bool holding_ = false;         ///< inside hold()
    bool reading_ = false;         ///< the gateway wants to know when there is something to read
    bool paused_ = false;          ///< goOn() when a turn is had
    bool afterPause_ = false;
    bool watching_ = false;        ///< for the rest to arrive
    msfrs_time srtt_ = 0;
    int64_t untilFitting_ = 1, window_ = 0;
    int64_t lowWater_ = 1;
    bool batched_ = false, batchRead_ = true, batchSilent_ = false;
};

} // namespace msfrs::sim::access

#endif
