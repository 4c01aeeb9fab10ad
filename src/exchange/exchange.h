// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// An exchange: the client says something, the server answers, silence. It, and not the connection that carries it, is
/// what holds a place in the window; a connection that is kept open has one exchange after the other.
///
///              begin()                     the server says something
///     OVER ---------------> ASKED ------------------------------------> ANSWERED
///      ^  (a turn is had)    | ^                                          | |
///      |                     | +--------- the client asks again ----------+ |
///      |    16 KB unanswered v                                              |
///      +---- end() --- UPLOADING <--- the client says 16 KB more -----------+
///      +---- end(): the server has been silent until silentAt() ------------+
///
/// A client that says something while the exchange is OVER has to wait for a turn, unless it is housekeeping
/// (TlsRecords). Who is UPLOADING needs the other direction: it needs no place here and does not wait, until it pauses.
/// What the server says while nobody has asked passes up to an allowance; beyond, it needs a turn.
/// How large records are and when they end is seen in TLS alone. HTTP/1 responses and opaque tunnels have no ends.
/// Housekeeping of the server is no answer, nor is what it says by itself once the handshake is over (its greeting, see
/// TlsRecords), if the client has asked for something by then: who was ASKED remains so.
#ifndef MSFRS_EXCHANGE_EXCHANGE_H
#define MSFRS_EXCHANGE_EXCHANGE_H

#include "exchange/tls_records.h"
#include "plugin/msfrs_plugin.h"

#include <cstdint>

namespace msfrs {

class Exchange {
public:
    enum class State { Over, Asked, Answered, Uploading };

    /// A turn is had at `now`: the server is asked, or may answer.
    void begin(msfrs_time now);

    /// The server is read on after a pause of ours.
    void resume(msfrs_time now);

    /// The client said these bytes.
    /// \returns whether they may go on to the server; false: they wait for a turn, after which begin() is called
    bool clientSays(const char *data, size_t size, msfrs_time now);

    /// The server said `size` > 0 bytes. \param data null where its records are not to be followed
    void serverSays(const char *data, size_t size, msfrs_time now);

    /// Whether the server may go on without a turn although nobody has asked.
    bool mayGoOnUnasked(msfrs_time now) const { return allowance(now) > 0; }

    /// When the server counts as silent if it says nothing until then; in the past for who needs no place.
    /// \param srtt round trip to the server, ns; 0: not known (yet)
    /// \param patience how long the beginning of an answer is waited for at least, ns
    msfrs_time silentAt(msfrs_time srtt, msfrs_time patience = 600'000'000) const;

    /// Whether what the server has said so far may be all: it ends where a record ends.
    bool mayBeComplete() const { return state_ == State::Answered && followed_ && server_.atEnd(); }

    /// The place went back. An upload goes on without one.
    void end();

    State state() const { return state_; }

private:
    int64_t allowance(msfrs_time now) const;
    void expectGreeting(msfrs_time now);
    TlsRecords::Content serverContent(const char *data, size_t size, msfrs_time now);

    State state_ = State::Over;
    bool followed_ = false;         ///< whether the server's records are
    TlsRecords client_, server_;
    msfrs_time firstWord_ = 0;      ///< of the client; 0: not yet
    msfrs_time firstAnswer_ = 0;    ///< the server's to it; 0: not yet
    msfrs_time greetingUntil_ = 0;  ///< when all of it would have come; 0: the client has not finished the handshake
    msfrs_time since_ = 0;          ///< of the latest word: of the client's while ASKED or UPLOADING, else the server's
    int64_t unanswered_ = 0;        ///< bytes of the client since the server's latest word
    int64_t unasked_ = 0;           ///< bytes of the server that the allowance has not made up for yet, at unaskedAt_
    msfrs_time unaskedAt_ = 0;
};

} // namespace msfrs

#endif
