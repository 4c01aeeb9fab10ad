/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_REFUSALLOG_H
#define SQUID_SRC_MSFRS_REFUSALLOG_H

#include <cstdint>
#include <string>

namespace Msfrs
{

/// Counts refusals for the log, which gets a line a minute at most.
class RefusalLog
{
public:
    /// \param now ns, as Gateway::Now()
    /// \returns whether a line is due, of which summary() then is the beginning
    bool count(int64_t now);

    /// \param what was refused, one of it
    /// \param where with a blank before, or empty
    /// \returns how many since the last line, which this is now
    std::string summary(const char *what, const std::string &where);

private:
    uint64_t refusals_ = 0; ///< since the last line
    int64_t due_ = 0; ///< when there may be the next one
    bool logged_ = false; ///< whether there has been a line
};

} // namespace Msfrs

#endif /* SQUID_SRC_MSFRS_REFUSALLOG_H */

