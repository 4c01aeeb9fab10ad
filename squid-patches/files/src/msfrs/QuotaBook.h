/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_QUOTABOOK_H
#define SQUID_SRC_MSFRS_QUOTABOOK_H

#include "quota/quotas.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace msfrs::squid
{

/// The quotas of this process: what users had, by the clock on the wall, and the file that keeps it over a restart.
/// Who moves requests when a call returns true: Gateway.
class QuotaBook
{
public:
    /// Between two writings of the file, s; so much of the counts is lost if Squid ends badly.
    static constexpr int64_t SaveEvery = 30;

    /// Begins with what the file holds. One that cannot be read, or is not as save() wrote it, is reported and moved
    /// out of the way, and all begin from 0.
    QuotaBook();
    ~QuotaBook(); ///< writes the file

    QuotaBook(QuotaBook &&) = delete; // no copying or moving of any kind

    /// Takes classes and file of Config.msfrs; counts stay.
    void configure();

    bool any() const { return quotas_.any(); }

    /// where a user of a class is served now; both are indices into Config.msfrs.classes
    uint32_t classOf(uint32_t cls, std::string_view user) const;

    /// \param cls where it was served
    /// \returns whether the user goes on in another class
    bool charge(uint32_t cls, std::string_view user, int64_t bytes);

    /// Looks at the clock and writes the file when that is due. To be called every second or so.
    /// \returns whether users come back to their classes
    bool tick();

    QuotaReport report(const uint32_t cls, const size_t most) const { return quotas_.report(cls, most); }

private:
    void load();
    void save();
    bool write(const std::string &path) const;

    Quotas quotas_;
    std::string path_; ///< empty: counts are not kept
    bool changed_ = false; ///< since the file was written
    bool failed_ = false; ///< the file could not be written last time
    int64_t savedAt_; ///< by the same clock as quotas_
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_QUOTABOOK_H */

