/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_LOOKAHEAD_H
#define SQUID_SRC_MSFRS_READING_LOOKAHEAD_H

#include "comm/Connection.h"
#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <utility>

namespace msfrs::squid
{

class LookAhead;

/// Those of a process that wait for data, looked at by one timer.
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
    /// ns, the longest delay of a segment. Twice as long: a page over 20 pauses comes up to half a second later; half as
    /// long: twice the system calls.
    static constexpr msfrs_time CheckEvery = 25'000'000;

    LookAhead() = default;
    LookAhead(const LookAhead &) = delete;
    LookAhead &operator=(const LookAhead &) = delete;
    ~LookAhead() { stop(); }

    /// A pause begins. Does nothing for what TLS has yet to decode.
    /// \param note is called when there is something to read, once before each noteRead()
    void start(const Comm::ConnectionPointer &, LookAheads &, const std::function<void()> &note, msfrs_time now);

    /// whether the connection may be read: data has arrived that was not read in this pause; only between start() and
    /// stop()
    bool ready() const { return ready_; }

    /// While ready(): what was read is not to be charged yet.
    void noteRead(msfrs_time now);

    /// The pause is over: what was read leaves the kernel.
    void stop();

    /// \returns bytes that were read in pauses which are over, each only once
    int64_t take() { return std::exchange(taken_, 0); }

    void check(msfrs_time now);

private:
    static int Read(int fd, char *buf, int size);
    int read(char *buf, int size);
    void enlist(msfrs_time now);
    void forget();

    Comm::ConnectionPointer conn_; ///< set during a pause
    int fd_ = -1;                  ///< its descriptor, also when it is closed; valid as conn_
    std::function<void()> note_;   ///< valid as conn_
    int64_t bytes_ = 0;            ///< that were read in this pause
    int64_t taken_ = 0;            ///< see take()
    bool ready_ = false;
    bool listed_ = false;          ///< somebody looks
    LookAheads *all_ = nullptr; ///< valid as conn_
    LookAheads::Place place_; ///< valid while listed_
    msfrs_time latest_ = 0;        ///< when there was something to read; valid as conn_
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_LOOKAHEAD_H */
