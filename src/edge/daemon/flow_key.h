// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The mapping of packets to flows.
#pragma once

#include "edge/match.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs::edge {

/// The fields that identify a flow.
enum class FlowBy {
    Connection, ///< addresses, ports and protocol
    Source,
    Destination,
    Host        ///< the address in an inside network: the source's if both are, and if none is
};

/// A flow's name in the engine: a few bytes, since every packet needs a look-up.
class FlowName {
public:
    std::string_view view() const { return {bytes_.data(), size_}; }

    void add(const Address &, Family);
    void addPorts(const FlowKey &);

private:
    std::array<char, 40> bytes_;
    size_t size_ = 0;
};

/// How flows are distinguished.
struct FlowRule {
    struct Network {
        Family family;
        Range<Address> range;
    };

    FlowBy by = FlowBy::Connection;
    /// Significant bits of an IPv6 address, unless by Connection. An IPv6 link has a prefix of 64 bits (RFC 4291), in
    /// which a host may take any number of addresses. Squid's msfrs_user has the same default.
    unsigned prefix6 = 64;
    std::vector<Network> inside;

    FlowName nameOf(const FlowKey &) const;
    /// Whether a name has the same meaning under both rules.
    bool sameNames(const FlowRule &other) const { return by == other.by && prefix6 == other.prefix6; }
    /// Whether the address is in an inside network.
    bool isInside(const Address &, Family) const;
    /// The inside end of a packet: see FlowBy::Host.
    const Address &hostOf(const FlowKey &) const;
};

/// The address that a name has, unless it is by Connection: 198.18.1.2.
std::string AddressText(std::string_view name);

} // namespace msfrs::edge
