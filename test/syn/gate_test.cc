// SPDX-License-Identifier: GPL-2.0-or-later
#include "syn/gate.h"

#include "edge/daemon/packets.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace syn;

constexpr msfrs_time Second = 1'000'000'000;

/// The server of PacketOf{.destination = n}.
Server ServerAt(const uint8_t n, const uint16_t port = 80)
{
    return {Family::V4, {0, (198u << 24) + (19u << 16) + n}, port};
}

class KeptProbes final : public Prober {
public:
    std::optional<Outcome> start(const Server &server, const Address &client) override
    {
        clients.push_back(client);
        started.push_back(server);
        return atOnce;
    }
    void stop(const Server &server) override { stopped.push_back(server); }

    std::vector<Server> started, stopped;
    std::vector<Address> clients;
    std::optional<Outcome> atOnce;
};

struct GateTest : testing::Test {
    /// A SYN from 198.18.0.1 unless `of` has another source.
    uint32_t syn(PacketOf of, const msfrs_time now = 0)
    {
        of.protocol = 6;
        of.tcpFlags = 2;
        return packet(Make(of), now);
    }
    uint32_t packet(MadePacket made, const msfrs_time now = 0)
    {
        gate.arrive({++id, made.mark, made.bytes.data(), made.captured, made.length}, now);
        return id;
    }
    /// The verdicts since the last call: "1" passes, "1:0x200" with a mark, "-1" is dropped.
    std::string verdicts()
    {
        std::ostringstream text;
        for (const auto &v : given.all) {
            text << (text.tellp() ? " " : "") << (v.pass ? "" : "-") << v.id;
            if (v.mark)
                text << ":0x" << std::hex << *v.mark << std::dec;
        }
        given.all.clear();
        return text.str();
    }

    KeptProbes probes;
    KeptVerdicts given;
    Gate gate{probes, given, {}};
    uint32_t id = 0;
};

PacketOf To(const uint8_t server, const uint16_t from = 1000, const uint8_t user = 1)
{
    PacketOf of;
    of.source = user;
    of.destination = server;
    of.sourcePort = from;
    return of;
}

TEST_F(GateTest, ASynWaitsUntilTheServerHasAnswered)
{
    syn(To(1));
    EXPECT_EQ(verdicts(), "");
    ASSERT_EQ(probes.started.size(), 1u);
    EXPECT_EQ(probes.started[0].address, ServerAt(1).address);
    EXPECT_EQ(probes.started[0].port, 80);
    EXPECT_EQ(probes.clients[0], (Address{0, (198u << 24) + (18u << 16) + 1}));
    gate.finish(ServerAt(1), Outcome::Answered, Second / 10);
    EXPECT_EQ(verdicts(), "1");
    EXPECT_EQ(gate.held(), 0u);
}

TEST_F(GateTest, AKnownServerIsNotAskedAgainUntilItIsForgotten)
{
    syn(To(1));
    gate.finish(ServerAt(1), Outcome::Answered, 0);
    syn(To(1, 1001), Gate::Memory - 1);
    EXPECT_EQ(verdicts(), "1 2");
    EXPECT_EQ(probes.started.size(), 1u);
    auto other = To(1, 1002);
    other.destinationPort = 443; // another server
    syn(other, Gate::Memory - 1);
    syn(To(1, 1003), Gate::Memory);
    EXPECT_EQ(verdicts(), "");
    EXPECT_EQ(probes.started.size(), 3u);
}

TEST_F(GateTest, OneProbeServesAllSynsThatWaitForIt)
{
    syn(To(1, 1000, 1));
    syn(To(1, 1000, 2));
    syn(To(1, 1001, 1));
    EXPECT_EQ(probes.started.size(), 1u);
    gate.finish(ServerAt(1), Outcome::Answered, 0);
    EXPECT_EQ(verdicts(), "1 3 2"); // by client
}

TEST_F(GateTest, ARefusalIsLeftToTheServerAndNotRemembered)
{
    auto marked = To(1);
    marked.mark = 0x7;
    syn(marked);
    gate.finish(ServerAt(1), Outcome::Refused, 0);
    EXPECT_EQ(verdicts(), "1:0x207");
    syn(To(1, 1001), 1);
    EXPECT_EQ(probes.started.size(), 2u);
}

TEST_F(GateTest, NoRouteIsKnownAtOnce)
{
    probes.atOnce = Outcome::Refused;
    syn(To(1));
    EXPECT_EQ(verdicts(), "1:0x200");
    EXPECT_EQ(gate.next(), std::nullopt);
}

TEST_F(GateTest, WhatCannotBeProbedPassesToSquid)
{
    probes.atOnce = Outcome::Failed;
    syn(To(1));
    probes.atOnce.reset();
    syn(To(2));
    gate.finish(ServerAt(2), Outcome::Failed, 0);
    EXPECT_EQ(verdicts(), "1 2");
    EXPECT_EQ(gate.known(), 0u);
}

