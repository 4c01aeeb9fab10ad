/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm/Connection.h"
#include "debug/Messages.h"
#include "debug/Stream.h"
#include "fde.h"
#include "msfrs/reading/ReceiveBuffers.h"
#include "msfrs/reading/SocketOptions.h"
#include "SquidConfig.h"

#include <algorithm>
#include <climits>
#include <fstream>
#include <functional>
#include <string_view>

namespace msfrs::squid
{

namespace
{

constexpr uint32_t SampleFirst = 64, SampleEvery = 16; ///< quanta; a sample takes two system calls

} // namespace

/// \returns the SO_RCVBUF for a window of that many bytes; Linux doubles it
int
ReceiveBuffers::option(const int64_t window) const
{
    return static_cast<int>(std::min<int64_t>(share_.bufferFor(window) / 2, INT_MAX / 2));
}

int
ReceiveBuffers::initial(const Comm::Connection &conn, const RequestScheduler &scheduler) const
{
    const auto base = scheduler.baseRoundTrip(Key(conn));
    const auto size = option(scheduler.receiveBufferShare(base));
    return (Config.tcpRcvBufsz == 0 || Config.tcpRcvBufsz > static_cast<size_t>(size)) ? size : 0;
}

void
ReceiveBuffers::check(const RequestScheduler &scheduler) const
{
    const auto wanted = option(scheduler.receiveBuffer());
    std::ifstream file("/proc/sys/net/core/rmem_max");
    int64_t most = 0;
    if (file >> most && most < wanted)
        debugs(97, DBG_IMPORTANT, "WARNING: msfrs: a single response from afar can fill the link only if the sysctl "
               "net.core.rmem_max is at least " << wanted << "; it is " << most);
}

void
ReceiveBuffers::bound(Comm::Connection &conn, const int64_t window) const
{
    const auto size = option(window);
    if (size > conn.rcvbuf) { // a smaller one might drop bytes in flight
        conn.rcvbuf = size;
        SetReceiveBuffer(conn, size);
    }
    SetWindowClamp(conn, static_cast<int>(window));
}

uint64_t
ReceiveBuffers::Key(const Comm::Connection &conn)
{
    struct in6_addr bytes;
    conn.remote.getInAddr(bytes);
    return std::hash<std::string_view>()({reinterpret_cast<const char *>(&bytes), sizeof(bytes)});
}

PathSample
ReceiveBuffers::Look(const Comm::Connection &conn)
{
    PathSample sample;
    const auto path = Path(conn);
    sample.server = Key(conn);
    sample.rtt = path.latest;
    sample.least = path.least;
    sample.age = path.age;
    sample.packets = path.packets;
    sample.outOfOrder = path.outOfOrder;
    sample.counted = path.counted;
    return sample;
}

void
ReceiveBuffers::learnShare(const Comm::Connection &conn, const int64_t quantum, const int64_t window)
{
    if (fd_table[conn.fd].bytes_read <= quantum)
        return; // the kernel only guesses until some packets have arrived
    if (++quanta_ >= SampleFirst && quanta_ % SampleEvery != 0)
        return;
    const auto offered = Path(conn).window;
    if (offered < window) // else it is our bound
        share_.seen(offered, ReceiveBuffer(conn));
}

} // namespace msfrs::squid
