/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_TICKET_H
#define SQUID_SRC_MSFRS_TICKET_H

#if !HAVE_LIBMSFRS
#include "msfrs/Absent.h"
#else

#include "base/AsyncCallbacks.h"
#include "base/RefCount.h"
#include "comm/forward.h"
#include "msfrs/Classify.h"
#include "msfrs/ClientWatch.h"
#include "msfrs/Gateway.h"
#include "msfrs/reading/ServerReading.h"
#include "msfrs/Verdict.h"
#include "session/session.h"

#include <vector>

namespace msfrs::squid
{

/// The scheduling of one transaction in Squid: a Session, the connections that it is about, and what is to be continued
/// when it says so. Who forwards the transaction (FwdState or TunnelStateData) holds the ticket; the gateway holds it by
/// reference. Pending continuations: callback_ until the first turn, resume_ to read the server, send_ to forward
/// buffered client data.
class Ticket: public RefCountable, private SessionHolder
{
    MEMPROXY_CLASS(Ticket);

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

    /// \returns the SO_RCVBUF for a future connection to a server; zero: it may have what others have
    static int InitialReceiveBuffer(const Comm::Connection &);

    ~Ticket() override;

    /// whether the transaction has to wait for the callback that Hold() got
    bool held() const { return session_.held(); }

    /// While we are held(): notices if the client of a tunnel, or of a connection that is peeked at, leaves.
    void watch(const Comm::ConnectionPointer &client, const CbcPointer<ConnStateData> &);

    /// bytes were read from the server
    /// \param data the bytes, if they are a tunnel's
    void charge(int64_t bytes, const char *data = nullptr);

    /// Whether the server may be read. If not, resumeBy() must tell how to resume. While that lasts, timeouts of
    /// the connections do not run.
    /// \param rest bytes that are still to be read, the kernel's included, negative: unknown
    /// \param client for tunnels only: a client that gets nothing because of us
    bool mayRead(const Comm::ConnectionPointer &server, int64_t rest, const Comm::ConnectionPointer &client = nullptr);
    void resumeBy(const AsyncCallPointer &call) { resume_ = call; }

    /// Before mayRead() without a known rest: so many bytes at least are still to be read.
    void expectAtLeast(int64_t bytes);

    /// Whether what the client of a tunnel said may go on to the server. If not, sendBy() must tell how to send it,
    /// and nobody may read the client until then. While that lasts, timeouts of the connections do not run.
    bool maySend(const char *data, size_t size);
    void sendBy(const AsyncCallPointer &call, const Comm::ConnectionPointer &client);

    /// Nothing more will come from the server. Does nothing if the ticket has gone to another holder.
    void finish(const void *holder);

    /// Classes have other numbers.
    /// \param numbers the new ones, by the old
    void renumber(const std::vector<uint32_t> &numbers);

    /// Goes on in the class where the quotas have its user now.
    void reclass();

    /// msfrs_access may put us into another class now; reclass() is to follow. Not while Squid is being reconfigured:
    /// ACLs may have no helpers then.
    void classifyAgain() noexcept;

    /// The scheduler has gone; the transaction goes on without it.
    void release();

    /// Every ReadBatch::CheckEvery.
    void checkBatch() { session_.checkBatch(); }

    /// updates what access.log can say about this transaction
    void report() const noexcept;

private:
    Ticket(HttpRequest *, const AccessLogEntryPointer &, const void *holder);

    static Pointer Make(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &client,
                        const void *holder);
    template <class Job> bool join(const char *what, Job job);
    void leave();
    template <class Question> bool ask(const char *what, Question);
    SBuf overQuota(const RequestConfig &) const;
    void conclude(Verdict::Kind);
    void noteArrival();
    void noteClientReadable();
    void resume();
    void send();

    /* SessionHolder API */
    msfrs_time now() const override { return Gateway::Now(); }
    void granted() override;
    void expired() override;
    void dropped() override;
    void paused(int64_t rest) override;
    std::string host() const override;
    uint64_t id() const override;

    HttpRequestPointer request_;
    AccessLogEntryPointer al_;
    const void *holder_;

    Flow flow_;
    uint32_t cls_ = 0; ///< where quotas have that flow now; an index, as its own class
    ServerReading reading_;           ///< of the server of the latest mayRead()
    Session session_{*this, reading_};
    Gateway::Tickets::iterator place_; ///< among the gateway's; valid while the scheduler knows the session

    AsyncCallback<Verdict> callback_;
    AsyncCallPointer resume_;
    AsyncCallPointer send_;
    ClientWatch::Pointer watch_;      ///< of a client in WAITING, after watch()
    ArrivalWatch clientWords_;        ///< on while send_ waits, until the client says more
};

} // namespace msfrs::squid

#endif /* HAVE_LIBMSFRS */
#endif /* SQUID_SRC_MSFRS_TICKET_H */
