/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_PICTURE_H
#define SQUID_SRC_MSFRS_PICTURE_H

#include "engine/request_scheduler.h"
#include "msfrs/Excess.h"
#include "msfrs/forward.h"

#include <string>
#include <vector>

namespace msfrs::squid
{

/// What reports say: the figures of one process, or of several workers together. Values alone, so that one process can
/// send it to another.
struct Picture {
    bool scheduling = false;
    bool failed = false; ///< not scheduling because the scheduler failed
    msfrs_time now = 0; ///< when it was taken, by Gateway::Now()
    RequestConfig config;
    WindowReport window;
    ExcessCounts excess;
    std::string excessSocket; ///< empty: none
    std::vector<ClassReport> classes;
    std::vector<HeldReport> held;
    std::vector<UserReport> users; ///< most bytes first

    /// Adds that of another worker. Counts add up: a user whose requests are at two workers counts at both. Quantiles
    /// of waits, and service counters, are the largest of all. Rates, W and W+ add up, as each worker has its part.
    void add(const Picture &);

    /// as text for Read()
    std::string written() const;

    /// \returns an empty picture if the text is not what a process of the same program has written
    static Picture Read(const std::string &);
};

/// That of this process.
/// \param gateway nil when nothing is scheduled
Picture PictureOf(const Gateway *gateway);

/// Puts text into a file without a name, to be sent to another process.
/// \returns its descriptor, which the caller closes, or -1
int TextToFile(const std::string &);

/// \param fd of TextToFile(), perhaps in another process; will be closed
std::string TextFromFile(int fd);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_PICTURE_H */

