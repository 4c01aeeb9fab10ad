// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/flow_key.h"

#include <algorithm>
#include <arpa/inet.h>

namespace msfrs::edge {

void FlowName::add(const Address &a, const Family family)
{
    // Most significant byte first, as on the wire.
    const auto put = [this](const uint64_t word, const int bytes) {
        for (int n = bytes - 1; n >= 0; --n)
            bytes_[size_++] = static_cast<char>(word >> (8 * n));
    };
    if (family == Family::V6)
        put(a.high, 8);
    put(a.low, family == Family::V6 ? 8 : 4);
}

void FlowName::addPorts(const FlowKey &k)
{
    for (const uint32_t port : {k.sourcePort, k.destinationPort}) {
        for (const int shift : {16, 8, 0})
            bytes_[size_++] = static_cast<char>(port >> shift);
    }
    bytes_[size_++] = static_cast<char>(k.protocol);
}

bool FlowRule::isInside(const Address &a, const Family family) const
{
    return std::any_of(inside.begin(), inside.end(),
                       [&](const Network &n) { return n.family == family && n.range.contains(a); });
}

const Address &FlowRule::hostOf(const FlowKey &k) const
{
    return !isInside(k.source, k.family) && isInside(k.destination, k.family) ? k.destination : k.source;
}

FlowName FlowRule::nameOf(const FlowKey &k) const
{
    FlowName name;
    if (by == FlowBy::Connection) {
        name.add(k.source, k.family);
        name.add(k.destination, k.family);
        name.addPorts(k);
        return name;
    }
    const auto &address = by == FlowBy::Source ? k.source : by == FlowBy::Destination ? k.destination : hostOf(k);
    const auto beyond = LastBits(k.family == Family::V6 ? 128 - prefix6 : 0);
    name.add({address.high & ~beyond.high, address.low & ~beyond.low}, k.family);
    return name;
}

std::string AddressText(const std::string_view name)
{
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(name.size() == 4 ? AF_INET : AF_INET6, name.data(), text, sizeof(text));
    return text;
}

} // namespace msfrs::edge
