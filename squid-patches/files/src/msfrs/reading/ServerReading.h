/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_READING_SERVERREADING_H
#define SQUID_SRC_MSFRS_READING_SERVERREADING_H

#include "comm/Connection.h"
#include "msfrs/lib/session/server_connection.h"
#include "msfrs/reading/ArrivalWatch.h"
#include "msfrs/reading/FrozenTimeout.h"
#include "msfrs/reading/LookAhead.h"
#include "msfrs/reading/ReceiveBuffers.h"

#include <cstdint>

namespace msfrs::squid
{

/// Shared by the readings of all servers.
struct ServerReadings {
    ReceiveBuffers buffers;
    LookAheads looks;
};

/// Reads the server of a ticket. The session decides whether and when; this class carries that out on the connection:
///
/// - ReceiveBuffers: limits the server's bytes in flight
/// - ArrivalWatch: during a pause, notices when the rest of a response of known size has arrived
/// - LookAhead: during a pause of any other response, forwards data as it arrives
/// - FrozenTimeout: during a pause, suspends the timeouts of the connections
/// - SocketOptions: the system calls for all this
class ServerReading: public ServerConnection
{
public:
    /// \param all is used as long as the scheduler knows the session
    explicit ServerReading(ServerReadings &all);
    ~ServerReading() override;

    /// whether responses of this server do not cross the link: it is a cache_peer with no-delay
    static bool NearBy(const Comm::Connection &);

    /// Sets the connection that will be read.
    void setServer(const Comm::ConnectionPointer &server) { server_ = server; }

    /// Begins a pause.
    /// \param rest bytes still to be read; negative: unknown
    /// \param least with an unknown rest: bytes that are worth reading ahead, positive
    /// \param note called when these have arrived, or the stream has ended, if that can be noticed; with an unknown
    ///        rest, when readsAhead()
    void pause(int64_t rest, int64_t least, const ArrivalWatch::Note &note, msfrs_time now);

    /// Ends the pause, or just the watch for arrivals.
    void endPause();

    /// Suspends the timeouts of server and client.
    /// \param client for tunnels only: the client that receives nothing during the pause
    void freeze(const Comm::ConnectionPointer &client);
    /// Resumes both, unless the connections have been replaced.
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
    void cameAhead(int64_t, const int64_t least, const msfrs_time now) override { look_.noteRead(least, now); }
    int64_t takeAhead() override;

private:
    ServerReadings &all_;
    Comm::ConnectionPointer server_;
    Comm::ConnectionPointer batched_; ///< set while its low-water mark is above one byte
    ArrivalWatch arrivals_;        ///< on during a pause, if the rest is small
    LookAhead look_;               ///< likewise, if it is unknown
    FrozenTimeout serverTimeout_;
    FrozenTimeout clientTimeout_;
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_SERVERREADING_H */
