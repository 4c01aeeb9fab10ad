/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_READING_RECEIVEBUFFERS_H
#define SQUID_SRC_MSFRS_READING_RECEIVEBUFFERS_H

#include "comm/forward.h"
#include "msfrs/lib/engine/request_scheduler.h"
#include "msfrs/lib/window/buffer_share.h"

#include <cstdint>

namespace msfrs::squid
{

/// Limits the bytes in flight from servers. While Squid does not read, a server sends until the kernel's receive buffer
/// is full. These bytes are not scheduled, so the buffer has to be small. RequestScheduler decides how small
/// (receiveBuffer()). The limit is set by SO_RCVBUF before connect(), later by the window's bound. The kernel reports
/// the window that a buffer yields, and the RTT.
class ReceiveBuffers
{
public:
    /// The SO_RCVBUF for a future connection to a server, or zero. It has to be set before connect(): the kernel does
    /// not withdraw the first window that it advertises. Segments that do not fit are dropped and resent seconds later.
    int initial(const Comm::Connection &, const RequestScheduler &) const;

    /// Warns if the kernel allows less than a response without competitors should have.
    void check(const RequestScheduler &) const;

    /// Limits the server's bytes in flight to a window.
    void bound(Comm::Connection &, int64_t window) const;

    /// Learns what window the kernel makes of a buffer. \param window the connection's bound, bytes
    void learnShare(const Comm::Connection &, int64_t quantum, int64_t window);

    /// The kernel's figures of the path to the server.
    static PathSample Look(const Comm::Connection &);

    /// PathSample::server
    static uint64_t Key(const Comm::Connection &);

private:
    int option(int64_t window) const;

    BufferShare share_; ///< of connections to servers
    uint32_t quanta_ = 0; ///< that could have been sampled
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_RECEIVEBUFFERS_H */
