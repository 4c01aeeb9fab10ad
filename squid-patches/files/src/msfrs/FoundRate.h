/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_FOUNDRATE_H
#define SQUID_SRC_MSFRS_FOUNDRATE_H

#include "msfrs/forward.h"

namespace msfrs::squid
{

class Configuration;
class Link;

/// Checks the options of an msfrs_link that rate=auto requires, and those not allowed without it; for msfrs on.
/// \throws ConfigError
void CheckFoundRate(const Configuration &, const Link &);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_FOUNDRATE_H */

