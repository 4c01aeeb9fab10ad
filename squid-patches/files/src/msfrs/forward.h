/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_FORWARD_H
#define SQUID_SRC_MSFRS_FORWARD_H

#include "base/forward.h"

/// Squid as a host of libmsfrs, whose names (msfrs) are seen from here: schedules requests so that the downlink is full
/// and shared by weight. Nested as the library's other hosts are, so that neither's classes can meet the other's.
namespace msfrs::squid
{

class ExcessPort;
class Gateway;
class Ticket;
class Verdict;

using TicketPointer = RefCount<Ticket>;

/// The scheduling of this process; nil while msfrs is off.
Gateway *TheGateway();

/// Where this process is told of excessive traffic; nil without msfrs_excess.
ExcessPort *TheExcessPort();

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_FORWARD_H */