TEST_F(GateTest, ASilentServerStaysSilentForTheClient)
{
    syn(To(1), 0);
    syn(To(1), Second); // its retransmission
    EXPECT_EQ(verdicts(), "-2");
    EXPECT_EQ(gate.next(), Gate::Patience);
    gate.expire(Gate::Patience - 1);
    EXPECT_EQ(verdicts(), "");
    gate.expire(Gate::Patience);
    EXPECT_EQ(verdicts(), "-1");
    EXPECT_EQ(probes.stopped.size(), 1u);
    EXPECT_EQ(gate.next(), std::nullopt);
    syn(To(1), Gate::Patience + Second); // its next retransmission probes anew, and the server is back
    EXPECT_EQ(probes.started.size(), 2u);
    gate.finish(ServerAt(1), Outcome::Answered, Gate::Patience + Second);
    EXPECT_EQ(verdicts(), "3");
}

TEST_F(GateTest, EachUserAndAllTogetherAreBounded)
{
    for (size_t n = 0; n < Gate::MostHeldOfUser; ++n)
        syn(To(static_cast<uint8_t>(n % 200), static_cast<uint16_t>(1000 + n)));
    EXPECT_EQ(verdicts(), "");
    syn(To(1, 50000)); // as without the gate
    EXPECT_EQ(verdicts(), std::to_string(id));
    for (uint8_t user = 2; gate.held() < Gate::MostHeld; ++user)
        for (size_t n = 0; n < Gate::MostHeldOfUser; ++n)
            syn(To(1, static_cast<uint16_t>(1000 + n), user));
    EXPECT_EQ(verdicts(), "");
    syn(To(1, 1000, 99));
    EXPECT_EQ(verdicts(), std::to_string(id));
    gate.expire(Gate::Patience);
    EXPECT_EQ(given.all.size(), Gate::MostHeld);
    EXPECT_EQ(gate.held() + gate.probes(), 0u);
    given.all.clear();
    syn(To(1), Gate::Patience); // their shares are free again
    EXPECT_EQ(verdicts(), "");
}

TEST_F(GateTest, KnownServersAreBounded)
{
    probes.atOnce = Outcome::Answered;
    for (uint32_t n = 0; n <= Gate::MostKnown; ++n) {
        auto of = To(static_cast<uint8_t>(n >> 15), 1000);
        of.destinationPort = static_cast<uint16_t>(n & 0x7fff);
        syn(of);
    }
    EXPECT_EQ(gate.known(), Gate::MostKnown);
    probes.atOnce.reset();
    given.all.clear();
    auto first = To(0);
    first.destinationPort = 0;
    syn(first); // forgotten in favour of the latest
    EXPECT_EQ(verdicts(), "");
}

TEST_F(GateTest, AnIPv6NetworkIsOneUser)
{
    const auto six = [](const uint8_t network, const uint16_t host) {
        MadePacket p;
        p.captured = 60;
        p.bytes[0] = 0x60;
        p.bytes[6] = 6;
        p.bytes[8] = 0x20; // source 2000:0:0:network::host
        p.bytes[15] = network;
        p.bytes[22] = static_cast<uint8_t>(host >> 8);
        p.bytes[23] = static_cast<uint8_t>(host);
        p.bytes[39] = 1; // destination ::1
        p.bytes[43] = 80;
        return p;
    };
    for (uint16_t n = 0; n < Gate::MostHeldOfUser; ++n)
        packet(six(1, n));
    EXPECT_EQ(verdicts(), "");
    ASSERT_EQ(probes.started.size(), 1u);
    EXPECT_EQ(probes.started[0].family, Family::V6);
    EXPECT_EQ(probes.started[0].address, (Address{0, 1}));
    packet(six(1, 60000));
    EXPECT_EQ(verdicts(), std::to_string(id));
    packet(six(2, 1));
    EXPECT_EQ(verdicts(), "");
}

TEST_F(GateTest, OddPacketsPass)
{
    auto cut = Make(To(1));
    cut.bytes[9] = 6;
    for (const uint32_t captured : {0u, 1u, 19u, 20u, 23u}) {
        cut.captured = captured;
        packet(cut);
        EXPECT_EQ(verdicts(), std::to_string(id)) << captured;
    }
    packet(Make(To(1))); // UDP
    EXPECT_EQ(verdicts(), std::to_string(id));
    EXPECT_TRUE(probes.started.empty());
}

TEST_F(GateTest, AtTheEndAllWaitingSynsPassToSquid)
{
    syn(To(1));
    syn(To(2));
    gate.release();
    EXPECT_EQ(verdicts(), "1 2");
    EXPECT_EQ(probes.stopped.size(), 2u);
    EXPECT_EQ(gate.held() + gate.probes(), 0u);
}

} // namespace
} // namespace msfrs::test
