/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_REPORT_H
#define SQUID_SRC_MSFRS_REPORT_H

namespace msfrs::squid
{

/// registers the cache manager reports msfrs, msfrs-users and msfrs-metrics; harmless when repeated
void RegisterReports();

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_REPORT_H */

