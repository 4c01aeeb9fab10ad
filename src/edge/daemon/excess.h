// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reports bytes that did not pass Squid to its msfrs_excess, by receiver (MSF-RS paper, section 6 (2) and (3)).
#pragma once

#include "daemon/descriptor.h"
#include "edge/daemon/flow_key.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

namespace msfrs::edge {

class Excess {
public:
    static constexpr size_t MostReceivers = 4096;   ///< in a report; bytes for further ones have no class
    static constexpr size_t LongestDatagram = 8192; ///< that Squid accepts
    static constexpr uint64_t MostBytes = 10'000'000'000; ///< that Squid accepts in a line

    struct Counts {
        uint64_t bytes = 0;         ///< reported, of inside receivers
        uint64_t outsideBytes = 0;  ///< reported, of all others
        uint64_t datagrams = 0;     ///< sent
        uint64_t waits = 0;         ///< times that Squid was busy: the bytes wait for the next report
        uint64_t lostBytes = 0;     ///< because no process reads, or more waited than Squid accepts
    };

    /// \param path of Squid's socket
    /// \throws SystemError
    explicit Excess(std::string path);

    /// A packet of `bytes` from its IP header passed. From any thread.
    /// \param users its inside networks are theirs
    void packet(const FlowKey &, uint64_t bytes, const FlowRule &users);
    /// Sends the bytes gathered since the last call. Never blocks.
    void report();
    Counts counts() const;

private:
    enum class Outcome { Sent, Behind, Nobody };
    using Receiver = std::tuple<bool, Family, Address>; ///< whether it is outside; otherwise its address

    static std::string Text(const Receiver &);
    void gather(const Receiver &, uint64_t bytes);
    Outcome send(const std::string &datagram) const;

    const std::string path_;
    Descriptor socket_;
    mutable std::mutex mutex_; ///< protects all below
    std::map<Receiver, uint64_t> gathered_;
    Counts counts_;
};

} // namespace msfrs::edge
