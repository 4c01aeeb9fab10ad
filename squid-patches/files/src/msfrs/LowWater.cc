/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "msfrs/LowWater.h"

#include <cerrno>
#include <sys/socket.h>

void
Msfrs::SetLowWater(const Comm::Connection &conn, const int bytes)
{
    if (setsockopt(conn.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes)) != 0) {
        const auto savedErrno = errno;
        debugs(97, 3, "cannot set SO_RCVLOWAT of " << conn << ": " << xstrerr(savedErrno));
    }
}

int
Msfrs::LowWater(const Comm::Connection &conn)
{
    int bytes = 0;
    socklen_t length = sizeof(bytes);
    return getsockopt(conn.fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, &length) == 0 ? bytes : 0;
}

