// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The connection to a server as a session sees it: what its kernel knows and is told. Squid has sockets behind it,
/// the simulator of the access link a model.
#ifndef MSFRS_SESSION_SERVER_CONNECTION_H
#define MSFRS_SESSION_SERVER_CONNECTION_H

#include "engine/request_scheduler.h"

#include <cstdint>

namespace msfrs {

class ServerConnection {
public:
    virtual ~ServerConnection() = default;

    virtual bool open() const = 0;
    /// Whether the kernel counts the bytes that are read; false where TLS has yet to decode them.
    virtual bool plain() const { return true; }
    /// Bytes that wait in the kernel to be read; only while open().
    virtual int64_t unread() const = 0;
    /// What it sees of the path; nothing unless open().
    virtual PathSample path(msfrs_time now) const = 0;
    /// Key of the server's address, as PathSample::server; only while open().
    virtual uint64_t key() const = 0;
    /// ns, smoothed; 0: not known. Only while open().
    virtual msfrs_time roundTrip() const = 0;
    /// Bytes of a full segment; only while open().
    virtual int64_t segment() const = 0;

    /// Looks at the receive buffer, once a quantum. \param bound the window that setWindow() set, bytes; 0: none yet
    /// \returns the window for which the buffer is large enough, bytes; 0: its size is not ours to choose
    virtual int64_t bufferedWindow(int64_t bound, int64_t quantum) = 0;
    /// The server may have so many bytes in flight.
    virtual void setWindow(int64_t bytes) = 0;
    /// It is readable when so many bytes have arrived, or the end of the stream; 1 in the beginning.
    virtual void setLowWater(int64_t bytes) = 0;

    /// In a pause: whether it may be read nevertheless. What is read then stays in the kernel, so that the receive
    /// window does not open.
    virtual bool readsAhead() const = 0;
    /// Bytes were read while readsAhead().
    virtual void cameAhead(int64_t bytes, msfrs_time now) = 0;
    /// What was read ahead leaves the kernel. \returns its bytes, each only once
    virtual int64_t takeAhead() = 0;
};

} // namespace msfrs

#endif
