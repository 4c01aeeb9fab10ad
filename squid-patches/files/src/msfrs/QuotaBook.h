/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_QUOTABOOK_H
#define SQUID_SRC_MSFRS_QUOTABOOK_H

#include "msfrs/lib/quota/quotas.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace msfrs::squid
{

/// The quotas of this process, or of all parties on the link: the bytes of users by wall-clock periods, and the file
/// that keeps them over a restart. Counts are in the memory that workers share: they survive a worker that dies, and
/// the file is needed only if all of Squid restarts. Each worker may write the file, one at a time. When a call returns
/// true, Gateway moves the requests.
class QuotaBook
{
public:
    /// Time between two writes of the file, s: the counts that are lost at most if all of Squid crashes.
    static constexpr int64_t SaveEvery = 30;

    /// Loads the file, unless another worker has. A file that cannot be read, or is not as save() wrote it, is reported
    /// and moved out of the way, and all users begin from 0.
    QuotaBook();
    ~QuotaBook(); ///< writes the file

    QuotaBook(QuotaBook &&) = delete; // no copying or moving of any kind

    /// Adopts the classes and the file of Config.msfrs; counts stay.
    void configure();

    bool any() const { return quotas_.any(); }

    /// the class in which a user of `cls` is served now; both are indices into Config.msfrs.classes
    uint32_t classOf(uint32_t cls, std::string_view user) const;

    /// Makes a user known to parties that count its bytes without a request.
    void enroll(uint32_t cls, std::string_view user) { quotas_.enroll(cls, user); }

    /// \param cls the class in which the user was served
    /// \returns whether users move to other classes: this one, or any by the charges of other parties on the link
    bool charge(uint32_t cls, std::string_view user, int64_t bytes);

    /// Checks the clock and writes the file when that is due. To be called about once a second.
    /// \returns whether users move to other classes, or back to theirs
    bool tick();

    QuotaReport report(const uint32_t cls, const size_t most) const { return quotas_.report(cls, most); }

private:
    void load();
    void save();
    bool write(const std::string &path) const;

    ledger::OwnQuotaTable own_; ///< nil: counts are those of all parties on the link
    Quotas quotas_;
    std::string path_; ///< empty: counts are not kept
    bool failed_ = false; ///< the last write of the file failed
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_QUOTABOOK_H */
