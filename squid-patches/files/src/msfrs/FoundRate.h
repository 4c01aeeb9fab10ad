/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_FOUNDRATE_H
#define SQUID_SRC_MSFRS_FOUNDRATE_H

#include "msfrs/forward.h"
#include "plugin/msfrs_plugin.h"

#include <iosfwd>

namespace msfrs
{
struct CapacityReport;
}

namespace msfrs::squid
{

class Configuration;

/// Checks the options of msfrs_link that rate=auto requires, and those not allowed without it; for msfrs on.
/// \throws ConfigError
void CheckFoundRate(const Configuration &);

/// The part of the report about a link whose rate is estimated.
void PrintFoundRate(std::ostream &, const CapacityReport &, msfrs_time now);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_FOUNDRATE_H */

