/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm.h"
#include "fde.h"
#include "msfrs/reading/ArrivalWatch.h"
#include "msfrs/reading/LookAhead.h"

#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace msfrs::squid
{

namespace
{

/// ns. Bytes in flight when the pause began have arrived by then, or are lost and will be resent in the next turn.
constexpr msfrs_time LookFor = 1'000'000'000;

/// Keyed by descriptor, the only context that Squid passes to a read method.
std::unordered_map<int, LookAhead *> Looking;

int
Write(const int fd, const char * const buf, const int size)
{
    return static_cast<int>(write(fd, buf, size));
}

} // namespace

LookAheads::Place
LookAheads::enlist(LookAhead &look, const msfrs_time now)
{
    if (waiting_.empty())
        nextCheck_ = now + LookAhead::CheckEvery;
    return waiting_.insert(waiting_.end(), &look);
}

void
LookAheads::check(const msfrs_time now)
{
    if (now < nextCheck())
        return;
    nextCheck_ = now + LookAhead::CheckEvery;
    for (auto place = waiting_.begin(); place != waiting_.end(); )
        (*place++)->check(now); // which may remove itself
}

void
LookAhead::start(const Comm::ConnectionPointer &conn, LookAheads &all, const std::function<void()> &note,
                 const msfrs_time now)
{
    stop();
    if (!Comm::IsConnOpen(conn) || fd_table[conn->fd].closing() || fd_table[conn->fd].ssl)
        return;
    conn_ = conn;
    fd_ = conn->fd;
    note_ = note;
    all_ = &all;
    Looking[fd_] = this;
    fd_table[fd_].useBufferedIo(&LookAhead::Read, &Write);
    enlist(now);
}

int
LookAhead::Read(const int fd, char * const buf, const int size)
{
    return Looking.at(fd)->read(buf, size);
}

/// reads the bytes after those already read in this pause
int
LookAhead::read(char * const buf, const int size)
{
    static std::vector<char> had;
    had.resize(bytes_);
    struct iovec parts[] = {{had.data(), had.size()}, {buf, static_cast<size_t>(size)}};
    struct msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const auto all = recvmsg(fd_, &message, MSG_PEEK | MSG_DONTWAIT);
    if (all < 0)
        return -1;
    const auto news = all - bytes_;
    if (news > 0 || ArrivalWatch::Ended(*conn_)) {
        bytes_ = all;
        return static_cast<int>(news);
    }
    errno = EAGAIN;
    return -1;
}

void
LookAhead::noteRead(const msfrs_time now)
{
    ready_ = false;
    if (Comm::IsConnOpen(conn_))
        enlist(now);
}

void
LookAhead::check(const msfrs_time now)
{
    if (!Comm::IsConnOpen(conn_)) {
        forget();
    } else if (ArrivalWatch::Arrived(*conn_) > bytes_ || ArrivalWatch::Ended(*conn_)) {
        forget();
        ready_ = true;
        note_();
    } else if (now - latest_ > LookFor) {
        forget();
    }
}

void
LookAhead::stop()
{
    forget();
    ready_ = false;
    if (!conn_)
        return;
    const auto looking = Looking.find(fd_);
    const auto ours = looking != Looking.end() && looking->second == this; // else the descriptor has been reused
    if (ours)
        Looking.erase(looking);
    if (ours && Comm::IsConnOpen(conn_) && !fd_table[fd_].closing()) {
        fd_table[fd_].useDefaultIo();
        for (auto rest = bytes_; rest > 0; ) {
            const auto gone = recv(fd_, nullptr, rest, MSG_TRUNC | MSG_DONTWAIT);
            if (gone <= 0)
                break; // reset
            rest -= gone;
        }
    }
    conn_ = nullptr;
    note_ = nullptr;
    taken_ += std::exchange(bytes_, 0);
}

void
LookAhead::enlist(const msfrs_time now)
{
    latest_ = now;
    if (!listed_)
        place_ = all_->enlist(*this, now);
    listed_ = true;
}

void
LookAhead::forget()
{
    if (listed_)
        all_->forget(place_);
    listed_ = false;
}

} // namespace msfrs::squid
