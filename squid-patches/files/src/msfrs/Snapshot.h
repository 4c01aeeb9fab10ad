/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_SNAPSHOT_H
#define SQUID_SRC_MSFRS_SNAPSHOT_H

#include "msfrs/forward.h"
#include "msfrs/lib/report/gateway_report.h"

#include <string>

namespace msfrs::squid
{

/// The report of this process.
/// \param gateway nil when nothing is scheduled
report::GatewayReport ReportOf(const Gateway *gateway);

/// Writes text into an unnamed file, to be sent to another process.
/// \returns its descriptor, which the caller closes, or -1
int TextToFile(const std::string &);

/// \param fd from TextToFile(), perhaps of another process; will be closed
std::string TextFromFile(int fd);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_SNAPSHOT_H */
