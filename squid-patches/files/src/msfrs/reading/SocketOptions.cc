/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "msfrs/reading/SocketOptions.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/socket.h>

namespace msfrs::squid
{

static void
Set(const Comm::Connection &conn, const int level, const int option, const char * const name, const int value)
{
    if (setsockopt(conn.fd, level, option, &value, sizeof(value)) != 0) {
        const auto savedErrno = errno;
        debugs(97, 3, "cannot set " << name << " of " << conn << ": " << xstrerr(savedErrno));
    }
}

void
SetLowWater(const Comm::Connection &conn, const int bytes)
{
    Set(conn, SOL_SOCKET, SO_RCVLOWAT, "SO_RCVLOWAT", bytes);
}

static int
Get(const Comm::Connection &conn, const int option)
{
    int value = 0;
    socklen_t length = sizeof(value);
    return getsockopt(conn.fd, SOL_SOCKET, option, &value, &length) == 0 ? value : 0;
}

int
LowWater(const Comm::Connection &conn)
{
    return Get(conn, SO_RCVLOWAT);
}

int
ReceiveBuffer(const Comm::Connection &conn)
{
    return Get(conn, SO_RCVBUF);
}

PathInfo
Path(const Comm::Connection &conn)
{
    PathInfo path;
#if defined(TCP_INFO)
    struct tcp_info info = {};
    socklen_t length = sizeof(info);
    if (getsockopt(conn.fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return path;
    constexpr int64_t Us = 1000; // ns
    constexpr uint32_t StaleMs = 1000;
    path.window = info.tcpi_rcv_ssthresh;
    // Not tcpi_rcv_mss, which reflects recent segments: it is too small until a full segment has arrived, and never
    // above a window that is too small. A server sends at most the MSS that we announced, and at most the MSS of its
    // own interface, which it announced. Of the latter we use (tcpi_snd_mss) half of its largest window at most.
    path.segment = std::min<int64_t>(info.tcpi_advmss, int64_t(2) * info.tcpi_snd_mss);
    path.srtt = info.tcpi_rtt * Us;
    // An RTT of what we sent long ago is out of date: in a download that is its request.
    const auto stale = info.tcpi_last_data_sent > StaleMs;
    path.latest = (info.tcpi_rcv_rtt == 0 ? info.tcpi_rtt
                   : stale                ? info.tcpi_rcv_rtt
                                          : std::min(info.tcpi_rcv_rtt, info.tcpi_rtt)) * Us;
    // a kernel older than the field returns a shorter length
    const auto known = length >= offsetof(tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt);
    path.age = int64_t(info.tcpi_last_data_recv) * 1000 * Us;
    path.counted = length >= offsetof(tcp_info, tcpi_rcv_ooopack) + sizeof(info.tcpi_rcv_ooopack);
    path.packets = path.counted ? info.tcpi_segs_in : 0;
    path.outOfOrder = path.counted ? info.tcpi_rcv_ooopack : 0;
    path.least = (known && info.tcpi_min_rtt > 0) ? std::min(info.tcpi_min_rtt, info.tcpi_rtt) * Us : path.srtt;
#endif
    return path;
}

void
SetReceiveBuffer(const Comm::Connection &conn, const int bytes)
{
    Set(conn, SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF", bytes);
}

void
SetWindowClamp(const Comm::Connection &conn, const int bytes)
{
#if defined(TCP_WINDOW_CLAMP)
    Set(conn, IPPROTO_TCP, TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP", bytes);
#else
    (void)conn;
    (void)bytes;
#endif
}

} // namespace msfrs::squid
