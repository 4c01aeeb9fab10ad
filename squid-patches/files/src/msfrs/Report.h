/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_REPORT_H
#define SQUID_SRC_MSFRS_REPORT_H

#include <iosfwd>
#include <string>

namespace msfrs::squid
{

class Gateway;
struct Picture;

/// makes the cache manager reports msfrs, msfrs-users and msfrs-metrics known; harmless when repeated
void RegisterReports();

/// What goes on, in YAML.
void PrintReport(std::ostream &, const Picture &);

/// All users that this process knows, those with most bytes first, in YAML.
/// \param gateway nil when nothing is scheduled
void PrintUsers(std::ostream &, const Gateway *gateway);

/// The same figures in the OpenMetrics text format 1.0, which the older text format's parsers read, too.
void PrintMetrics(std::ostream &, const Picture &);

/// the number without an exponent, which YAML would read as a word
std::string Fixed(double number, int decimals);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_REPORT_H */

