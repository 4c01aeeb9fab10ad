/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_CLASSIFY_H
#define SQUID_SRC_MSFRS_CLASSIFY_H

#include "log/forward.h"
#include "sbuf/SBuf.h"

#include <cstdint>
#include <optional>
#include <string_view>

class HttpRequest;

namespace Ip
{
class Address;
}

namespace msfrs
{
struct RequestConfig;
}

namespace msfrs::squid
{

/// What is queued and counted apart from others, as the engine's flows: a user within a class.
struct Flow {
    /// \returns the class where the scheduler may have kept an older configuration
    uint32_t classIn(const RequestConfig &) const;

    std::string_view name() const { return {user.rawContent(), user.length()}; }

    uint32_t cls = 0; ///< index into Config.msfrs.classes
    SBuf user; ///< the key of the user within the class, at most 128 bytes
};

/// The client as ACLs see it: behind a trusted follow_x_forwarded_for proxy when they look there.
const Ip::Address &ClientAddress(const HttpRequest &);

/// Finds the class by msfrs_access (first line that matches; the default class otherwise) and the user by
/// msfrs_user. Only to be called while Config.msfrs.on().
Flow Classify(HttpRequest *, const AccessLogEntryPointer &);

/// The same for what comes to an address without a request. A line with an ACL that needs one does not match.
Flow Classify(const Ip::Address &);

/// The class alone, after msfrs_access has changed; index into Config.msfrs.classes.
/// \returns nothing if an ACL that decides cannot tell now, as it would have to ask a helper
std::optional<uint32_t> ClassifyAgain(HttpRequest *, const AccessLogEntryPointer &);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_CLASSIFY_H */

