/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_REFUSALLOG_H
#define SQUID_SRC_MSFRS_REFUSALLOG_H

#include <cstdint>
#include <string>

namespace msfrs::squid
{

/// Reports refusals in cache.log, at most one line a minute.
class RefusalLog
{
public:
    /// \param what is refused, in the singular
    /// \param where with a leading blank, or empty
    explicit RefusalLog(const std::string &what, const std::string &where = ""): what_(what), where_(where) {}

    /// \param latest identifies this refusal and its reason
    /// \param now ns, as Gateway::Now()
    void note(const std::string &latest, int64_t now);

private:
    const std::string what_;
    const std::string where_;
    uint64_t refusals_ = 0; ///< since the last line
    int64_t due_ = 0; ///< when the next line is allowed
    bool logged_ = false; ///< whether there has been a line
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_REFUSALLOG_H */
