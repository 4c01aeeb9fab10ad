// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The fields that classify a packet at the edge, and the condition of a rule.
#pragma once

#include "config/address.h"

#include <cstdint>
#include <optional>

namespace msfrs {
class Fields;
}

namespace msfrs::edge {

/// The port of a packet that has none: later fragments, ICMP, truncated packets. A rule that names ports never matches
/// it, a rule for any port does.
constexpr uint32_t NoPort = 65536;

/// The fields that rules test.
struct FlowKey {
    Address source, destination;
    uint32_t sourcePort = NoPort, destinationPort = NoPort; ///< 0..65535 or NoPort
    Family family = Family::V4;
    uint8_t protocol = 0;

    friend bool operator==(const FlowKey &a, const FlowKey &b)
    {
        return a.sourcePort == b.sourcePort && a.destinationPort == b.destinationPort && a.source == b.source &&
            a.destination == b.destination && a.family == b.family && a.protocol == b.protocol;
    }
};

/// A rule's condition: every field of the packet lies in the rule's range.
struct Match {
    std::optional<Family> family; ///< empty: either; both address ranges must then be complete
    Range<Address> source{{}, LastAddress}, destination{{}, LastAddress};
    Range<uint32_t> sourcePort{0, NoPort}, destinationPort{0, NoPort};
    Range<uint32_t> protocol{0, 255};

    bool contains(const FlowKey &k) const
    {
        return protocol.contains(k.protocol) && destinationPort.contains(k.destinationPort) &&
            sourcePort.contains(k.sourcePort) && (!family || *family == k.family) &&
            destination.contains(k.destination) && source.contains(k.source);
    }
    /// Whether it contains every packet that the other one contains.
    bool covers(const Match &m) const
    {
        return (!family || family == m.family) && protocol.covers(m.protocol) && sourcePort.covers(m.sourcePort) &&
            destinationPort.covers(m.destinationPort) && source.covers(m.within(m.source)) &&
            destination.covers(m.within(m.destination));
    }

private:
    /// The addresses of a range that exist in the family.
    Range<Address> within(const Range<Address> &r) const
    {
        const Address last{0, LastAddress4};
        return family == Family::V4 && last < r.last ? Range<Address>{r.first, last} : r;
    }
};

/// The condition given by the fields from, to, protocol, from-port and to-port of a line. \throws RuleError
Match MatchOf(const Fields &);

constexpr uint32_t NoMatch = UINT32_MAX;

} // namespace msfrs::edge
