/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "CachePeer.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "msfrs/reading/ServerReading.h"
#include "msfrs/reading/SocketOptions.h"

#include <algorithm>

namespace msfrs::squid
{

/// how long what a server said may wait for its client before its place is better had by another
static constexpr msfrs_time UnreadFor = 1'000'000'000;

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
ServerReading::mayGoOn(ServerReadings &all, RequestScheduler &scheduler, Request &request,
                       const int64_t rest, const bool complete, const msfrs_time now)
{
    const auto ahead = look_.take();
    if (ahead > 0)
        scheduler.charge(request, ahead, now);
    untilFitting_ -= ahead;
    if (!scheduler.readMore(request, now, complete))
        return false;
    // not before we have read: Linux before 6.7 takes a window that is shut just now for all there may be
    if (untilFitting_ <= 0) {
        untilFitting_ = std::max<int64_t>(scheduler.config().quantum, 1);
        all.buffers.fit(*server_, scheduler, request, window_, now);
    }
    batch_.prepare(server_, rest, scheduler.contended(), all.batches, now);
    return true;
}

void
ServerReading::came(const int64_t bytes)
{
    untilFitting_ -= bytes;
    unreadUntil_ = 0;
    batch_.noteRead(bytes);
}

void
ServerReading::pause(ServerReadings &all, const int64_t rest, const ArrivalWatch::Note &note, const msfrs_time now)
{
    batch_.stop();
    debugs(97, 5, "pause " << server_);
    if (rest > 0)
        arrivals_.start(server_, rest, note);
    else if (rest < 0)
        look_.start(server_, all.looks, note, now);
}

bool
ServerReading::silent(const Exchange &exchange, const msfrs_time patience, const msfrs_time now)
{
    if (exchange.silentAt(srtt_, patience) > now || now < unreadUntil_)
        return false;
    if (Comm::IsConnOpen(server_)) {
        srtt_ = Path(*server_).srtt;
        const auto since = exchange.silentAt(srtt_, patience);
        if (since > now)
            return false;
        // What waits in the kernel has been said. A client that does not take it is not waited for either.
        if (!nothingWaits() && now - since < UnreadFor) {
            unreadUntil_ = since + UnreadFor;
            return false;
        }
    }
    debugs(97, 5, "silence of " << server_);
    return true;
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
