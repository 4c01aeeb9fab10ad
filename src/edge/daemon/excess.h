// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reports bytes that did not pass Squid to its msfrs_excess, by receiver (MSF-RS paper, section 6 (2) and (3)).
#ifndef MSFRS_EDGE_DAEMON_EXCESS_H
#define MSFRS_EDGE_DAEMON_EXCESS_H

#include "daemon/descriptor.h"
#include "edge/daemon/flow_key.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace msfrs::edge {

class Excess {
public:
    static constexpr size_t MostReceivers = 4096;   ///< between two reports; bytes for further ones have no class
    static constexpr size_t LongestDatagram = 8192; ///< that Squid accepts
    static constexpr uint64_t MostBytes = 10'000'000'000; ///< that Squid accepts in a line

    struct Counts {
        uint64_t bytes = 0;         ///< reported, of inside receivers
        uint64_t outsideBytes = 0;  ///< reported, of all others
        uint64_t datagrams = 0;     ///< sent
        uint64_t waits = 0;         ///< times that Squid was busy: the bytes wait for the next report
        uint64_t lostBytes = 0;     ///< because no process reads, or more waited than Squid accepts
    };

    /// \param path of Squid's socket \param inside its inside networks are those of the users
    /// \throws SystemError
    Excess(std::string path, FlowRule inside);

    /// A packet of `bytes` from its IP header passed. From any thread.
    void packet(const FlowKey &, uint64_t bytes);
    /// Sends the bytes gathered since the last call. Never blocks.
    void report();
    Counts counts() const;
    /// Replaces the inside networks.
    void replace(FlowRule inside);

private:
    enum class Outcome { Sent, Behind, Nobody };
    struct Receiver {
        Address address;
        Family family;

        friend bool operator==(const Receiver &a, const Receiver &b)
        {
            return a.address == b.address && a.family == b.family;
        }
    };
    struct Hash {
        size_t operator()(const Receiver &) const;
    };
    using Gathered = std::unordered_map<Receiver, uint64_t, Hash>;

    void gather(const Receiver &, uint64_t bytes);
    Outcome send(const std::string &datagram) const;

    const std::string path_;
    Descriptor socket_;
    mutable std::mutex mutex_; ///< protects all below
    FlowRule inside_;
    Gathered gathered_;
    uint64_t outside_ = 0;
    Counts counts_;
};

} // namespace msfrs::edge

#endif
