/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "base/AsyncCall.h"
#include "comm.h"
#include "comm/Connection.h"
#include "comm/Read.h"
#include "CommCalls.h"
#include "fde.h"
#include "msfrs/reading/ArrivalWatch.h"
#include "msfrs/reading/SocketOptions.h"

#include <climits>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace msfrs::squid
{

namespace
{

class ArrivalDialer: public CallDialer, public CommDialerParamsT<CommIoCbParams>
{
public:
    explicit ArrivalDialer(const ArrivalWatch::Note &note):
        CommDialerParamsT<CommIoCbParams>(CommIoCbParams(nullptr)),
        note_(note)
    {}

    bool canDial(AsyncCall &) { return true; }
    void dial(AsyncCall &)
    {
        if (params.flag != Comm::ERR_CLOSING)
            note_();
    }
    void print(std::ostream &os) const override
    {
        os << '(';
        params.print(os);
        os << ')';
    }

private:
    const ArrivalWatch::Note note_;
};

/// \returns POLLRDHUP if the peer has closed its half, POLLHUP and POLLERR if the connection was reset
int
Poll(const Comm::Connection &conn)
{
    struct pollfd end = {};
    end.fd = conn.fd;
    end.events = POLLRDHUP;
    return poll(&end, 1, 0) > 0 ? end.revents & (POLLRDHUP | POLLHUP | POLLERR) : 0;
}

} // namespace

int64_t
ArrivalWatch::Arrived(const Comm::Connection &conn)
{
    int bytes = 0;
    return ioctl(conn.fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

void
ArrivalWatch::start(const Comm::ConnectionPointer &conn, const int64_t bytes, const Note &note)
{
    stop();
    if (!Comm::IsConnOpen(conn) || fd_table[conn->fd].closing() || Comm::MonitorsRead(conn->fd))
        return;
    // Linux limits the low-water mark to half of the receive buffer, which is twice the size requested. Most paused
    // responses have more than that to come, and need no system calls.
    if (bytes > (conn->rcvbuf > 0 ? conn->rcvbuf : INT_MAX))
        return;
    conn_ = conn;
    bytes_ = bytes;
    SetLowWater(*conn, static_cast<int>(bytes));
    if (LowWater(*conn) < bytes) {
        stop();
        return;
    }
    reader_ = asyncCall(97, 5, "msfrs::ArrivalWatch", ArrivalDialer(note));
    Comm::Read(conn_, reader_);
}

bool
ArrivalWatch::Ended(const Comm::Connection &conn)
{
    return Poll(conn) != 0;
}

bool
ArrivalWatch::ended() const
{
    return !Comm::IsConnOpen(conn_) || Ended(*conn_);
}

bool
ArrivalWatch::broken() const
{
    return !Comm::IsConnOpen(conn_) || (Poll(*conn_) & (POLLHUP | POLLERR));
}

void
ArrivalWatch::goOn(const Note &note)
{
    const auto conn = conn_;
    if (!Comm::IsConnOpen(conn))
        return;
    const auto arrived = Arrived(*conn);
    if (arrived < bytes_ || arrived >= ReceiveBuffer(*conn) / 4)
        stop(); // the kernel has woken us too early, as it does when the buffer is full, or soon would
    else
        start(conn, arrived + 1, note);
}

void
ArrivalWatch::stop()
{
    if (Comm::IsConnOpen(conn_)) {
        if (reader_ && Comm::MonitorsRead(conn_->fd))
            Comm::ReadCancel(conn_->fd, reader_);
        SetLowWater(*conn_, 1);
    }
    if (reader_)
        reader_->cancel("nobody waits for it any more"); // it may be queued already
    reader_ = nullptr;
    conn_ = nullptr;
}

} // namespace msfrs::squid
