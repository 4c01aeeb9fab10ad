/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_RECEIVEBUFFERS_H
#define SQUID_SRC_MSFRS_READING_RECEIVEBUFFERS_H

#include "comm/forward.h"
#include "engine/request_scheduler.h"
#include "window/buffer_share.h"

#include <cstdint>

namespace msfrs::squid
{

/// What servers may have on their way to us. While we do not read, what a server sends goes on until the kernel's
/// receive buffer is full, and nobody has scheduled that: the buffer has to be small. How small, RequestScheduler says
/// (receiveBuffer()); we tell the kernel, by SO_RCVBUF before connect() and by the window's bound later, and learn from
/// it what it makes of a buffer, and how long round trips are.
class ReceiveBuffers
{
public:
    /// The SO_RCVBUF for a future connection to a server, or zero. It has to be set before connect(): the first window
    /// that the kernel announces is not taken back, and what does not fit then is dropped and comes after seconds.
    int initial(const Comm::Connection &, const RequestScheduler &) const;

    /// Warns if the kernel gives less than what a response that is alone should have.
    void check(const RequestScheduler &) const;

    /// The server may have so many bytes in flight.
    void bound(Comm::Connection &, int64_t window) const;

    /// Learns what the kernel makes of a buffer. \param window what the connection is bounded to, bytes
    void learnShare(const Comm::Connection &, int64_t quantum, int64_t window);

    /// What a connection sees of the path.
    static PathSample Look(const Comm::Connection &);

    /// PathSample::server
    static uint64_t Key(const Comm::Connection &);

private:
    int option(int64_t window) const;

    BufferShare share_; ///< of connections to servers
    uint32_t quanta_ = 0; ///< that learnt of the share
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_RECEIVEBUFFERS_H */
