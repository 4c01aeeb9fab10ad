/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "comm.h"
#include "comm/Connection.h"
#include "fde.h"
#include "globals.h"
#include "msfrs/reading/FrozenTimeout.h"
#include "time/gadgets.h"

#include <algorithm>

namespace msfrs::squid
{

namespace
{

const int Never = 10*365*24*3600; ///< seconds, longer than any pause

/// makes the timeout of a connection expire in `seconds`, with its present handler
void
Postpone(const Comm::ConnectionPointer &conn, const int seconds)
{
    AsyncCall::Pointer same;
    commSetConnTimeout(conn, seconds, same);
}

/// whether a connection's timeout was postponed, and has not been set anew since
bool
IsFrozen(const Comm::ConnectionPointer &conn)
{
    return fd_table[conn->fd].timeout - squid_curtime > Never / 2;
}

} // namespace

void
FrozenTimeout::freeze(const Comm::ConnectionPointer &conn)
{
    if (!Comm::IsConnOpen(conn))
        return;
    const auto &deadline = fd_table[conn->fd].timeout;
    if (deadline <= 0 || IsFrozen(conn))
        return;
    conn_ = conn;
    left_ = std::max<time_t>(deadline - squid_curtime, 0);
    Postpone(conn, Never);
}

void
FrozenTimeout::thaw(const Comm::ConnectionPointer &conn)
{
    if (!conn_)
        return;
    if (conn_ == conn && Comm::IsConnOpen(conn) && IsFrozen(conn))
        Postpone(conn, left_);
    conn_ = nullptr;
}

} // namespace msfrs::squid
