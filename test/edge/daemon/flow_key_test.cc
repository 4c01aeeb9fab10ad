// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/flow_key.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace edge;

constexpr Address Inside{0, 0xc6120102}, Outside{0, 0xc6130001}; // 198.18.1.2, 198.19.0.1

FlowKey Key(const Address source, const Address destination)
{
    FlowKey k;
    k.source = source;
    k.destination = destination;
    k.sourcePort = 1024;
    k.destinationPort = 80;
    k.protocol = 6;
    return k;
}

FlowKey Key6(const uint64_t low)
{
    FlowKey k;
    k.family = Family::V6;
    k.source = {0x20010db800000001, low};
    k.destination = {0x20010db800000002, 1};
    return k;
}

unsigned Byte(const std::string_view s, const size_t n) { return static_cast<unsigned char>(s[n]); }

/// \param at offset of the 3 bytes of a port or NoPort
std::string EndText(const std::string_view address, const std::string_view name, const size_t at)
{
    const unsigned port = Byte(name, at) << 16 | Byte(name, at + 1) << 8 | Byte(name, at + 2);
    const auto text = AddressText(address);
    if (port == NoPort)
        return text;
    return (address.size() == 4 ? text : "[" + text + "]") + ":" + std::to_string(port);
}

/// A flow's name: 198.18.1.2, or 6 198.18.1.2:1024 > 198.19.0.1:80.
std::string Text(const FlowRule &rule, const FlowKey &k)
{
    const auto flow = rule.nameOf(k);
    const auto name = flow.view();
    if (name.size() == 4 || name.size() == 16)
        return AddressText(name);
    const size_t size = (name.size() - 7) / 2; // without two ports of 3 bytes and the protocol
    return std::to_string(Byte(name, name.size() - 1)) + " " + EndText(name.substr(0, size), name, 2 * size) + " > " +
        EndText(name.substr(size, size), name, 2 * size + 3);
}

TEST(FlowRule, WhatIsOneFlow)
{
    FlowRule rule;
    const auto k = Key(Inside, Outside);
    EXPECT_EQ(Text(rule, k), "6 198.18.1.2:1024 > 198.19.0.1:80");
    rule.by = FlowBy::Source;
    EXPECT_EQ(Text(rule, k), "198.18.1.2");
    rule.by = FlowBy::Destination;
    EXPECT_EQ(Text(rule, k), "198.19.0.1");
}

TEST(FlowRule, AHostIsTheInsideEndInBothDirections)
{
    FlowRule rule;
    rule.by = FlowBy::Host;
    rule.inside = {{Family::V4, {{0, 0xc6120000}, {0, 0xc612ffff}}}};
    EXPECT_EQ(Text(rule, Key(Inside, Outside)), "198.18.1.2");
    EXPECT_EQ(Text(rule, Key(Outside, Inside)), "198.18.1.2");
    EXPECT_EQ(Text(rule, Key(Outside, Outside)), "198.19.0.1");
    EXPECT_FALSE(rule.isInside({0, 0xc6120001}, Family::V6)); // the same number in another family is another address
}

TEST(FlowRule, APrefixOfIpv6)
{
    FlowRule rule;
    rule.by = FlowBy::Source;
    EXPECT_EQ(Text(rule, Key6(5)), "2001:db8:0:1::") << "unless said, a host has all addresses of its network";
    EXPECT_EQ(Text(rule, Key6(5)), Text(rule, Key6(6)));
    rule.prefix6 = 128;
    EXPECT_NE(Text(rule, Key6(5)), Text(rule, Key6(6)));
    for (const unsigned bits : {1u, 63u, 64u, 65u, 127u}) {
        rule.prefix6 = bits;
        EXPECT_EQ(Text(rule, Key6(4)), Text(rule, Key6(5))) << bits;
    }
    rule.prefix6 = 64;
    EXPECT_EQ(Text(rule, Key6(5)), "2001:db8:0:1::");
    EXPECT_EQ(Text(rule, Key(Inside, Outside)), "198.18.1.2"); // IPv4 addresses are not truncated
}

TEST(FlowRule, WithoutPorts)
{
    auto k = Key6(5);
    k.protocol = 58;
    EXPECT_EQ(Text(FlowRule(), k), "58 2001:db8:0:1::5 > 2001:db8:0:2::1");
    k.sourcePort = k.destinationPort = 0; // port 0 differs from no port
    EXPECT_EQ(Text(FlowRule(), k), "58 [2001:db8:0:1::5]:0 > [2001:db8:0:2::1]:0");
}

} // namespace
} // namespace msfrs::test
