// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Packets from the network. A parsed packet is marked with every code point: the mark is set, no field that rules
/// match has changed, and the old mark restores the packet, including its checksum if that was right.
#include "edge/packet.h"
#include "require.h"

#include <algorithm>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    using namespace msfrs;
    using namespace edge;
    const auto key = ReadKey(data, size);
    if (!key)
        return 0;
    Require(key->sourcePort <= NoPort && key->destinationPort <= NoPort);
    Require((key->sourcePort == NoPort) == (key->destinationPort == NoPort));
    Require(key->family == Family::V6 ||
            (key->source.high == 0 && key->source.low <= LastAddress4 && key->destination.low <= LastAddress4));

    std::vector<uint8_t> packet(data, data + size);
    const unsigned before = DscpOf(packet.data());
    for (unsigned dscp = 0; dscp < 64; ++dscp) {
        Mark(packet.data(), dscp);
        Require(DscpOf(packet.data()) == dscp);
        const auto now = ReadKey(packet.data(), size);
        Require(now && now->source == key->source && now->destination == key->destination &&
                now->protocol == key->protocol && now->sourcePort == key->sourcePort &&
                now->destinationPort == key->destinationPort);
    }
    Mark(packet.data(), before);
    // Ones' complement has two forms of 0, so that a checksum may return in the other one.
    if (key->family == Family::V4 && packet[10] + packet[11] != data[10] + data[11]) {
        Require((data[10] == 0 && data[11] == 0) || (data[10] == 0xff && data[11] == 0xff));
        std::copy(data + 10, data + 12, packet.begin() + 10);
    }
    Require(std::equal(packet.begin(), packet.end(), data));
    return 0;
}
