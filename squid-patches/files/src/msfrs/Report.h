/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_REPORT_H
#define SQUID_SRC_MSFRS_REPORT_H

#include <iosfwd>
#include <string>

namespace msfrs::squid
{

class Gateway;
struct Snapshot;

/// registers the cache manager reports msfrs, msfrs-users and msfrs-metrics; harmless when repeated
void RegisterReports();

/// The state of scheduling, in YAML.
void PrintReport(std::ostream &, const Snapshot &);

/// All users that this process knows, most bytes first, in YAML.
/// \param gateway nil when nothing is scheduled
void PrintUsers(std::ostream &, const Gateway *gateway);

/// The figures of PrintReport() in the OpenMetrics text format 1.0, which parsers of the older text format read, too.
void PrintMetrics(std::ostream &, const Snapshot &);

/// the number without an exponent, with which YAML would read a string
std::string Fixed(double number, int decimals);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_REPORT_H */

