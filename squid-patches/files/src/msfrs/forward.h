/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_FORWARD_H
#define SQUID_SRC_MSFRS_FORWARD_H

#include "base/forward.h"

/// schedules requests so that the downlink is full and shared by weight
namespace Msfrs
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

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_FORWARD_H */

