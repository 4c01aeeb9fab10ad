// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Telling systemd how far a start has come (Type=notify).
#ifndef MSFRS_DAEMON_NOTIFY_H
#define MSFRS_DAEMON_NOTIFY_H

namespace msfrs {

/// Says READY=1 where NOTIFY_SOCKET names the socket of whoever waits for it (sd_notify(3)); nothing otherwise, and
/// nothing if nobody listens there.
void NotifyReady();

} // namespace msfrs

#endif
