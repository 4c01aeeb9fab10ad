// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Startup notification for systemd (Type=notify).
#pragma once

namespace msfrs {

/// Reports that this program is ready: "ready" on standard output, for the process that started it, and READY=1 to the
/// socket that NOTIFY_SOCKET names (sd_notify(3)), if a process listens there.
void SayReady();

} // namespace msfrs
