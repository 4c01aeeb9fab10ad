// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/conditioner.h"

#include "edge/packet.h"
#include "support/host.h"

#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

using namespace edge;

std::shared_ptr<const RuleTable> Table(const std::string &text)
{
    std::istringstream in(text);
    return std::make_shared<RuleTable>(ReadRules(in, "test"));
}

/// A UDP packet from 198.18.0.`host`, marked CS7 and ECT(0) by its sender.
std::vector<uint8_t> Udp(const uint8_t host, const size_t length)
{
    std::vector<uint8_t> p(length);
    p[0] = 0x45;
    p[1] = 56 << 2 | 2;
    p[9] = 17;
    p[12] = 198, p[13] = 18, p[15] = host;
    return p;
}

struct Path {
    explicit Path(const std::string &rules): conditioner(Table(rules)) {}

    Verdict send(std::vector<uint8_t> packet, const int64_t now)
    {
        sent = std::move(packet);
        const Packet p{sent.data(), sent.size()};
        Verdict v;
        conditioner.process(&p, 1, now, &v);
        return v;
    }

    Conditioner conditioner;
    std::vector<uint8_t> sent;
};

TEST(Conditioner, ClassifiesPolicesAndMarks)
{
    Path path("voice from=198.18.0.1 rate=8kbit depth=1500B mark=ef\n"
              "data from=198.18.0.2 mark=af21\n");
    auto v = path.send(Udp(1, 1000), 0);
    EXPECT_TRUE(v.pass);
    EXPECT_EQ(v.rule, 0u);
    EXPECT_EQ(v.cls, PerHop::Ef);
    EXPECT_EQ(path.sent[1], 46 << 2 | 2);
    v = path.send(Udp(1, 1000), 0);
    EXPECT_FALSE(v.pass);
    EXPECT_EQ(v.rule, 0u);
    v = path.send(Udp(1, 1000), 500 * Ms);
    EXPECT_TRUE(v.pass) << "500 bytes came";
    v = path.send(Udp(2, 60000), 500 * Ms);
    EXPECT_TRUE(v.pass) << "not policed";
    EXPECT_EQ(v.cls, PerHop::Af2);
    EXPECT_EQ(path.sent[1], 18 << 2 | 2);
}

TEST(Conditioner, TrustsNoMarkFromOutside)
{
    Path path("voice from=198.18.0.1 mark=ef\n");
    const auto v = path.send(Udp(9, 100), 0);
    EXPECT_TRUE(v.pass);
    EXPECT_EQ(v.rule, NoMatch);
    EXPECT_EQ(v.cls, PerHop::Be);
    EXPECT_EQ(path.sent[1], 2);
}

TEST(Conditioner, WhatIsNoIpPassesAsItIs)
{
    Path path("all mark=ef\n");
    for (const auto &odd : {std::vector<uint8_t>{}, std::vector<uint8_t>(19, 0x45), std::vector<uint8_t>(60, 0x12)}) {
        const auto v = path.send(odd, 0);
        EXPECT_TRUE(v.pass);
        EXPECT_EQ(v.rule, NoMatch);
        EXPECT_EQ(v.cls, PerHop::Be);
        EXPECT_EQ(path.sent, odd);
    }
}

TEST(Conditioner, ABurstIsJudgedInItsOrder)
{
    Path path("voice from=198.18.0.1 rate=8kbit depth=1500B mark=ef\n");
    std::vector<std::vector<uint8_t>> burst;
    for (int n = 0; n < 200; ++n)
        burst.push_back(n % 3 == 2 ? std::vector<uint8_t>(5) : Udp(static_cast<uint8_t>(1 + n % 3), 100));
    std::vector<Packet> packets;
    for (auto &b : burst)
        packets.push_back({b.data(), b.size()});
    std::vector<Verdict> verdicts(packets.size());
    path.conditioner.process(packets.data(), packets.size(), 0, verdicts.data());
    for (size_t n = 0; n < verdicts.size(); ++n) {
        EXPECT_EQ(verdicts[n].rule, n % 3 == 0 ? 0u : NoMatch) << n;
        EXPECT_EQ(verdicts[n].pass, n % 3 != 0 || n < 45) << n; // the first 15 of voice
    }
}

TEST(Conditioner, ReplacingRulesRefillsNoBucket)
{
    Path path("a from=198.18.0.1 rate=8kbit depth=1500B mark=ef\n"
              "b from=198.18.0.2 rate=8kbit depth=1500B mark=ef\n");
    EXPECT_TRUE(path.send(Udp(1, 1500), 0).pass);
    EXPECT_TRUE(path.send(Udp(2, 1500), 0).pass);
    path.conditioner.replace(Table("new mark=be from=198.18.0.3\n"
                                   "b from=198.18.0.2 rate=8kbit depth=1600B mark=ef\n"
                                   "a from=198.18.0.1 rate=8kbit depth=1500B mark=af11\n"));
    auto v = path.send(Udp(1, 1500), 0);
    EXPECT_FALSE(v.pass) << "the same bucket, in another line";
    EXPECT_EQ(v.rule, 2u);
    EXPECT_EQ(v.cls, PerHop::Af1);
    EXPECT_TRUE(path.send(Udp(2, 1500), 0).pass) << "another bucket: its depth is another";
    path.conditioner.replace(Table("b from=198.18.0.2 mark=ef\n"));
    EXPECT_TRUE(path.send(Udp(2, 9000), 0).pass);
    EXPECT_EQ(path.send(Udp(1, 100), 0).rule, NoMatch) << "the one rule left is of another host";
}

} // namespace
} // namespace msfrs::test
