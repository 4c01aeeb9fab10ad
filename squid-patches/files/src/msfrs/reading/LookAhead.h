/* SPDX-License-Identifier: GPL-2.0-or-later */

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

/// The LookAheads of a process that wait for data, polled by one timer and, however many they are, one system call.
class LookAheads
{
public:
    using Place = std::list<LookAhead *>::iterator;

    /// \throws std::system_error if the kernel has no descriptor left
    LookAheads();
    LookAheads(const LookAheads &) = delete;
    LookAheads &operator=(const LookAheads &) = delete;
    ~LookAheads();

    /// Has the kernel note, until the descriptor is closed, what arrives on it.
    void note(int fd) const;

    Place enlist(LookAhead &, msfrs_time now);
    void forget(const Place place) { waiting_.erase(place); }
    void check(msfrs_time now);
    /// when check() is due
    msfrs_time nextCheck() const { return waiting_.empty() ? std::numeric_limits<msfrs_time>::max() : nextCheck_; }

private:
    void poll() const;

    std::list<LookAhead *> waiting_;
    msfrs_time nextCheck_ = 0; ///< valid while there are any
    int arrivals_; ///< an epoll instance, edge-triggered: unread data would make a level-triggered one report each time
};

/// Reads a paused response. Bytes that were in flight when the pause began cross the link anyway, so they are forwarded
/// as they arrive. They stay in the kernel (MSG_PEEK) until the next turn begins, which keeps the receive window shut.
/// A timer polls for new data, so that the segments of 25 ms share a wake-up.
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
    /// \param least bytes that are worth reading: as many as the client can use, positive
    /// \param note called when so many are unread, or the stream has ended, once before each noteRead()
    void start(const Comm::ConnectionPointer &, LookAheads &, int64_t least, const std::function<void()> &note,
               msfrs_time now);

    /// whether the connection may be read: data has arrived that was not read in this pause; only between start() and
    /// stop()
    bool ready() const { return ready_; }

    /// While ready(): data was read that is not to be charged yet. \param least as in start(), of what is to come
    void noteRead(int64_t least, msfrs_time now);

    /// Ends the pause: the bytes read in it leave the kernel.
    void stop();

    /// \returns bytes read in completed pauses since the last call
    int64_t take() { return std::exchange(taken_, 0); }

    void check(msfrs_time now);

    /// Data may have arrived since the last check(). \param ended whether the stream has ended
    void stir(const bool ended)
    {
        stirred_ = true;
        ended_ = ended_ || ended;
    }

private:
    static int Read(int fd, char *buf, int size);
    int read(char *buf, int size);
    void enlist(msfrs_time now);
    void forget();

    Comm::ConnectionPointer conn_; ///< set during a pause
    int fd_ = -1;                  ///< its descriptor, even after it is closed; valid as conn_
    uint64_t noted_ = 0;           ///< the connection that LookAheads::note() was called for, by id
    std::function<void()> note_;   ///< valid as conn_
    int64_t bytes_ = 0;            ///< read in this pause
    int64_t least_ = 1;            ///< see start(); valid as conn_
    int64_t taken_ = 0;            ///< see take()
    bool ready_ = false;
    bool stirred_ = false;         ///< see stir()
    bool ended_ = false;           ///< likewise; valid as conn_
    bool listed_ = false;          ///< all_ polls it
    LookAheads *all_ = nullptr; ///< valid as conn_
    LookAheads::Place place_; ///< valid while listed_
    msfrs_time latest_ = 0;        ///< when the pause began, or data was last read; valid as conn_
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_LOOKAHEAD_H */
