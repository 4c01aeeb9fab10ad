// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Telling systemd how far a start has come (Type=notify).
#ifndef MSFRS_DAEMON_NOTIFY_H
#define MSFRS_DAEMON_NOTIFY_H

namespace msfrs {

/// Says that this program works now: "ready" on standard output, for who started it, and READY=1 where NOTIFY_SOCKET
/// names the socket of whoever waits for it (sd_notify(3)), if somebody listens there.
void SayReady();

} // namespace msfrs

#endif
