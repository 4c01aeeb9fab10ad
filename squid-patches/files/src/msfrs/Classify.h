/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_CLASSIFY_H
#define SQUID_SRC_MSFRS_CLASSIFY_H

#include "log/forward.h"
#include "sbuf/SBuf.h"

#include <cstdint>

class HttpRequest;

namespace Ip
{
class Address;
}

namespace Msfrs
{

/// who waits
struct Party {
    uint32_t cls = 0; ///< index into Config.msfrs.classes and RequestConfig::classes
    SBuf user; ///< the key of the user within the class, at most 128 bytes
};

/// The client as ACLs see it: behind a trusted follow_x_forwarded_for proxy when they look there.
const Ip::Address &ClientAddress(const HttpRequest &);

/// Finds the class by msfrs_access (first line that matches; the default class otherwise) and the user by
/// msfrs_user. Only to be called while Config.msfrs.on().
Party Classify(HttpRequest *, const AccessLogEntryPointer &);

/// The same for what comes to an address without a request. A line with an ACL that needs one does not match.
Party Classify(const Ip::Address &);

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_CLASSIFY_H */

