/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_LOGTRACE_H
#define SQUID_SRC_MSFRS_LOGTRACE_H

#include "sbuf/SBuf.h"

#include <cstdint>
#if HAVE_SYS_TIME_H
#include <sys/time.h>
#endif

namespace msfrs::squid
{

/// The scheduling of a transaction as access.log can record it; see the msfrs:: codes of logformat.
struct LogTrace {
    bool known() const { return !className.isEmpty(); } ///< the transaction was scheduled
    bool released() const { return known() && firstWait >= 0; } ///< and forwarded

    SBuf className; ///< empty: never scheduled, and then nothing below is valid
    SBuf overQuota; ///< its class by msfrs_access, if its user has exceeded the quota of that; else empty
    SBuf user; ///< see Flow::user
    const char *refusal = nullptr; ///< why the request was not forwarded; nil: it was, or still waits
    int64_t firstWait = -1; ///< ns from hold to the first release; negative: never released
    int64_t totalWait = 0; ///< ns, the same plus all pauses and the waits of later exchanges
    int64_t bytes = 0; ///< charged
    uint32_t quanta = 0; ///< quanta begun
    uint32_t exchanges = 1; ///< begun, the first one included
    int64_t exchangeWait = 0; ///< ns that those after the first waited before they began
    uint32_t window = 0; ///< W right after the first release
    double limit = 0; ///< W+ then
};

/// nanoseconds in the form that logformat needs
inline timeval
ToTimeval(const int64_t ns)
{
    timeval tv = {};
    tv.tv_sec = ns / 1000000000;
    tv.tv_usec = ns % 1000000000 / 1000;
    return tv;
}

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_LOGTRACE_H */

