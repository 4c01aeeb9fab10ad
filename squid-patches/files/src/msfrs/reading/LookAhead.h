/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_LOOKAHEAD_H
#define SQUID_SRC_MSFRS_READING_LOOKAHEAD_H

#include "comm/Connection.h"
#include "msfrs/lib/plugin/msfrs_plugin.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <utility>

namespace msfrs::squid
{

class LookAhead;

/// The LookAheads of a process that wait for data, polled by one timer.
class LookAheads
{
public:
    using Place = std::list<LookAhead *>::iterator;

    Place enlist(LookAhead &, msfrs_time now);
    void forget(const Place place) { waiting_.erase(place); }
    void check(msfrs_time now);
    /// when check() is due
    msfrs_time nextCheck() const { return waiting_.empty() ? std::numeric_limits<msfrs_time>::max() : nextCheck_; }

private:
    std::list<LookAhead *> waiting_;
    msfrs_time nextCheck_ = 0; ///< valid while there are any
};

/// Reads a paused response. Bytes that were in flight when the pause began cross the link anyway, so they are forwarded
/// as they arrive. They stay in the kernel (MSG_PEEK) until the next turn begins, which keeps the receive window shut.
/// A timer polls for new data, because the kernel ignores SO_RCVLOWAT while a window is nearly shut.
class LookAhead
{
public:
    /// ns, the longest delay of a segment. Twice as long: a page over 20 pauses arrives up to half a second later. Half
    /// as long: twice the system calls.
    static constexpr msfrs_time CheckEvery = 25'000'000;

    LookAhead() = default;
    LookAhead(const LookAhead &) = delete;
    LookAhead &operator=(const LookAhead &) = delete;
    ~LookAhead() { stop(); }

    /// Begins a pause. Does nothing if Squid decrypts the TLS of the connection.
    /// \param note called when there is data to read, once before each noteRead()
    void start(const Comm::ConnectionPointer &, LookAheads &, const std::function<void()> &note, msfrs_time now);

    /// whether the connection may be read: data has arrived that was not read in this pause; only between start() and
    /// stop()
    bool ready() const { return ready_; }

    /// While ready(): data was read that is not to be charged yet.
    void noteRead(msfrs_time now);

    /// Ends the pause: the bytes read in it leave the kernel.
    void stop();

    /// \returns bytes read in completed pauses since the last call
    int64_t take() { return std::exchange(taken_, 0); }

    void check(msfrs_time now);

private:
    static int Read(int fd, char *buf, int size);
    int read(char *buf, int size);
    void enlist(msfrs_time now);
    void forget();

    Comm::ConnectionPointer conn_; ///< set during a pause
    int fd_ = -1;                  ///< its descriptor, even after it is closed; valid as conn_
    std::function<void()> note_;   ///< valid as conn_
    int64_t bytes_ = 0;            ///< read in this pause
    int64_t taken_ = 0;            ///< see take()
    bool ready_ = false;
    bool listed_ = false;          ///< all_ polls it
    LookAheads *all_ = nullptr; ///< valid as conn_
    LookAheads::Place place_; ///< valid while listed_
    msfrs_time latest_ = 0;        ///< when the pause began, or data was last read; valid as conn_
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_LOOKAHEAD_H */
