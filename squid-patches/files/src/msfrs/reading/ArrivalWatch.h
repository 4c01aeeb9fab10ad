/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H
#define SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H

#include "base/forward.h"
#include "comm/forward.h"

#include <cstdint>
#include <functional>

namespace msfrs::squid
{

/// Watches what the kernel has received on a connection that Squid does not read.
class ArrivalWatch
{
public:
    /// Called once; keeps alive whatever it needs.
    using Note = std::function<void()>;

    /// \returns unread bytes in the kernel's receive buffer
    static int64_t Arrived(const Comm::Connection &);
    /// \returns whether the peer has closed or reset the connection, even if data before that is still unread
    static bool Ended(const Comm::Connection &);

    /// Calls `note` when `bytes` (positive) are unread in the kernel, or the stream has ended. Does nothing if the
    /// receive buffer may be too small for that.
    void start(const Comm::ConnectionPointer &, int64_t bytes, const Note &note);

    /// \returns whether the watched stream has ended, or nothing is watched
    bool ended() const;

    /// \returns whether the watched stream was reset, or nothing is watched
    bool broken() const;

    /// After `note` was called: waits for more than has arrived by now. Gives up if that would take more of the receive
    /// buffer than a request does, since the kernel would then enlarge it.
    void goOn(const Note &);

    /// Ends the watch: others may read the connection again.
    void stop();

private:
    Comm::ConnectionPointer conn_; ///< set between start() and stop() or the event
    AsyncCallPointer reader_;      ///< as conn_
    int64_t bytes_ = 0;            ///< that the kernel waits for; valid as conn_
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_ARRIVALWATCH_H */
