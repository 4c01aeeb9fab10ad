/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_TICKET_H
#define SQUID_SRC_MSFRS_TICKET_H

#include "base/AsyncCallbacks.h"
#include "base/RefCount.h"
#include "comm/forward.h"
#include "error/forward.h"
#include "http/forward.h"
#include "log/forward.h"
#include "msfrs/ArrivalWatch.h"
#include "msfrs/Classify.h"
#include "msfrs/ClientWatch.h"
#include "msfrs/Gateway.h"
#include "msfrs/ReadBatch.h"

#include <array>
#include <iosfwd>

namespace Msfrs
{

/// How a wait in the queue ended.
class Verdict
{
public:
    enum class Kind { released, queueOfUserFull, queueFull, notAdmitted, waitedTooLong, shuttingDown };

    /// \returns nil if the transaction may go on, otherwise what to tell the client
    ErrorState *error(HttpRequest *, const AccessLogEntryPointer &) const;

    /// \returns nil if the transaction may go on, otherwise a word for access.log
    const char *refusal() const;

    Kind kind = Kind::released;
};

std::ostream &operator <<(std::ostream &, const Verdict &);

/// The scheduling of one transaction, from the hold before its forwarding starts to the last byte read from
/// its server. Who forwards the transaction (FwdState or TunnelStateData) holds the ticket; the scheduler holds
/// it by reference. Without a scheduler, all that a ticket says is "go on".
class Ticket: public RefCountable, private msfrs::RequestOwner
{
    MEMPROXY_CLASS(Msfrs::Ticket);

public:
    using Pointer = TicketPointer;

    /// Puts a transaction in the queue.
    /// \param holder who forwards it
    /// \param callback called later if the returned ticket is held()
    /// \returns nil if this transaction is not scheduled
    static Pointer Hold(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &client,
                        const void *holder, const AsyncCallback<Verdict> &callback);

    /// Gets the ticket of a transaction whose forwarding is taken over by another holder. It does not wait again;
    /// if the former holder has already finished it, it is scheduled anew, without a wait.
    /// \returns nil if this transaction is not scheduled
    static Pointer Inherit(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &client,
                           const void *holder);

    ~Ticket() override;

    /// whether the transaction has to wait for the callback that Hold() got
    bool held() const { return held_; }

    /// While we are held(): notices if the client of a tunnel, or of a connection that is peeked at, leaves.
    void watch(const Comm::ConnectionPointer &client, const CbcPointer<ConnStateData> &);

    /// bytes were read from the server
    void charge(int64_t bytes);

    /// Whether the server may be read. If not, resumeBy() must tell how to resume. While that lasts, timeouts of
    /// the connections do not run.
    /// \param rest bytes that are still to be read, negative: unknown
    /// \param client for tunnels only: a client that gets nothing because of us
    bool mayRead(const Comm::ConnectionPointer &server, int64_t rest, const Comm::ConnectionPointer &client = nullptr);
    void resumeBy(const AsyncCallPointer &call) { resume_ = call; }

    /// Nothing more will come from the server. Does nothing if the ticket has gone to another holder.
    void finish(const void *holder);

    /// The scheduler has gone; the transaction goes on without it.
    void release();

    /// While paused: all that is still to be read, or as much as ever will be, waits in the kernel.
    void noteRestArrived();

    /// updates what access.log can say about this transaction
    void report() const noexcept;

private:
    Ticket(HttpRequest *, const AccessLogEntryPointer &, const void *holder);

    /// a connection whose timeout does not run, and how many seconds it had left
    struct Frozen {
        Comm::ConnectionPointer conn;
        time_t left = 0;
    };

    static Pointer Make(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &client,
                        const void *holder);
    template <class Job> bool join(const char *what, Job job);
    void leave();
    void conclude(Verdict::Kind);
    void resume();
    void freeze(const Comm::ConnectionPointer &, Frozen &);
    void thaw(const Comm::ConnectionPointer &, Frozen &);

    /* msfrs::RequestOwner API */
    void granted() override;
    void expired() override;
    void dropped() override;

    HttpRequestPointer request_;
    AccessLogEntryPointer al_;
    const void *holder_;

    Party party_;
    msfrs::Request *scheduled_ = nullptr; ///< nil once the scheduler has forgotten us
    Gateway::Tickets::iterator place_;    ///< among the gateway's; valid while scheduled_
    bool served_ = false;                 ///< released, and not paused
    bool held_ = false;                   ///< the callback was or will be called

    AsyncCallback<Verdict> callback_; ///< set while held
    ClientWatch::Pointer watch_;      ///< set while held, after watch()
    AsyncCallPointer resume_;         ///< set while paused
    std::array<Frozen, 2> frozen_;    ///< of the server's connection and of the client's
    ArrivalWatch arrivals_;           ///< on while paused, if the rest is small
    ReadBatch batch_;                 ///< of what is read between pauses
    bool restArrived_ = false;        ///< nothing is left that the scheduler could hold back
    bool resumed_ = false;            ///< granted after a pause, and not asked yet whether we may read
    int64_t untilWidening_ = 1;       ///< bytes to read before the receive buffer is looked at: the first of a quantum
};

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_TICKET_H */

