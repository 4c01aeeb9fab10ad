/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm/Connection.h"
#include "fde.h"
#include "globals.h"
#include "msfrs/reading/FrozenTimeout.h"
#include "time/gadgets.h"

#include <algorithm>

void
Msfrs::FrozenTimeout::freeze(const Comm::ConnectionPointer &conn)
{
    if (!Comm::IsConnOpen(conn))
        return;
    auto &deadline = fd_table[conn->fd].timeout;
    if (deadline <= 0)
        return;
    conn_ = conn;
    left_ = std::max<time_t>(deadline - squid_curtime, 0);
    deadline = 0; // and the handler stays
}

void
Msfrs::FrozenTimeout::thaw(const Comm::ConnectionPointer &conn)
{
    if (!conn_)
        return;
    if (conn_ == conn && Comm::IsConnOpen(conn)) {
        auto &deadline = fd_table[conn->fd].timeout;
        if (deadline == 0)
            deadline = squid_curtime + left_;
    }
    conn_ = nullptr;
}
