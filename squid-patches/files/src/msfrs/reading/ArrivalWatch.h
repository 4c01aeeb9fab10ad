/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H
#define SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H

#include "base/forward.h"
#include "comm/forward.h"

#include <cstdint>
#include <functional>

namespace msfrs::squid
{

/// What the kernel has received on a connection that nobody reads.
class ArrivalWatch
{
public:
    /// What to do about the news, once; whatever it needs lives as long as it does.
    using Note = std::function<void()>;

    /// \returns bytes that wait in the kernel to be read
    static int64_t Arrived(const Comm::Connection &);
    /// \returns whether the other side has ended or reset the connection, be it behind words that still wait
    static bool Ended(const Comm::Connection &);

    /// Calls `note` when `bytes` (positive) or the end of the stream wait in the kernel. Does nothing if its receive
    /// buffer may be too small for that.
    void start(const Comm::ConnectionPointer &, int64_t bytes, const Note &note);

    /// \returns whether the stream that is waited for has ended, or nobody waits
    bool ended() const;

    /// After the call: waits for more than has arrived by now. Gives up if that would take more of the receive buffer
    /// than a request does, since the kernel would then make it larger.
    void goOn(const Note &);

    /// The connection may be read by others again.
    void stop();

private:
    Comm::ConnectionPointer conn_; ///< set between start() and stop() or the event
    AsyncCallPointer reader_;      ///< as conn_
    int64_t bytes_ = 0;            ///< that the kernel waits for, while conn_
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H */
