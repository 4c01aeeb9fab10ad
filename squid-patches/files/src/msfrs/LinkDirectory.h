/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_LINKDIRECTORY_H
#define SQUID_SRC_MSFRS_LINKDIRECTORY_H

#include "msfrs/lib/plugin/msfrs_plugin.h"

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

/* The directory of the ledger: what parties on the link that see only packets need of squid.conf. These functions do
 * nothing where the link is not shared. */

namespace msfrs::squid
{

/// Publishes the classes, and has all addresses answered again. In the first worker.
void TellClasses(const RequestConfig &);

/// Answers other parties' queries for the class and user of an address. In the first worker; to be called often.
void AnswerAboutAddresses(const RequestConfig &, msfrs_time now);

/// Publishes the class and user of a request from an address: they take precedence over those by the address alone.
/// In any worker.
/// \param cls its own, even if the user has exceeded its quota; index into the configuration's classes
void NoteRequest(const RequestConfig &, const Ip::Address &, uint32_t cls, std::string_view user, msfrs_time now);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_LINKDIRECTORY_H */
