/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_LINKDIRECTORY_H
#define SQUID_SRC_MSFRS_LINKDIRECTORY_H

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <string_view>

namespace Ip
{
class Address;
}

namespace msfrs
{
struct RequestConfig;
}

/* What others who share the link, and see packets alone, are told of squid.conf: the directory of the ledger. Nothing
 * of this does anything where the link is not shared. */

namespace msfrs::squid
{

/// Says which classes there are, and that what was said of addresses may be wrong by now. In the first worker.
void TellClasses(const RequestConfig &);

/// Says to which class and user addresses belong that others have asked for. In the first worker, often.
void AnswerAboutAddresses(const RequestConfig &, msfrs_time now);

/// An address has had a request: it tells more than the address. In any worker.
/// \param cls its own, whatever it had of its quota; index into the configuration's classes
void NoteRequest(const RequestConfig &, const Ip::Address &, uint32_t cls, std::string_view user, msfrs_time now);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_LINKDIRECTORY_H */

