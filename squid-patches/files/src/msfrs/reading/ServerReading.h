/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_SERVERREADING_H
#define SQUID_SRC_MSFRS_READING_SERVERREADING_H

#include "comm/Connection.h"
#include "msfrs/reading/ArrivalWatch.h"
#include "msfrs/reading/FrozenTimeout.h"
#include "msfrs/reading/LookAhead.h"
#include "msfrs/reading/ReceiveBuffers.h"
#include "session/server_connection.h"

#include <cstdint>

namespace msfrs::squid
{

/// What the readings of all servers have in common.
struct ServerReadings {
    ReceiveBuffers buffers;
    LookAheads looks;
};

/// How a ticket reads its server. Whether and when, the session says; what that means for the server's connection is
/// seen to here:
///
/// - ReceiveBuffers: what the server may have in flight
/// - ArrivalWatch: during a pause, when all that is still to be read has arrived, if it is known how much that is
/// - LookAhead: during a pause otherwise, what arrives goes on
/// - FrozenTimeout: during a pause, timeouts of the connections do not run
/// - SocketOptions: what the kernel is told and asked for all this
class ServerReading: public ServerConnection
{
public:
    /// \param all is used as long as the scheduler knows the session
    explicit ServerReading(ServerReadings &all);
    ~ServerReading() override;

    /// whether what comes from there does not come over the link: from a cache_peer with no-delay
    static bool NearBy(const Comm::Connection &);

    /// This server's connection is going to be read.
    void setServer(const Comm::ConnectionPointer &server) { server_ = server; }

    /// A pause begins.
    /// \param rest bytes that are still to be read, negative: unknown
    /// \param note is called when these have arrived, or as much as ever will, if that can be noticed; if it is unknown,
    ///        when readsAhead()
    void pause(int64_t rest, const ArrivalWatch::Note &note, msfrs_time now);

    /// The pause is over, or nobody wants to know what arrives any more.
    void endPause();

    /// Neither the server's timeout runs nor the client's.
    /// \param client for tunnels only: a client that gets nothing because of us
    void freeze(const Comm::ConnectionPointer &client);
    /// Both run again, unless the connections are others by now.
    void thaw(const Comm::ConnectionPointer &server, const Comm::ConnectionPointer &client);
    void thaw();

    /* ServerConnection API */
    bool open() const override { return Comm::IsConnOpen(server_); }
    bool plain() const override;
    int64_t unread() const override { return ArrivalWatch::Arrived(*server_); }
    PathSample path(msfrs_time) const override;
    uint64_t key() const override { return ReceiveBuffers::Key(*server_); }
    msfrs_time roundTrip() const override;
    int64_t segment() const override;
    int64_t bufferedWindow(int64_t bound, int64_t quantum) override;
    void setWindow(const int64_t bytes) override { all_.buffers.bound(*server_, bytes); }
    void setLowWater(int64_t bytes) override;
    bool readsAhead() const override { return look_.ready(); }
    void cameAhead(int64_t, const msfrs_time now) override { look_.noteRead(now); }
    int64_t takeAhead() override;

private:
    ServerReadings &all_;
    Comm::ConnectionPointer server_;
    Comm::ConnectionPointer batched_; ///< set while the kernel waits for more than a byte of it
    ArrivalWatch arrivals_;        ///< on during a pause, if the rest is small
    LookAhead look_;               ///< likewise, if it is unknown
    FrozenTimeout serverTimeout_;
    FrozenTimeout clientTimeout_;
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_SERVERREADING_H */
