/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_LOGTRACE_H
#define SQUID_SRC_MSFRS_LOGTRACE_H

#include "sbuf/SBuf.h"

#include <cstdint>

namespace Msfrs
{

/// What access.log can say about the scheduling of a transaction; see the msfrs:: codes of logformat.
struct LogTrace {
    SBuf className; ///< empty: never scheduled, and then nothing below counts
    SBuf user; ///< see Party::user
    const char *refusal = nullptr; ///< why the request was not served; nil: it was
    int64_t firstWait = -1; ///< ns from hold to the first release; negative: never released
    int64_t totalWait = 0; ///< ns, the same plus all pauses
    int64_t bytes = 0; ///< what was charged
    uint32_t quanta = 0; ///< quanta begun
    uint32_t window = 0; ///< W right after the first release
    double limit = 0; ///< W+ then
};

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_LOGTRACE_H */

