/* SPDX-License-Identifier: GPL-2.0-or-later */

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

/// The unit of queueing and accounting, a flow of the engine: a user within a class.
struct Flow {
    /// \returns the class in the scheduler's configuration, which may be an older one
    uint32_t classIn(const RequestConfig &) const;

    std::string_view name() const { return {user.rawContent(), user.length()}; }

    uint32_t cls = 0; ///< index into Config.msfrs.classes
    SBuf user; ///< the key of the user within the class, at most 128 bytes
};

/// The client's address as ACLs see it: the one behind a trusted follow_x_forwarded_for proxy if they use that.
const Ip::Address &ClientAddress(const HttpRequest &);

/// Finds the class by msfrs_access (first line that matches; the default class otherwise) and the user by
/// msfrs_user. Only to be called while Config.msfrs.on().
Flow Classify(HttpRequest *, const AccessLogEntryPointer &);

/// The same for traffic to an address without a request, which has no login. A line with an ACL that needs one does not match.
Flow Classify(const Ip::Address &);

/// The class alone, after msfrs_access has changed; index into Config.msfrs.classes.
/// \returns nothing if a deciding ACL has no answer now because it would have to ask a helper
std::optional<uint32_t> ClassifyAgain(HttpRequest *, const AccessLogEntryPointer &);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_CLASSIFY_H */

