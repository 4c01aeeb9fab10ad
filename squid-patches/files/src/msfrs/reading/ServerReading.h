/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_SERVERREADING_H
#define SQUID_SRC_MSFRS_READING_SERVERREADING_H

#include "comm/Connection.h"
#include "exchange/exchange.h"
#include "msfrs/reading/ArrivalWatch.h"
#include "msfrs/reading/FrozenTimeout.h"
#include "msfrs/reading/LookAhead.h"
#include "msfrs/reading/ReadBatch.h"
#include "msfrs/reading/ReceiveBuffers.h"

#include <algorithm>
#include <cstdint>

namespace msfrs::squid
{

/// What the readings of all servers have in common.
struct ServerReadings {
    void check(const msfrs_time now)
    {
        batches.check(now);
        looks.check(now);
    }
    /// when check() is due
    msfrs_time nextCheck() const { return std::min(batches.nextCheck(), looks.nextCheck()); }

    ReceiveBuffers buffers;
    Checked<ReadBatch> batches;
    Checked<LookAhead> looks;
};

/// How a ticket reads its server. Whether and when, the ticket says; what that means for the server's connection is
/// seen to here:
///
/// - ReceiveBuffers: what the server may have in flight, looked at again as a quantum begins
/// - ReadBatch: between pauses, several segments are read at a time while others wait
/// - ArrivalWatch: during a pause, when all that is still to be read has arrived, if it is known how much that is
/// - LookAhead: during a pause otherwise, what arrives goes on
/// - FrozenTimeout: during a pause, timeouts of the connections do not run
/// - SocketOptions: what the kernel is told and asked for all this
class ServerReading
{
public:
    /// whether what comes from there does not come over the link: from a cache_peer with no-delay
    static bool NearBy(const Comm::Connection &);

    /// This server's connection is going to be read.
    void setServer(const Comm::ConnectionPointer &server) { server_ = server; }

    /// Our turn has come.
    void beginQuantum() { untilFitting_ = 1; }

    /// While it is our turn: whether the server may be read on. If so, its connection is prepared for that; otherwise
    /// the scheduler has given our place to another.
    /// \param rest bytes that are still to be read, negative: unknown
    /// \param complete see RequestScheduler::readMore()
    bool mayGoOn(ServerReadings &, RequestScheduler &, Request &, int64_t rest, bool complete, msfrs_time now);

    /// bytes were read
    void came(int64_t bytes);

    /// whether nothing waits in the kernel to be read
    bool nothingWaits() const { return ArrivalWatch::Arrived(*server_) == 0; }

    /// Our turn is over.
    /// \param rest bytes that are still to be read, negative: unknown
    /// \param note is called when these have arrived, or as much as ever will, if that can be noticed; if it is unknown,
    ///        when mayReadAhead()
    void pause(ServerReadings &, int64_t rest, const ArrivalWatch::Note &note, msfrs_time now);

    /// Whether our turn is over and the server may be read nevertheless.
    bool mayReadAhead() const { return look_.ready(); }

    /// As came(), while mayReadAhead(). Not to be charged: mayGoOn() does that, or who ends us with takeAhead().
    void cameAhead(msfrs_time now) { look_.noteRead(now); }
    int64_t takeAhead() { return look_.take(); }

    /// The pause is over, or nobody wants to know what arrives any more.
    void endPause()
    {
        arrivals_.stop();
        look_.stop();
    }

    /// The connection may be read by others: nothing of ours is left in it.
    void stop()
    {
        batch_.stop();
        look_.stop();
    }

    /// Whether the server has been silent for long enough at `now`.
    /// \param patience see Exchange::silentAt()
    bool silent(const Exchange &, msfrs_time patience, msfrs_time now);

    /// What the connection sees of the path; nothing if there is none.
    PathSample path() const
    {
        return Comm::IsConnOpen(server_) && !NearBy(*server_) ? ReceiveBuffers::Look(*server_) : PathSample();
    }

    /// Neither the server's timeout runs nor the client's.
    /// \param client for tunnels only: a client that gets nothing because of us
    void freeze(const Comm::ConnectionPointer &client);
    /// Both run again, unless the connections are others by now.
    void thaw(const Comm::ConnectionPointer &server, const Comm::ConnectionPointer &client);
    void thaw();

private:
    Comm::ConnectionPointer server_;
    msfrs_time srtt_ = 0;          ///< to the server, when that was last asked; 0: not known
    msfrs_time unreadUntil_ = 0;   ///< when what waits in the kernel is no reason any more not to count as silent
    ReadBatch batch_;              ///< of what is read between pauses
    ArrivalWatch arrivals_;        ///< on during a pause, if the rest is small
    LookAhead look_;               ///< likewise, if it is unknown
    FrozenTimeout serverTimeout_;
    FrozenTimeout clientTimeout_;
    int64_t untilFitting_ = 1;     ///< bytes to read before the window is looked at: the first of a quantum
    int64_t window_ = 0;           ///< what the server may have in flight, bytes; 0: not looked at yet
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_SERVERREADING_H */
