/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_REFUSALLOG_H
#define SQUID_SRC_MSFRS_REFUSALLOG_H

#include <cstdint>
#include <string>

namespace msfrs::squid
{

/// Tells cache.log of refusals, in a line a minute at most.
class RefusalLog
{
public:
    /// \param what is refused, one of it
    /// \param where with a blank before, or empty
    explicit RefusalLog(const std::string &what, const std::string &where = ""): what_(what), where_(where) {}

    /// \param latest whose or which this one is, and why
    /// \param now ns, as Gateway::Now()
    void note(const std::string &latest, int64_t now);

private:
    const std::string what_;
    const std::string where_;
    uint64_t refusals_ = 0; ///< since the last line
    int64_t due_ = 0; ///< when there may be the next one
    bool logged_ = false; ///< whether there has been a line
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_REFUSALLOG_H */
