// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Schedules one transaction, from the hold before it is forwarded to the last byte read from its server. Squid and the
/// simulator of the access link run this same code; sockets and continuations are theirs.
///
///     hold() --> WAITING ----> SERVED <------------- granted -----------+
///                   |          |  ^ |                                   |
///                refused       |  | +- quantum over, others wait -> PAUSED --- the rest has arrived --> ARRIVED
///                   v          |  |
///                REFUSED       |  +----------------- granted -------- ASKING
///                              +- server silent -> SILENT                |
///                                                    +-- either sends ---+
///     any --> FREE: the scheduler does not know the session (any more), and everything may proceed
///
/// Invariants: only SERVED has a slot in the window; ARRIVED returns one that is granted late. In PAUSED the server is
/// read without opening its window (ServerConnection::readsAhead()), in ASKING not at all. Only in ASKING are bytes of
/// a tunnel's client held back: its exchange is over, and the next request needs a turn.
///
/// The scheduler is an argument of each call, since a host that fails open may have none. After a call that throws,
/// only release() may be called.
#pragma once

#include "engine/request_scheduler.h"
#include "exchange/exchange.h"
#include "session/read_batch.h"
#include "session/receive_window.h"
#include "session/server_connection.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace msfrs {

/// The host's side of a session: it forwards the transaction. granted() and paused() may be called from inside any call
/// to the scheduler, and must not call it.
class SessionHolder {
public:
    virtual ~SessionHolder() = default;
    /// monotonic clock, ns
    virtual msfrs_time now() const = 0;
    /// A turn was granted: whatever mayRead(), maySend() or hold() held back may proceed.
    virtual void granted() = 0;
    /// The request waited too long, or was not admitted: answer the client, then call finish() and end().
    virtual void expired() = 0;
    virtual void dropped(Refusal why) = 0;
    /// A quantum is over: wait for the bytes that arrive during the pause, or read them ahead.
    /// \param rest bytes still to be read, including unread ones; negative: unknown. When all have arrived, call
    ///        arrived().
    /// \param least as in ServerConnection::cameAhead()
    virtual void paused(int64_t rest, int64_t least) = 0;
    /// For reports, as in RequestOwner.
    virtual std::string host() const { return {}; }
    virtual uint64_t id() const { return 0; }
};

class Session final : private RequestOwner {
public:
    Session(SessionHolder &holder, ServerConnection &server): holder_(holder), server_(server) {}
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    /// Queues it; held() is whether it has to wait for granted(). Parameters as in RequestScheduler::hold().
    /// \returns why it was refused
    Refusal hold(RequestScheduler &, uint32_t cls, std::string_view user, msfrs_time now, int64_t expected = -1,
                 msfrs_time since = 0);
    /// Puts it in service without waiting.
    void adopt(RequestScheduler &, uint32_t cls, std::string_view user, msfrs_time now);
    bool held() const { return state_ == State::Waiting || state_ == State::Refused; }

    /// The scheduler's record of it; null if the scheduler does not know it.
    Request *request() const { return request_; }

    /// Whether the server may be read. If not, granted() follows.
    /// \param rest bytes still to be read, including unread ones; negative: unknown
    /// \param stated what the server states of `rest`
    bool mayRead(RequestScheduler &, int64_t rest, int64_t stated, msfrs_time now);
    /// Bytes were read from the server. \param data the bytes, if they are a tunnel's; else null
    void charge(RequestScheduler &, int64_t bytes, const char *data, msfrs_time now);
    /// Whether bytes of a tunnel's client may be sent to the server. If not, granted() follows.
    bool maySend(RequestScheduler &, std::string_view data, msfrs_time now);
    /// During a pause: the rest of the response has arrived, or as much of it as will ever come.
    void arrived();
    /// Whether it may be read without asking: nothing more will come over the link, or it is read ahead.
    bool free() const { return !request_ || state_ == State::Arrived || server_.readsAhead(); }

    /// Call every ReadBatch::CheckEvery.
    void checkBatch();

    /// Nothing more will come from the server: charges what was read ahead. end() follows.
    void finish(RequestScheduler &, msfrs_time now);
    /// Removes it from the scheduler.
    void end(RequestScheduler &, msfrs_time now);
    /// The scheduler is gone.
    void release();

private:
    enum class State { Waiting, Refused, Served, Paused, Arrived, Silent, Asking, Free };

    bool ask(RequestScheduler &, msfrs_time now);
    void chargeAhead(RequestScheduler &, msfrs_time now);
    int64_t least() const;
    void setLowWater();
    void stopBatch();

    /* RequestOwner API */
    void granted() override;
    void expired() override;
    void dropped(Refusal why) override;
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
    ReadBatch batch_;              ///< for reads between pauses
    int64_t lowWater_ = 1;         ///< as set on the server's connection
    ReceiveWindow window_;
    msfrs_time patience_ = 0;      ///< RequestConfig::patience
    msfrs_time srtt_ = 0;          ///< to the server, as last asked; 0: unknown
    msfrs_time unreadUntil_ = 0;   ///< from then on unread bytes in the kernel no longer prevent silent()
};

} // namespace msfrs
