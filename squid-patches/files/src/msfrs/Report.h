/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_REPORT_H
#define SQUID_SRC_MSFRS_REPORT_H

#include <iosfwd>
#include <string>

namespace msfrs::squid
{

class Gateway;

/// makes the cache manager reports msfrs, msfrs-users and msfrs-metrics known; harmless when repeated
void RegisterReports();

/// What goes on, in YAML.
/// \param gateway nil when nothing is scheduled
void PrintReport(std::ostream &, const Gateway *gateway);

/// All users that are known, those with most bytes first, in YAML.
/// \param gateway nil when nothing is scheduled
void PrintUsers(std::ostream &, const Gateway *gateway);

/// The same figures of this process as metric families of the OpenMetrics text format 1.0, which the older text
/// format's parsers read, too; for a MetricsPage.
/// \param gateway nil when nothing is scheduled
void PrintMetrics(std::ostream &, const Gateway *gateway);

/// the number without an exponent, which YAML would read as a word
std::string Fixed(double number, int decimals);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_REPORT_H */

