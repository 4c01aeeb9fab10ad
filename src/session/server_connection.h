// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The connection to a server as a session sees it: what its kernel reports, and the options that a session sets. Squid
/// implements it by sockets, the simulator of the access link by a model.
#pragma once

#include "engine/request_scheduler.h"

#include <cstdint>

namespace msfrs {

class ServerConnection {
public:
    virtual ~ServerConnection() = default;

    virtual bool open() const = 0;
    /// Whether the kernel's byte counts are those of the reads; false where TLS has yet to decode them.
    virtual bool plain() const { return true; }
    /// Unread bytes in the kernel; only while open().
    virtual int64_t unread() const = 0;
    /// Samples the path; empty unless open().
    virtual PathSample path(msfrs_time now) const = 0;
    /// Key of the server's address, as in PathSample::server; only while open().
    virtual uint64_t key() const = 0;
    /// Smoothed RTT, ns; 0: unknown. Only while open().
    virtual msfrs_time roundTrip() const = 0;
    /// Bytes of a full segment; only while open().
    virtual int64_t segment() const = 0;

    /// Checks the receive buffer, once a quantum. \param bound the window that setWindow() set, bytes; 0: none yet
    /// \returns the window for which the buffer is large enough, bytes; 0: we cannot choose its size
    virtual int64_t bufferedWindow(int64_t bound, int64_t quantum) = 0;
    /// Limits the bytes that the server may have in flight.
    virtual void setWindow(int64_t bytes) = 0;
    /// Sets how many bytes, or the end of the stream, must have arrived to make it readable; initially 1.
    virtual void setLowWater(int64_t bytes) = 0;

    /// Whether it may be read even in a pause. Bytes then stay in the kernel, so that the receive window does not open.
    virtual bool readsAhead() const = 0;
    /// Bytes were read while readsAhead(). \param least bytes of which the client can use something: it need not be
    /// readable before as many have arrived; positive
    virtual void cameAhead(int64_t bytes, int64_t least, msfrs_time now) = 0;
    /// Removes from the kernel what was read ahead. \returns its bytes, each only once
    virtual int64_t takeAhead() = 0;
};

} // namespace msfrs
