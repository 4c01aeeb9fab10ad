/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_FORWARD_H
#define SQUID_SRC_MSFRS_FORWARD_H

#include "base/forward.h"

/// Squid as a host of libmsfrs, whose names (msfrs) are visible here: schedules requests so that the downlink is full
/// and shared by weight. Nested like the library's other hosts, so that classes of two hosts cannot collide.
namespace msfrs::squid
{

class ExcessPort;
class Gateway;
class Ticket;
class Uplink;
class Verdict;

using TicketPointer = RefCount<Ticket>;

/// The scheduling of this process; nil while msfrs is off.
Gateway *TheGateway();

/// Whether the server of a request must be known to schedule it: there are several links.
bool SeveralLinks();

/// Receives reports of excessive traffic in this process; nil without msfrs_excess.
ExcessPort *TheExcessPort();

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_FORWARD_H */
