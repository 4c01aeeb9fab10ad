// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One NFQUEUE of the kernel: reads packet headers and sends verdicts.
///
/// Packets stay in the kernel, and only their headers are read, unless the host wants whole packets. A payload in a
/// verdict would replace the whole packet (the kernel truncates it to the payload's length), so marking by payload
/// would require copying whole packets both ways. Verdicts carry a firewall mark instead, and an iptables rule in
/// mangle POSTROUTING sets the bits.
#pragma once

#include "daemon/descriptor.h"
#include "edge/daemon/packet_path.h"

#include <memory>
#include <optional>
#include <sys/socket.h>
#include <vector>

struct mnl_socket;
struct nlmsghdr;

namespace msfrs::edge {

class NfQueue final : public Verdicts {
public:
    static constexpr uint32_t Headers = 256; ///< bytes: IPv6 with a few extensions, and TCP
    static constexpr uint32_t Whole = 65535; ///< bytes of the longest packet
    static constexpr size_t Batch = 64; ///< packets read at a time, as Conditioner::Most

    /// The kernel queues packets to us from now on. \param n the n-th queue of the configuration
    /// \param copy bytes read of a packet \throws SystemError with a remedy
    NfQueue(const Config &, uint32_t n, uint32_t copy = Headers);
    NfQueue(const NfQueue &) = delete;

    int fd() const;
    /// Reads up to Batch packets, which are valid until the next call.
    /// \param more set to whether there may be more
    const std::vector<Arrival> &read(bool &more);

    void give(uint32_t id, bool pass, std::optional<uint32_t> mark) override;
    /// Sends the gathered verdicts. \throws SystemError
    void flush();
    /// Whether the kernel had no memory for verdicts: call flush() again.
    bool pending() const { return !verdicts_.empty(); }

    /// Adopts the limit of another configuration.
    void adopt(const Config &config) { setLength(lengthFor(config)); }
    /// From now on the kernel passes packets instead of queueing them; those already queued can still be read.
    void passOn();

    /// By our own count, which is exact up to the latest packet delivered: the kernel numbers packets before it tries
    /// to deliver them.
    const QueueCounts &counts() const { return counts_; }
    bool conntrack() const { return conntrack_; } ///< whether the kernel reports connections

private:
    static uint32_t lengthFor(const Config &);
    void setLength(uint32_t);
    void configure(const Config &, uint32_t copy);
    int command(nlmsghdr *);
    void put(int type, uint32_t id, bool pass, std::optional<uint32_t> mark);
    void parse(const char *, size_t);
    void parsePacket(const void *message);
    void parseError(const void *message);

    uint32_t number_;
    std::unique_ptr<mnl_socket, int (*)(mnl_socket *)> socket_;
    std::vector<char> bytes_; ///< of the messages of a batch
    iovec parts_[Batch];
    mmsghdr messages_[Batch];
    FlowKey origins_[Batch];
    std::vector<Arrival> arrivals_;
    std::vector<char> verdicts_;
    size_t held_ = 0;     ///< packets read that have no verdict yet
    bool alike_ = true;   ///< all of verdicts_ accept, with the same mark, in the order of arrival
    uint32_t latest_ = 0; ///< packet of the latest of verdicts_
    std::optional<uint32_t> mark_; ///< of that packet; nothing: its own is kept
    QueueCounts counts_;
    uint32_t arrived_ = 0; ///< number of the latest packet delivered
    bool failOpen_;
    bool conntrack_ = false;
    uint32_t sequence_ = 0;
    int answer_ = -1; ///< to command(): errno, or -1 while there is none
};

} // namespace msfrs::edge
