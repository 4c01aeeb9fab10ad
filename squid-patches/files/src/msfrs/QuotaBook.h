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

/// The quotas of this process, or of all who share the link: what users had, by the clock on the wall, and the file
/// that keeps it over a restart. Counts are in the memory that workers share; so a worker that dies takes none along,
/// one that is started again finds them, and the file is for a restart of all. Each may write the file, one at a time
/// does. Who moves requests when a call returns true: Gateway.
class QuotaBook
{
public:
    /// Between two writings of the file, s; so much of the counts is lost if all of Squid ends badly.
    static constexpr int64_t SaveEvery = 30;

    /// Begins with what the file holds, unless another worker has read it. One that cannot be read, or is not as save()
    /// wrote it, is reported and moved out of the way, and all begin from 0.
    QuotaBook();
    ~QuotaBook(); ///< writes the file

    QuotaBook(QuotaBook &&) = delete; // no copying or moving of any kind

    /// Takes classes and file of Config.msfrs; counts stay.
    void configure();

    bool any() const { return quotas_.any(); }

    /// where a user of a class is served now; both are indices into Config.msfrs.classes
    uint32_t classOf(uint32_t cls, std::string_view user) const;

    /// Makes a user known to who counts for it without a request.
    void enroll(uint32_t cls, std::string_view user) { quotas_.enroll(cls, user); }

    /// \param cls where it was served
    /// \returns whether users go on in other classes, this one or, by what others who share the link charged, any
    bool charge(uint32_t cls, std::string_view user, int64_t bytes);

    /// Looks at the clock and writes the file when that is due. To be called every second or so.
    /// \returns whether users go on in other classes, or come back to theirs
    bool tick();

    QuotaReport report(const uint32_t cls, const size_t most) const { return quotas_.report(cls, most); }

private:
    void load();
    void save();
    bool write(const std::string &path) const;

    ledger::OwnQuotaTable own_; ///< nil: counts are those of all who share the link
    Quotas quotas_;
    std::string path_; ///< empty: counts are not kept
    bool failed_ = false; ///< the file could not be written last time
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_QUOTABOOK_H */

