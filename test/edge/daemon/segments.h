// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Synthetic TCP segments, with IPv4 or IPv6 headers and options.
#pragma once

#include "edge/match.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace msfrs::test {

struct SegmentOf {
    uint8_t user = 1;      ///< 10.0.0.user, or 2001:db8::user
    uint8_t server = 1;    ///< 198.19.0.server, or 2001:db8:1::server
    uint16_t port = 1000;  ///< of the user
    bool down = false;     ///< sent by the server
    Family family = Family::V4;
    uint32_t from = 0, acknowledged = 0, payload = 0;
    uint8_t flags = 0x10;  ///< ACK
    struct Stamps {
        uint32_t stamp, echo;
    };
    std::optional<Stamps> stamps;
};

/// The segment's headers, without payload.
inline std::vector<uint8_t> MadeSegment(const SegmentOf &of)
{
    std::vector<uint8_t> b;
    const auto put32 = [&](const uint32_t v) {
        for (int shift = 24; shift >= 0; shift -= 8)
            b.push_back(static_cast<uint8_t>(v >> shift));
    };
    const auto address = [&](const bool user) {
        if (of.family == Family::V4) {
            put32((user ? 0x0a000000u : 0xc6130000u) + (user ? of.user : of.server));
            return;
        }
        put32(0x20010db8);
        put32(user ? 0 : 0x10000);
        put32(0);
        put32(user ? of.user : of.server);
    };
    if (of.family == Family::V4) {
        put32(0x45000000);
        put32(0);
        put32(0x40060000);
    } else {
        put32(0x60000000);
        put32(0x00000640);
    }
    address(!of.down);
    address(of.down);
    const uint32_t ports[] = {of.port, 80};
    put32(of.down ? ports[1] << 16 | ports[0] : ports[0] << 16 | ports[1]);
    put32(of.from);
    put32(of.acknowledged);
    put32((of.stamps ? 8u : 5u) << 28 | uint32_t{of.flags} << 16);
    put32(0);
    if (of.stamps) {
        put32(0x0101080a); // two NOPs, and the option
        put32(of.stamps->stamp);
        put32(of.stamps->echo);
    }
    return b;
}

} // namespace msfrs::test
