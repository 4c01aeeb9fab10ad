// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// An exchange: the client sends, the server answers, then silence. An exchange holds a slot in the window, not the
/// connection that carries it: a persistent connection has one exchange after the other.
/// docs/design/exchanges.md has the rule for each kind of traffic.
///
///              begin()                        the server sends data
///     OVER ---------------> ASKED ------------------------------------> ANSWERED
///      ^  (turn granted)     | ^                                          | |
///      |                     | +-------- another client request ----------+ |
///      |    16 KB unanswered v                                              |
///      +---- end() --- UPLOADING <--- the client sends 16 KB more ----------+
///      +---- end(): the server has been silent until silentAt() ------------+
///
/// While the exchange is OVER, bytes of the client wait for a turn, unless they are housekeeping (TlsRecords). An
/// upload uses the other direction of the link: it holds no slot and does not wait until it pauses. Unsolicited bytes
/// of the server pass up to an allowance, whatever they are; beyond it they need a turn.
/// Record sizes and boundaries are visible only in TLS. HTTP/1 responses and opaque tunnels have none. Housekeeping of
/// the server is not an answer. Neither is its greeting after the handshake (TlsRecords), if the client has already
/// sent a request: the state stays ASKED.
#pragma once

#include "exchange/tls_records.h"
#include "plugin/msfrs_plugin.h"

#include <cstdint>

namespace msfrs {

class Exchange {
public:
    enum class State { Over, Asked, Answered, Uploading };

    /// ns for which a server may be silent in the middle of an answer, or a client may leave an answer unread
    static constexpr msfrs_time Pause = 600'000'000;

    /// The exchange was granted a turn: the request goes to the server, or the server may answer.
    void begin(msfrs_time now);

    /// Squid reads from the server again after a pause on Squid's side.
    void resume(msfrs_time now);

    /// The client sent `size` > 0 bytes.
    /// \returns whether they may go to the server now; false: they wait for a turn, after which begin() is called
    bool clientSays(const char *data, size_t size, msfrs_time now);

    /// The server sent `size` > 0 bytes. \param data null if its records are not to be followed (HTTP/1)
    void serverSays(const char *data, size_t size, msfrs_time now);

    /// Whether the allowance for unsolicited bytes is not used up: the server may continue without a turn.
    bool mayGoOnUnasked(msfrs_time now) const { return allowance(now) > 0; }

    /// \returns the time at which the server counts as silent if it sends nothing until then; a time in the past if
    /// the exchange needs no slot
    /// \param srtt smoothed round-trip time to the server, ns; 0: not known
    /// \param patience least time to wait for the start of an answer, ns > 0
    msfrs_time silentAt(msfrs_time srtt, msfrs_time patience = Pause) const;

    /// Whether the answer may be complete: the bytes so far end where a TLS record ends.
    bool mayBeComplete() const { return state_ == State::Answered && followed_ && server_.atEnd(); }

    /// Bytes missing from the server's current TLS record, before which the client cannot use it; 0: the stream is
    /// between two records, or has none that can be seen.
    int64_t recordLeft() const { return followed_ ? static_cast<int64_t>(server_.left()) : 0; }

    /// The slot was released. An upload continues without one.
    void end();

    State state() const { return state_; }

private:
    int64_t allowance(msfrs_time now) const;
    void expectGreeting(msfrs_time now);
    TlsRecords::Content serverContent(const char *data, size_t size, msfrs_time now);

    State state_ = State::Over;
    bool followed_ = false;         ///< whether the server's records are followed
    TlsRecords client_, server_;
    msfrs_time firstWord_ = 0;      ///< when the client sent first; 0: not yet
    msfrs_time firstAnswer_ = 0;    ///< when the server sent first after that; 0: not yet
    msfrs_time greetingUntil_ = 0;  ///< end of the period for a greeting; 0: the client has not finished the handshake
    msfrs_time since_ = 0;          ///< latest bytes: of the client while ASKED or UPLOADING, else of the server
    int64_t unanswered_ = 0;        ///< bytes of the client since the latest bytes of the server
    int64_t unasked_ = 0;           ///< bytes of the allowance in use at unaskedAt_
    msfrs_time unaskedAt_ = 0;
};

} // namespace msfrs
