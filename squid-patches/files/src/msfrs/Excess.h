/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_EXCESS_H
#define SQUID_SRC_MSFRS_EXCESS_H

#include "msfrs/FlowTable.h"
#include "msfrs/RefusalLog.h"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace msfrs
{
class RequestScheduler;
}

namespace msfrs::report
{
struct ExcessCounts;
}

namespace msfrs::squid
{

/// Receives reports of excessive traffic (MSF-RS paper, section 6): downlink bytes that no request of ours caused.
/// A unix datagram socket; every line of a datagram is "ADDRESS BYTES", or "- BYTES" for a receiver of no class. See
/// msfrs_excess in squid.conf.documented.
class ExcessPort
{
public:
    /// the longest datagram that is accepted
    static constexpr size_t LongestDatagram = 8192;

    /// Opens, moves or closes the socket of this process by msfrs_excess. To be called after Gateway::Configure().
    /// Exits if the socket cannot be made at startup; continues without it later.
    static void Configure();

    /// Closes it. To be called before Gateway::Shutdown().
    static void Shutdown();

    /// Makes the socket, with the privileges of Squid's effective user and group.
    /// \param path absolute
    /// \throws ConfigError with the reason
    explicit ExcessPort(const std::string &path);
    ~ExcessPort();

    ExcessPort(ExcessPort &&) = delete; // no copying or moving of any kind

    const std::string &path() const { return path_; }

    FlowTable flows; ///< of the reported addresses

private:
    void bind();
    void await();
    void read();
    void take(std::string_view datagram);
    void takeLine(std::string_view line, RequestScheduler &, int64_t now);
    void refuse(std::string_view what, const std::string &why);
    static void Await(void *);
    static void NoteReadable(int, void *);

    std::string path_;
    int fd_ = -1;
    dev_t device_ = 0; ///< of our file, which may have been replaced by another
    ino_t inode_ = 0;

    RefusalLog refusals_; ///< of lines
    bool passed_ = false; ///< a user has exceeded a quota
};

/// since Squid started
const report::ExcessCounts &TheExcessCounts();

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_EXCESS_H */
