// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A copy of the kernel's neighbour table: the hardware addresses of the hosts on the gateway's own networks, as ARP
/// (IPv4) and neighbour discovery (IPv6) found them. Made of messages of rtnetlink(7), without a socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace msfrs {

/// An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d, in network order.
using HostAddress = std::array<uint8_t, 16>;

/// An EUI-48, in the order in which it is written.
using MacAddress = std::array<uint8_t, 6>;

/// As "02:00:5e:10:00:01".
std::string TextOf(const MacAddress &mac);

class NeighbourTable {
public:
    /// Entries that are kept. Beyond them a host has no hardware address here. The kernel keeps 1024 of each family
    /// unless gc_thresh3 says otherwise; this is as many as there are users with a quota, and takes some 7 MB.
    static constexpr size_t Most = 65536;

    /// What a datagram of messages said beside neighbours.
    struct Outcome {
        bool done = false;   ///< the end of a dump
        bool failed = false; ///< a request was refused
    };

    /// Applies the messages of one datagram. Neighbours that are not valid, multicast or other than EUI-48 are none;
    /// messages that are cut short or of another kind are ignored.
    Outcome apply(const uint8_t *datagram, size_t size);

    std::optional<MacAddress> find(const HostAddress &host) const;
    void clear() { hosts_.clear(); }
    size_t size() const { return hosts_.size(); }

private:
    struct Entry {
        MacAddress mac;
        int interface;
    };

    void neighbour(const uint8_t *message, size_t size, bool deleted);

    std::map<HostAddress, Entry> hosts_;
};

} // namespace msfrs
