/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm.h"
#include "debug/Stream.h"
#include "fde.h"
#include "msfrs/reading/ArrivalWatch.h"
#include "msfrs/reading/LookAhead.h"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>
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

LookAheads::LookAheads():
    arrivals_(epoll_create1(EPOLL_CLOEXEC))
{
    if (arrivals_ < 0)
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
}

LookAheads::~LookAheads()
{
    close(arrivals_);
}

void
LookAheads::note(const int fd) const
{
    struct epoll_event arrival = {};
    arrival.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    arrival.data.fd = fd;
    if (epoll_ctl(arrivals_, EPOLL_CTL_ADD, fd, &arrival) != 0 && errno != EEXIST) {
        const auto savedErrno = errno;
        debugs(97, 3, "cannot note what arrives at FD " << fd << ": " << xstrerr(savedErrno));
    }
}

/// marks those for which data has arrived since the last call
void
LookAheads::poll() const
{
    struct epoll_event arrived[64];
    int some = 0;
    do {
        some = epoll_wait(arrivals_, arrived, 64, 0);
        for (int n = 0; n < some; ++n) {
            const auto look = Looking.find(arrived[n].data.fd);
            if (look != Looking.end()) // else it is not in a pause
                look->second->stir(arrived[n].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
        }
    } while (some == 64);
}

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
    // If it is due soon after, it shares this wake-up: the scheduler needs one as often.
    if (waiting_.empty() || now + LookAhead::CheckEvery / 2 < nextCheck_)
        return;
    nextCheck_ = now + LookAhead::CheckEvery;
    poll();
    for (auto place = waiting_.begin(); place != waiting_.end(); )
        (*place++)->check(now); // which may remove itself
}

void
LookAhead::start(const Comm::ConnectionPointer &conn, LookAheads &all, const int64_t least,
                 const std::function<void()> &note, const msfrs_time now)
{
    stop();
    if (!Comm::IsConnOpen(conn) || fd_table[conn->fd].closing() || fd_table[conn->fd].ssl)
        return;
    conn_ = conn;
    fd_ = conn->fd;
    note_ = note;
    least_ = least;
    all_ = &all;
    Looking[fd_] = this;
    if (std::exchange(noted_, conn->id.value) != conn->id.value)
        all.note(fd_);
    ended_ = false;
    stir(ArrivalWatch::Ended(*conn)); // what has arrived before is not reported
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
    if (news > 0 || ended_) {
        bytes_ = all;
        return static_cast<int>(news);
    }
    errno = EAGAIN;
    return -1;
}

void
LookAhead::noteRead(const int64_t least, const msfrs_time now)
{
    least_ = least;
    ready_ = false;
    if (Comm::IsConnOpen(conn_))
        enlist(now);
}

void
LookAhead::check(const msfrs_time now)
{
    if (!Comm::IsConnOpen(conn_)) {
        forget();
    } else if (ended_ || (std::exchange(stirred_, false) && ArrivalWatch::Arrived(*conn_) >= bytes_ + least_)) {
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
