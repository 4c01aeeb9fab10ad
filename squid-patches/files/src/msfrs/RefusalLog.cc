/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "debug/Stream.h"
#include "msfrs/RefusalLog.h"

namespace msfrs::squid
{

void
RefusalLog::note(const std::string &latest, const int64_t now)
{
    constexpr int64_t every = 60'000'000'000;

    ++refusals_;
    if (logged_ && now < due_)
        return;
    debugs(97, DBG_IMPORTANT, "WARNING: msfrs: " << refusals_ << ' ' << what_ << (refusals_ == 1 ? "" : "s") <<
           " refused" << where_ << (logged_ ? " since the last line like this" : "") << ", the latest " << latest);
    refusals_ = 0;
    logged_ = true;
    due_ = now + every;
}

} // namespace msfrs::squid
