/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm.h"
#include "comm/Connection.h"
#include "fde.h"
#include "msfrs/reading/ReadBatch.h"
#include "msfrs/reading/SocketOptions.h"

#include <algorithm>

namespace msfrs::squid
{

namespace
{

/// Three segments. Of a receive buffer for half a quantum, so much may wait and the sender still goes on.
constexpr int BatchBytes = 4096;

} // namespace

void
ReadBatch::prepare(const Comm::ConnectionPointer &conn, const int64_t rest, const bool worthwhile,
                   Checked<ReadBatch> &all, const msfrs_time now)
{
    // what TLS has yet to decode is counted in other bytes than ours
    const auto fits = Comm::IsConnOpen(conn) && !fd_table[conn->fd].closing() && !fd_table[conn->fd].ssl;
    auto bytes = 1;
    if (fits && worthwhile && !silent_ && rest >= BatchBytes)
        bytes = BatchBytes;
    else if (fits && conn_ && rest > 0)
        bytes = static_cast<int>(std::min<int64_t>(lowWater_, rest)); // one read to the end

    if (bytes == 1) {
        set(1);
        return;
    }
    if (!conn_) {
        conn_ = conn;
        all_ = &all;
        place_ = all.enlist(*this, now);
        read_ = true;
    }
    rest_ = rest;
    set(bytes);
}

void
ReadBatch::noteRead(const int64_t bytes)
{
    read_ = true;
    rest_ -= bytes;
    if (rest_ <= 0)
        set(1); // before the connection serves another request
}

void
ReadBatch::stop()
{
    set(1);
    silent_ = false;
}

void
ReadBatch::check(msfrs_time)
{
    silent_ = !read_;
    read_ = false;
    if (silent_)
        set(1);
}

void
ReadBatch::set(const int bytes)
{
    if (!conn_)
        return;
    if (bytes != lowWater_ && Comm::IsConnOpen(conn_))
        SetLowWater(*conn_, bytes);
    lowWater_ = bytes;
    if (bytes == 1) {
        all_->forget(place_);
        conn_ = nullptr;
    }
}

} // namespace msfrs::squid
