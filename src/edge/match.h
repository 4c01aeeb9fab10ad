// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What a packet is known by at the edge, and what a rule asks of it.
#ifndef MSFRS_EDGE_MATCH_H
#define MSFRS_EDGE_MATCH_H

#include <cstdint>
#include <optional>

namespace msfrs::edge {

/// The numeric value of an address. An IPv4 address is in the low 32 bits, the rest is 0.
struct Address {
    uint64_t high = 0, low = 0;

    friend bool operator==(const Address &a, const Address &b) { return a.high == b.high && a.low == b.low; }
    friend bool operator!=(const Address &a, const Address &b) { return !(a == b); }
    friend bool operator<(const Address &a, const Address &b)
    {
        return a.high < b.high || (a.high == b.high && a.low < b.low);
    }
    friend bool operator<=(const Address &a, const Address &b) { return !(b < a); }
    /// The next address; that of the last is the first.
    Address next() const { return {high + (low == UINT64_MAX), low + 1}; }
};

constexpr Address LastAddress{UINT64_MAX, UINT64_MAX};
constexpr uint32_t LastAddress4 = UINT32_MAX;

enum class Family : uint8_t { V4 = 4, V6 = 6 };

/// The port of a packet that has none: later fragments, ICMP, what is cut short. A rule that names ports never
/// matches it, a rule for any port does.
constexpr uint32_t NoPort = 65536;

/// The fields that rules look at.
struct FlowKey {
    Address source, destination;
    uint32_t sourcePort = NoPort, destinationPort = NoPort; ///< 0..65535 or NoPort
    Family family = Family::V4;
    uint8_t protocol = 0;
};

/// A closed range.
template <class T>
struct Range {
    T first, last;
    bool contains(const T &x) const { return first <= x && x <= last; }
    bool covers(const Range &r) const { return first <= r.first && r.last <= last; }
};

/// A rule's condition: every field of the packet lies in the rule's range.
struct Match {
    std::optional<Family> family; ///< nothing: either; both address ranges must then be whole
    Range<Address> source{{}, LastAddress}, destination{{}, LastAddress};
    Range<uint32_t> sourcePort{0, NoPort}, destinationPort{0, NoPort};
    Range<uint32_t> protocol{0, 255};

    bool contains(const FlowKey &k) const
    {
        return protocol.contains(k.protocol) && destinationPort.contains(k.destinationPort) &&
            sourcePort.contains(k.sourcePort) && (!family || *family == k.family) &&
            destination.contains(k.destination) && source.contains(k.source);
    }
    /// Whether it contains every packet that the other does.
    bool covers(const Match &m) const
    {
        return (!family || family == m.family) && protocol.covers(m.protocol) && sourcePort.covers(m.sourcePort) &&
            destinationPort.covers(m.destinationPort) && source.covers(m.within(m.source)) &&
            destination.covers(m.within(m.destination));
    }

private:
    /// The addresses of a range that there are in the family.
    Range<Address> within(const Range<Address> &r) const
    {
        const Address last{0, LastAddress4};
        return family == Family::V4 && last < r.last ? Range<Address>{r.first, last} : r;
    }
};

constexpr uint32_t NoMatch = UINT32_MAX;

} // namespace msfrs::edge

#endif
