/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H
#define SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H

#include "base/forward.h"
#include "comm/forward.h"
#include "msfrs/forward.h"

#include <cstdint>

namespace Msfrs
{

/// What the kernel has received on a connection that nobody reads.
class ArrivalWatch
{
public:
    /// \returns bytes that wait in the kernel to be read
    static int64_t Arrived(const Comm::Connection &);

    /// Calls the ticket's method when `bytes` (positive) or the end of the stream wait in the kernel. Does nothing if
    /// its receive buffer may be too small for that.
    void start(const Comm::ConnectionPointer &, int64_t bytes, Ticket &, void (Ticket::*note)());

    /// \returns whether there is anything to read on the connection before its end
    bool peek() const;

    /// The connection may be read by others again.
    void stop();

private:
    Comm::ConnectionPointer conn_; ///< set between start() and stop() or the event
    AsyncCallPointer reader_;      ///< as conn_
};

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H */
