// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The scheduling of one transaction, from the hold before its forwarding starts to the last byte read from its server.
/// Squid and the simulator of the access link run the same one; sockets and continuations are theirs.
///
///     hold() --> WAITING ----> SERVED <------------- granted -----------+
///                   |          |  ^ |                                   |
///                refused       |  | +- quantum over, others wait -> PAUSED --- the rest has arrived --> ARRIVED
///                   v          |  |
///                REFUSED       |  +----------------- granted -------- ASKING
///                              +- server silent -> SILENT                |
///                                                    +-- anybody speaks -+
///     any --> FREE: the scheduler does not know us (any more), and everything may go on
///
/// Invariants: only SERVED has a place in the window; ARRIVED gives one back that is granted late. In PAUSED the server
/// is read without its window opening (ServerConnection::readsAhead()), in ASKING not at all. Only in ASKING are words
/// of a tunnel's client held back: its exchange is over, and the next request needs a turn.
///
/// The scheduler is passed into each call, since a host that fails open may have none. A call that throws leaves the
/// session fit for release() alone.
#ifndef MSFRS_SESSION_SESSION_H
#define MSFRS_SESSION_SESSION_H

#include "engine/request_scheduler.h"
#include "exchange/exchange.h"
#include "session/read_batch.h"
#include "session/receive_window.h"
#include "session/server_connection.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace msfrs {

/// Who forwards the transaction. granted() and paused() may come from inside any call to the scheduler, and must not
/// call it.
class SessionHolder {
public:
    virtual ~SessionHolder() = default;
    /// monotonic clock, ns
    virtual msfrs_time now() const = 0;
    /// A turn was had: whatever mayRead(), maySend() or hold() held back may go on.
    virtual void granted() = 0;
    /// The request waited for too long, or was not admitted: answer the client, then finish() and end().
    virtual void expired() = 0;
    virtual void dropped() = 0;
    /// A quantum is over: what arrives in the pause is waited for, or read ahead.
    /// \param rest bytes that are still to be read, unread ones included; negative: unknown. If they have all arrived
    ///        arrived() is to be called.
    virtual void paused(int64_t rest) = 0;
    /// For reports, as RequestOwner has them.
    virtual std::string host() const { return {}; }
    virtual uint64_t id() const { return 0; }
};

class Session final : private RequestOwner {
public:
    Session(SessionHolder &holder, ServerConnection &server): holder_(holder), server_(server) {}
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    /// Queues it; held() says whether it has to wait for granted(). Parameters as RequestScheduler::hold().
    /// \returns why it was refused
    Refusal hold(RequestScheduler &, uint32_t cls, std::string_view user, msfrs_time now, int64_t expected = -1);
    /// It does not wait.
    void adopt(RequestScheduler &, uint32_t cls, std::string_view user, msfrs_time now);
    bool held() const { return state_ == State::Waiting || state_ == State::Refused; }

    /// Whether the scheduler knows it, and as what.
    Request *request() const { return request_; }

    /// Whether the server may be read. If not, granted() follows.
    /// \param rest bytes that are still to be read, unread ones included; negative: unknown
    /// \param stated what the server says of `rest`
    bool mayRead(RequestScheduler &, int64_t rest, int64_t stated, msfrs_time now);
    /// Bytes were read from the server. \param data them, if they are a tunnel's; else null
    void charge(RequestScheduler &, int64_t bytes, const char *data, msfrs_time now);
    /// Whether what the client of a tunnel said may go on to the server. If not, granted() follows.
    bool maySend(RequestScheduler &, std::string_view data, msfrs_time now);
    /// In a pause: the rest of the response has arrived, or as much of it as will ever come.
    void arrived();
    /// Whether it may be read without asking: nothing more will come over the link, or it is read ahead.
    bool free() const { return !request_ || state_ == State::Arrived || server_.readsAhead(); }

    /// Every ReadBatch::CheckEvery.
    void checkBatch();

    /// Nothing more will come from the server: what was read ahead is charged. end() follows.
    void finish(RequestScheduler &, msfrs_time now);
    /// The scheduler forgets it.
    void end(RequestScheduler &, msfrs_time now);
    /// The scheduler has gone.
    void release();

private:
    enum class State { Waiting, Refused, Served, Paused, Arrived, Silent, Asking, Free };

    bool ask(RequestScheduler &, msfrs_time now);
    void chargeAhead(RequestScheduler &, msfrs_time now);
    void setLowWater();
    void stopBatch();

    /* RequestOwner API */
    void granted() override;
    void expired() override;
    void dropped() override;
    bool silent(msfrs_time now) override;
    PathSample path(const msfrs_time now) override { return server_.path(now); }
    bool asked() const override { return exchange_.state() == Exchange::State::Asked; }
    std::string host() const override { return holder_.host(); }
    uint64_t id() const override { return holder_.id(); }

    SessionHolder &holder_;
    ServerConnection &server_;
    State state_ = State::Free;
    Request *request_ = nullptr;
    Exchange exchange_;
    ReadBatch batch_;              ///< of what is read between pauses
    int64_t lowWater_ = 1;         ///< that the server's connection has
    ReceiveWindow window_;
    msfrs_time patience_ = 0;      ///< RequestConfig::patience
    msfrs_time srtt_ = 0;          ///< to the server, when that was last asked; 0: not known
    msfrs_time unreadUntil_ = 0;   ///< when what waits in the kernel is no reason any more not to count as silent
};

} // namespace msfrs

#endif
