/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "base/AsyncCall.h"
#include "CachePeer.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "fde.h"
#include "msfrs/reading/ServerReading.h"
#include "msfrs/reading/SocketOptions.h"

namespace msfrs::squid
{

ServerReading::ServerReading(ServerReadings &all): all_(all) {}

ServerReading::~ServerReading() = default;

bool
ServerReading::NearBy(const Comm::Connection &conn)
{
#if USE_DELAY_POOLS
    const auto peer = conn.getPeer();
    return peer && peer->options.no_delay;
#else
    (void)conn;
    return false;
#endif
}

bool
ServerReading::plain() const
{
    return open() && !fd_table[server_->fd].closing() && !fd_table[server_->fd].ssl;
}

PathSample
ServerReading::path(msfrs_time) const
{
    return open() && !NearBy(*server_) ? ReceiveBuffers::Look(*server_) : PathSample();
}

msfrs_time
ServerReading::roundTrip() const
{
    return Path(*server_).srtt;
}

int64_t
ServerReading::segment() const
{
    return Path(*server_).segment;
}

int64_t
ServerReading::bufferedWindow(const int64_t bound, const int64_t quantum)
{
    if (!open() || server_->rcvbuf <= 0)
        return 0;
    all_.buffers.learnShare(*server_, quantum, bound);
    return server_->rcvbuf;
}

void
ServerReading::setLowWater(const int64_t bytes)
{
    const auto conn = batched_ ? batched_ : server_;
    batched_ = bytes > 1 ? conn : nullptr;
    if (Comm::IsConnOpen(conn))
        SetLowWater(*conn, static_cast<int>(bytes));
}

int64_t
ServerReading::takeAhead()
{
    look_.stop();
    return look_.take();
}

void
ServerReading::pause(const int64_t rest, const int64_t least, const ArrivalWatch::Note &note, const msfrs_time now)
{
    debugs(97, 5, "pause " << server_);
    if (rest > 0)
        arrivals_.start(server_, rest, note);
    else if (rest < 0)
        look_.start(server_, all_.looks, least, note, now);
}

void
ServerReading::endPause()
{
    arrivals_.stop();
    look_.stop();
}

void
ServerReading::freeze(const Comm::ConnectionPointer &client)
{
    serverTimeout_.freeze(server_);
    clientTimeout_.freeze(client);
}

void
ServerReading::thaw(const Comm::ConnectionPointer &server, const Comm::ConnectionPointer &client)
{
    serverTimeout_.thaw(server);
    clientTimeout_.thaw(client);
}

void
ServerReading::thaw()
{
    serverTimeout_.thaw();
    clientTimeout_.thaw();
}

} // namespace msfrs::squid
