/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_TICKET_H
#define SQUID_SRC_MSFRS_TICKET_H

#if !USE_MSFRS
#include "msfrs/Absent.h"
#else

#include "base/AsyncCallbacks.h"
#include "base/RefCount.h"
#include "comm/forward.h"
#include "msfrs/Classify.h"
#include "msfrs/ClientWatch.h"
#include "msfrs/Gateway.h"
#include "msfrs/lib/session/session.h"
#include "msfrs/reading/ServerReading.h"
#include "msfrs/Uplink.h"
#include "msfrs/Verdict.h"

#include <vector>

namespace msfrs::squid
{

/// The scheduling of one transaction in Squid: a Session, its connections, and the calls that are pending until it is
/// granted: callback_ until the first turn, resume_ to read the server, send_ to forward buffered client data. The job
/// that forwards the transaction (FwdState or TunnelStateData) holds the ticket; the gateway only refers to it.
class Ticket: public RefCountable, private SessionHolder
{
    MEMPROXY_CLASS(Ticket);

public:
    using Pointer = TicketPointer;

    /// Puts a transaction in the queue.
    /// \param holder the job that forwards it
    /// \param callback called later if the returned ticket is held()
    /// \param server where it will be forwarded to; nil: not known yet
    /// \returns nil if this transaction is not scheduled; with SeveralLinks(), it is not until the server is known
    static Pointer Hold(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &client,
                        const void *holder, const AsyncCallback<Verdict> &callback,
                        const Comm::ConnectionPointer &server = nullptr);

    /// Gets the ticket of a transaction whose forwarding is taken over by another holder. It does not wait again;
    /// if the former holder has already finished it, it is scheduled anew, without a wait.
    /// \returns nil if this transaction is not scheduled
    static Pointer Inherit(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &client,
                           const void *holder, const Comm::ConnectionPointer &server);

    /// \returns the SO_RCVBUF for a future connection to a server; zero: Squid's own setting applies
    static int InitialReceiveBuffer(const Comm::Connection &);

    /// Whether an idle connection may be used for a destination. If a new one would have another local address, the
    /// link of the idle one has failed, or a better one is back.
    static bool MayReuse(const Comm::Connection &idle, HttpRequest *, const Comm::ConnectionPointer &destination);

    ~Ticket() override;

    /// whether the transaction has to wait for the callback that was passed to Hold()
    bool held() const { return session_.held(); }

    /// While held(): notices if the client of a tunnel, or of a connection that is peeked at, leaves.
    void watch(const Comm::ConnectionPointer &client, const CbcPointer<ConnStateData> &);

    /// charges bytes that were read from the server
    /// \param data the bytes, if they are a tunnel's
    void charge(int64_t bytes, const char *data = nullptr);

    /// Whether the server may be read. If not, resumeBy() must be given the call that resumes; timeouts of the
    /// connections are suspended until then.
    /// \param rest bytes still to be read, those in the kernel included; negative: unknown
    /// \param client for tunnels only: the client that receives nothing because of us
    bool mayRead(const Comm::ConnectionPointer &server, int64_t rest, const Comm::ConnectionPointer &client = nullptr);
    void resumeBy(const AsyncCallPointer &call) { resume_ = call; }

    /// Before mayRead() with an unknown rest: at least that many bytes are still to be read.
    void expectAtLeast(int64_t bytes);

    /// Whether data from the client of a tunnel may be forwarded to the server. If not, sendBy() must be given the call
    /// that forwards it. Until then the client must not be read, and timeouts of the connections are suspended.
    /// \param leaves whether a client that closes its half has left: its last bytes need no turn
    bool maySend(const char *data, size_t size);
    void sendBy(const AsyncCallPointer &call, const Comm::ConnectionPointer &client, bool leaves);

    /// The timeouts of a tunnel's connections were set anew: suspends them again if they are to be suspended now.
    void keepFrozen(const Comm::ConnectionPointer &client);

    /// The server sends nothing more. Does nothing if the ticket has passed to another holder.
    void finish(const void *holder);

    /// Class indices have changed.
    /// \param numbers the new ones, by the old
    void renumber(const std::vector<uint32_t> &numbers);

    /// Moves to the class where the quotas place its user now.
    void reclass();

    /// Evaluates msfrs_access again; reclass() is to follow. Not while Squid is being reconfigured: ACLs may have no
    /// helpers then.
    void classifyAgain() noexcept;

    /// Routes have changed: if it still waits for its first turn, and now its server is reached by another link, it
    /// waits there.
    void reroute();

    /// The scheduler is gone; the transaction continues without it.
    void release();

    /// To be called every ReadBatch::CheckEvery.
    void checkBatch() { session_.checkBatch(); }

    /// updates the figures of this transaction for access.log
    void report() const noexcept;

private:
    Ticket(HttpRequest *, const AccessLogEntryPointer &, const void *holder, Uplink &,
           const Comm::ConnectionPointer &server);

    static Pointer Make(HttpRequest *, const AccessLogEntryPointer &, const Comm::ConnectionPointer &client,
                        const void *holder, Comm::ConnectionPointer server);
    template <class Job> bool join(const char *what, Job job);
    Refusal queue();
    void begin(Refusal);
    bool adopt();
    void follow(const Comm::ConnectionPointer &server);
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
    void dropped(Refusal why) override;
    void paused(int64_t rest, int64_t least) override;
    std::string host() const override;
    uint64_t id() const override;

    HttpRequestPointer request_;
    AccessLogEntryPointer al_;
    const void *holder_;
    Uplink *uplink_; ///< whose scheduler knows the session; valid as long as it does
    Comm::ConnectionPointer server_; ///< by which uplink_ was found; nil: there is but one
    msfrs_time since_ = 0; ///< when it was queued

    Flow flow_;
    uint32_t cls_ = 0; ///< the class where quotas place that flow now; an index like flow_.cls
    ServerReading reading_;           ///< of the server of the latest mayRead()
    Session session_{*this, reading_};
    Uplink::Tickets::iterator place_; ///< in the list of uplink_; valid while the scheduler knows the session

    AsyncCallback<Verdict> callback_;
    AsyncCallPointer resume_;
    AsyncCallPointer send_;
    bool leaves_ = false;             ///< see sendBy(); valid while send_ is pending
    ClientWatch::Pointer watch_;      ///< of the client of a held() transaction, after watch()
    ArrivalWatch clientWords_;        ///< on while send_ is pending, until the client sends more
};

} // namespace msfrs::squid

#endif /* USE_MSFRS */
#endif /* SQUID_SRC_MSFRS_TICKET_H */
