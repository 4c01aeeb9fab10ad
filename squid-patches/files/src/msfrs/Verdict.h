/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_VERDICT_H
#define SQUID_SRC_MSFRS_VERDICT_H

#include "error/forward.h"
#include "http/forward.h"
#include "log/forward.h"

#include <iosfwd>

namespace msfrs
{
enum class Refusal;
}

namespace msfrs::squid
{

/// How a wait in the queue ended.
class Verdict
{
public:
    enum class Kind { released, queueOfUserFull, queueFull, notAdmitted, waitedTooLong, shuttingDown };

    /// \param why it was refused at once
    static Kind KindOf(Refusal why);

    /// \returns nil if the transaction may continue, otherwise the error for the client
    ErrorState *error(HttpRequest *, const AccessLogEntryPointer &) const;

    /// \returns nil if the transaction may continue, otherwise a word for access.log
    const char *refusal() const;

    /// the text of a refusal for clients and cache.log
    const char *sentence() const;

    Kind kind = Kind::released;
};

std::ostream &operator <<(std::ostream &, const Verdict &);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_VERDICT_H */
