// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// IP packets without link header: parsing the fields that rules test, and marking.
#pragma once

#include "edge/match.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace msfrs::edge {

/// Parses the fields of a packet. It is untrusted: nothing beyond `length` is read, and extension headers of IPv6
/// are followed at most MostExtensions deep. Ports are those of TCP, UDP, UDP-Lite, DCCP and SCTP; a fragment other
/// than the first, a truncated packet and all other protocols have none (NoPort).
/// \param transport if not null: set to the offset of the transport header, 0 for a later fragment and for a packet
///        truncated before it
/// \returns nothing for a packet without a complete IPv4 or IPv6 header
std::optional<FlowKey> ReadKey(const uint8_t *packet, size_t length, size_t *transport = nullptr);

constexpr int MostExtensions = 8; ///< headers: bounds the time for a packet

/// Whether packets of an IP protocol have ports.
bool HasPorts(uint32_t protocol);

/// Sets the differentiated services code point (0..63) of a packet that ReadKey() could parse. The two bits of ECN do
/// not change. The checksum of an IPv4 header is updated (RFC 1624, equation 3): a correct one stays correct, a wrong
/// one stays wrong.
void Mark(uint8_t *packet, unsigned dscp);

/// The code point of a packet that ReadKey() could parse.
unsigned DscpOf(const uint8_t *packet);
/// Its two bits of explicit congestion notification (RFC 3168).
unsigned EcnOf(const uint8_t *packet);
enum Ecn : unsigned { NotCapable = 0, Capable1 = 1, Capable0 = 2, CongestionExperienced = 3 };

} // namespace msfrs::edge
