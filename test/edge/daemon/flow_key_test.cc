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

std::string Text(const FlowRule &rule, const FlowKey &k) { return FlowText(rule.nameOf(k).view()); }

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
    EXPECT_EQ(FlowText(""), "others");
}

} // namespace
} // namespace msfrs::test
