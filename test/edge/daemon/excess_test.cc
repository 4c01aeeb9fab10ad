// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The reports to Squid, and what happens to them while Squid does not listen.
#include "edge/daemon/excess.h"
#include "config/fields.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace msfrs::edge {
namespace {

/// Squid's end.
class Squid {
public:
    Squid(): path("/tmp/msfrs-excess-test-" + std::to_string(getpid()))
    {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        path.copy(at.sun_path, sizeof(at.sun_path) - 1);
        unlink(path.c_str());
        EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr *>(&at), sizeof(at)), 0);
    }
    ~Squid() { unlink(path.c_str()); }
    Squid(const Squid &) = delete;

    /// The received datagrams.
    std::vector<std::string> read() const
    {
        std::vector<std::string> all;
        std::string datagram(65536, 0);
        for (ssize_t got; (got = recv(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT)) >= 0;)
            all.push_back(datagram.substr(0, static_cast<size_t>(got)));
        return all;
    }

    const std::string path;

private:
    Descriptor socket_{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

class ExcessTest : public ::testing::Test {
protected:
    static FlowRule Users()
    {
        FlowRule rule;
        const std::string where;
        for (const auto network : {"198.18.0.0/16", "2001:2::/48"}) {
            const auto range = Field{"inside", network, where}.addresses();
            rule.inside.push_back({range.family, range.range});
        }
        return rule;
    }
    static FlowKey To(const char *const address)
    {
        const std::string where;
        const auto range = Field{"to", address, where}.addresses();
        FlowKey key;
        key.family = range.family;
        key.destination = range.range.first;
        return key;
    }
    /// A user with number n.
    static FlowKey ToUser(const uint32_t n)
    {
        auto key = To("2001:2::");
        key.destination.low = n;
        return key;
    }

    Squid squid;
    void packet(const FlowKey &key, const uint64_t bytes) { excess.packet(key, bytes, users); }

    const FlowRule users = Users();
    Excess excess{squid.path};
};

using Datagrams = std::vector<std::string>;

TEST_F(ExcessTest, TellsTheSumOfEachReceiver)
{
    excess.report();
    EXPECT_EQ(squid.read(), Datagrams()) << "nothing to tell";
    packet(To("198.18.3.7"), 1500);
    packet(To("198.18.3.7"), 40);
    excess.report();
    EXPECT_EQ(squid.read(), Datagrams{"198.18.3.7 1540\n"});
    packet(To("2001:2:0:1::c"), 1280);
    excess.report();
    EXPECT_EQ(squid.read(), Datagrams{"2001:2:0:1::c 1280\n"}) << "and nothing twice";
    EXPECT_EQ(excess.counts().bytes, 2820u);
    EXPECT_EQ(excess.counts().datagrams, 2u);
    EXPECT_EQ(excess.counts().lostBytes, 0u);
}

TEST_F(ExcessTest, WhoIsOutsideIsOfNoClass)
{
    packet(To("198.19.0.1"), 100);
    packet(To("2001:2:1::1"), 10);
    packet(To("198.18.0.1"), 1);
    excess.report();
    EXPECT_EQ(squid.read(), Datagrams{"198.18.0.1 1\n- 110\n"});
    EXPECT_EQ(excess.counts().bytes, 1u);
    EXPECT_EQ(excess.counts().outsideBytes, 110u);
}

TEST_F(ExcessTest, ManyReceiversAreToldInDatagramsThatSquidTakes)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < 1000; ++n) {
        packet(ToUser(n), n + 1);
        sum += n + 1;
    }
    packet(To("192.0.2.1"), 5);
    excess.report();
    const auto datagrams = squid.read();
    EXPECT_GT(datagrams.size(), 1u);
    size_t lines = 0;
    for (const auto &d : datagrams) {
        EXPECT_LE(d.size(), Excess::LongestDatagram);
        EXPECT_EQ(d.back(), '\n');
        lines += static_cast<size_t>(std::count(d.begin(), d.end(), '\n'));
    }
    EXPECT_EQ(lines, 1001u);
    EXPECT_EQ(excess.counts().bytes, sum);
}

TEST_F(ExcessTest, MemoryIsBounded)
{
    for (uint32_t n = 0; n < Excess::MostReceivers + 10; ++n)
        packet(ToUser(n), 1);
    packet(ToUser(0), 1);
    while (excess.counts().bytes < Excess::MostReceivers + 1) {
        excess.report();
        squid.read();
    }
    EXPECT_EQ(excess.counts().bytes, Excess::MostReceivers + 1);
    EXPECT_EQ(excess.counts().outsideBytes, 10u) << "who came too late is of no class";
}

TEST_F(ExcessTest, WaitsForASquidThatIsBehindWithoutWaiting)
{
    uint64_t told = 0;
    while (excess.counts().waits == 0) { // until the socket is full
        packet(To("198.18.0.1"), 1000);
        packet(To("192.0.2.1"), 10);
        ++told;
        ASSERT_LT(told, 100'000u);
        excess.report();
    }
    EXPECT_EQ(excess.counts().bytes, 1000 * (told - 1));
    squid.read();
    excess.report();
    EXPECT_EQ(squid.read(), Datagrams{"198.18.0.1 1000\n- 10\n"});
    EXPECT_EQ(excess.counts().bytes, 1000 * told);
    EXPECT_EQ(excess.counts().outsideBytes, 10 * told);
    EXPECT_EQ(excess.counts().lostBytes, 0u);
}

TEST_F(ExcessTest, WhatNobodyReadsIsLostAndCounted)
{
    unlink(squid.path.c_str());
    packet(To("198.18.0.1"), 1000);
    packet(To("192.0.2.1"), 10);
    excess.report();
    EXPECT_EQ(excess.counts().lostBytes, 1010u);
    const Squid restarted;
    packet(To("198.18.0.1"), 7);
    excess.report();
    EXPECT_EQ(restarted.read(), Datagrams{"198.18.0.1 7\n"}) << "it has not to pay for the time without Squid";
}

TEST_F(ExcessTest, NoLineHasMoreThanSquidTakes)
{
    packet(To("198.18.0.1"), Excess::MostBytes + 5);
    excess.report();
    EXPECT_EQ(squid.read(), Datagrams{"198.18.0.1 10000000000\n"});
    EXPECT_EQ(excess.counts().lostBytes, 5u);
}

} // namespace
} // namespace msfrs::edge
