// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/packet.h"

namespace msfrs::edge {

namespace {

enum Protocol : uint8_t {
    HopByHop = 0, Tcp = 6, Dccp = 33, Udp = 17, Routing = 43, FragmentHeader = 44, Authentication = 51,
    DestinationOptions = 60, Sctp = 132, Mobility = 135, UdpLite = 136,
};

uint16_t Get16(const uint8_t *const p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }

/// \param at offset of the transport header
void ReadPorts(const uint8_t *const packet, const size_t length, const size_t at, FlowKey &key, size_t &transport)
{
    if (at <= length)
        transport = at;
    if (!HasPorts(key.protocol) || length < at + 4)
        return;
    key.sourcePort = Get16(packet + at);
    key.destinationPort = Get16(packet + at + 2);
}

std::optional<FlowKey> ReadKey4(const uint8_t *const packet, const size_t length, size_t &transport)
{
    const size_t header = 4u * (packet[0] & 0xf);
    if (length < 20 || header < 20 || length < header)
        return {};
    FlowKey key;
    key.protocol = packet[9];
    key.source = AddressOf(packet + 12, 4);
    key.destination = AddressOf(packet + 16, 4);
    if ((Get16(packet + 6) & 0x1fff) == 0) // the fragment's offset
        ReadPorts(packet, length, header, key, transport);
    return key;
}

std::optional<FlowKey> ReadKey6(const uint8_t *const packet, const size_t length, size_t &transport)
{
    if (length < 40)
        return {};
    FlowKey key;
    key.family = Family::V6;
    key.protocol = packet[6];
    key.source = AddressOf(packet + 8, 16);
    key.destination = AddressOf(packet + 24, 16);
    size_t at = 40;
    for (int n = 0;; ++n) {
        const auto next = key.protocol;
        const bool extension = next == HopByHop || next == Routing || next == FragmentHeader ||
            next == Authentication || next == DestinationOptions || next == Mobility;
        if (!extension) {
            ReadPorts(packet, length, at, key, transport);
            return key;
        }
        if (n == MostExtensions || length < at + 8)
            return key; // the protocol is then that of the header that stopped parsing
        key.protocol = packet[at];
        if (next == FragmentHeader && (Get16(packet + at + 2) & 0xfff8))
            return key;
        at += next == FragmentHeader ? 8
            : next == Authentication ? 4u * (packet[at + 1] + 2)
                                     : 8u * (packet[at + 1] + 1);
    }
}

} // namespace

bool HasPorts(const uint32_t protocol)
{
    return protocol == Tcp || protocol == Udp || protocol == UdpLite || protocol == Dccp || protocol == Sctp;
}

std::optional<FlowKey> ReadKey(const uint8_t *const packet, const size_t length, size_t *transport)
{
    size_t unasked = 0;
    auto &at = transport ? *transport : unasked;
    at = 0;
    if (length == 0)
        return {};
    switch (packet[0] >> 4) {
    case 4: return ReadKey4(packet, length, at);
    case 6: return ReadKey6(packet, length, at);
    default: return {};
    }
}

void Mark(uint8_t *const packet, const unsigned dscp)
{
    if (packet[0] >> 4 == 6) { // version 4, traffic class 8, flow label 20 bits
        const auto both = static_cast<unsigned>(Get16(packet)) & 0xf03fu;
        packet[0] = static_cast<uint8_t>((both | dscp << 6) >> 8);
        packet[1] = static_cast<uint8_t>(both | dscp << 6);
        return;
    }
    const unsigned old = Get16(packet);
    packet[1] = static_cast<uint8_t>(dscp << 2 | (packet[1] & 3u));
    // HC' = ~(~HC + ~m + m'), in ones' complement
    unsigned sum = (~unsigned(Get16(packet + 10)) & 0xffff) + (~old & 0xffff) + Get16(packet);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10] = static_cast<uint8_t>(~sum >> 8);
    packet[11] = static_cast<uint8_t>(~sum);
}

unsigned DscpOf(const uint8_t *const packet)
{
    return packet[0] >> 4 == 6 ? (Get16(packet) >> 6 & 0x3fu) : packet[1] >> 2;
}

unsigned EcnOf(const uint8_t *const packet) { return packet[0] >> 4 == 6 ? packet[1] >> 4 & 3u : packet[1] & 3u; }

} // namespace msfrs::edge
