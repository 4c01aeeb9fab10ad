/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "msfrs/RefusalLog.h"

bool
Msfrs::RefusalLog::count(const int64_t now)
{
    constexpr int64_t every = 60'000'000'000;

    ++refusals_;
    if (logged_ && now < due_)
        return false;
    due_ = now + every;
    return true;
}

std::string
Msfrs::RefusalLog::summary(const char * const what, const std::string &where)
{
    const auto text = std::to_string(refusals_) + ' ' + what + (refusals_ == 1 ? "" : "s") + " refused" + where +
                      (logged_ ? " since the last line like this" : "");
    refusals_ = 0;
    logged_ = true;
    return text;
}

