// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/packet.h"

#include "support/host.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace msfrs::test {
namespace {

using namespace edge;
using Bytes = std::vector<uint8_t>;

/// ReadKey() of memory that ends with the packet, for the address sanitizer.
std::optional<FlowKey> Read(const Bytes &b)
{
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[b.size()]);
    std::copy(b.begin(), b.end(), exact.get());
    return ReadKey(exact.get(), b.size());
}

uint32_t Fold(uint32_t sum) { return sum > 0xffff ? Fold((sum & 0xffff) + (sum >> 16)) : sum; }

/// The ones' complement sum of a header: 0xffff if its checksum is right.
uint32_t SumOf(const Bytes &b, const size_t header)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < header; i += 2)
        sum += static_cast<uint32_t>(b[i] << 8 | b[i + 1]);
    return Fold(sum);
}

/// An IPv4 packet 198.18.0.1:258 -> 198.19.0.2:772 with `options` words of options.
Bytes Packet4(const uint8_t protocol, const unsigned options = 0, const uint16_t fragment = 0)
{
    Bytes b(20 + 4 * options + 8);
    b[0] = static_cast<uint8_t>(0x45 + options);
    b[6] = static_cast<uint8_t>(fragment >> 8);
    b[7] = static_cast<uint8_t>(fragment);
    b[8] = 64;
    b[9] = protocol;
    const uint8_t ends[] = {198, 18, 0, 1, 198, 19, 0, 2}, ports[] = {1, 2, 3, 4};
    std::copy(std::begin(ends), std::end(ends), b.begin() + 12);
    std::copy(std::begin(ports), std::end(ports), b.end() - 8);
    const auto sum = 0xffff - SumOf(b, b.size() - 8);
    b[10] = static_cast<uint8_t>(sum >> 8);
    b[11] = static_cast<uint8_t>(sum);
    return b;
}

/// An IPv6 packet 2001:db8::1 -> 2001:db8::2 with extension headers, each given by its type and whole contents.
Bytes Packet6(const std::vector<std::pair<uint8_t, Bytes>> &extensions, const uint8_t protocol)
{
    Bytes b(40);
    b[0] = 0x60;
    for (const size_t at : {8, 24}) {
        b[at] = 0x20, b[at + 1] = 1, b[at + 2] = 0xd, b[at + 3] = 0xb8;
        b[at + 15] = at == 8 ? 1 : 2;
    }
    size_t next = 6;
    for (const auto &[type, header] : extensions) {
        b[next] = type;
        next = b.size();
        b.insert(b.end(), header.begin(), header.end());
    }
    b[next] = protocol;
    for (const uint8_t x : {1, 2, 3, 4, 0, 0, 0, 0})
        b.push_back(x);
    return b;
}

TEST(Packet, ReadsIPv4)
{
    for (const unsigned options : {0, 1, 10}) {
        const auto key = Read(Packet4(6, options));
        ASSERT_TRUE(key);
        EXPECT_EQ(key->family, Family::V4);
        EXPECT_EQ(key->source, (Address{0, 0xc6120001}));
        EXPECT_EQ(key->destination, (Address{0, 0xc6130002}));
        EXPECT_EQ(key->protocol, 6);
        EXPECT_EQ(key->sourcePort, 258u);
        EXPECT_EQ(key->destinationPort, 772u);
    }
}

TEST(Packet, ReadsIPv6)
{
    const auto key = Read(Packet6({}, 17));
    ASSERT_TRUE(key);
    EXPECT_EQ(key->family, Family::V6);
    EXPECT_EQ(key->source, (Address{0x20010db800000000, 1}));
    EXPECT_EQ(key->destination, (Address{0x20010db800000000, 2}));
    EXPECT_EQ(key->protocol, 17);
    EXPECT_EQ(key->sourcePort, 258u);
    EXPECT_EQ(key->destinationPort, 772u);
}

TEST(Packet, OnlyProtocolsWithPortsHavePorts)
{
    for (int protocol = 0; protocol < 256; ++protocol) {
        const auto key = Read(Packet4(static_cast<uint8_t>(protocol)));
        const bool ports = protocol == 6 || protocol == 17 || protocol == 33 || protocol == 132 || protocol == 136;
        EXPECT_EQ(key->sourcePort, ports ? 258u : NoPort) << protocol;
        EXPECT_EQ(key->destinationPort, ports ? 772u : NoPort) << protocol;
    }
}

TEST(Packet, FragmentsButTheFirstHaveNoPorts)
{
    EXPECT_EQ(Read(Packet4(17, 0, 0x2000))->sourcePort, 258u) << "the first: more fragments";
    EXPECT_EQ(Read(Packet4(17, 0, 0x4000))->sourcePort, 258u) << "don't fragment";
    EXPECT_EQ(Read(Packet4(17, 0, 0x2001))->sourcePort, NoPort);
    EXPECT_EQ(Read(Packet4(17, 0, 0x1fff))->destinationPort, NoPort);
    EXPECT_EQ(Read(Packet6({{44, {0, 0, 0, 1, 0, 0, 0, 9}}}, 17))->sourcePort, 258u);
    const auto later = Read(Packet6({{44, {0, 0, 0, 8, 0, 0, 0, 9}}}, 17));
    EXPECT_EQ(later->sourcePort, NoPort);
    EXPECT_EQ(later->protocol, 17);
}

TEST(Packet, PassesExtensionHeaders)
{
    const Bytes one(8), three{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const Bytes authentication{0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const auto key = Read(Packet6({{0, one}, {60, three}, {43, one}, {44, one}, {51, authentication}, {135, one}}, 6));
    EXPECT_EQ(key->protocol, 6);
    EXPECT_EQ(key->sourcePort, 258u);
    EXPECT_EQ(Read(Packet6(std::vector<std::pair<uint8_t, Bytes>>(8, {60, one}), 6))->sourcePort, 258u);
    const auto deep = Read(Packet6(std::vector<std::pair<uint8_t, Bytes>>(9, {60, one}), 6));
    EXPECT_EQ(deep->sourcePort, NoPort) << "nobody sends that many";
    EXPECT_EQ(deep->protocol, 60);
    const auto beyond = Read(Packet6({{60, {0, 255, 0, 0, 0, 0, 0, 0}}}, 6));
    EXPECT_EQ(beyond->protocol, 6);
    EXPECT_EQ(beyond->sourcePort, NoPort) << "it says that it is longer than the packet";
}

TEST(Packet, CutShort)
{
    for (const auto &whole : {Packet4(6), Packet4(6, 10), Packet6({}, 6), Packet6({{0, Bytes(8)}}, 6)}) {
        const bool v4 = whole[0] >> 4 == 4;
        const size_t header = v4 ? 4u * (whole[0] & 0xf) : 40;
        for (size_t length = 0; length < whole.size(); ++length) {
            const auto key = Read(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
            EXPECT_EQ(key.has_value(), length >= header) << length;
            if (key && length < whole.size() - 4) {
                EXPECT_EQ(key->sourcePort, NoPort) << length;
            }
        }
    }
    for (unsigned first = 0; first < 256; ++first) {
        Bytes b(60);
        b[0] = static_cast<uint8_t>(first);
        EXPECT_EQ(Read(b).has_value(), first >> 4 == 6 || (first >> 4 == 4 && (first & 0xf) >= 5)) << first;
    }
}

TEST(Marker, SetsTheCodePointAndNothingElse)
{
    Random random(1);
    for (unsigned dscp = 0; dscp < 64; ++dscp) {
        for (int round = 0; round < 200; ++round) {
            for (const bool v4 : {true, false}) {
                auto b = v4 ? Packet4(17, static_cast<unsigned>(random.below(11))) : Packet6({}, 17);
                const size_t header = v4 ? b.size() - 8 : 40;
                for (size_t i = 1; i < header; ++i)
                    b[i] = static_cast<uint8_t>(random.bits());
                b[0] = static_cast<uint8_t>(v4 ? b[0] : 0x60 | random.below(16));
                if (v4) {
                    b[10] = b[11] = 0;
                    const auto right = 0xffff - SumOf(b, header);
                    const auto sum = right ^ (round % 2 ? 0 : 0x0100); // a wrong one, now and then
                    b[10] = static_cast<uint8_t>(sum >> 8);
                    b[11] = static_cast<uint8_t>(sum);
                }
                const auto before = b;
                Mark(b.data(), dscp);
                ASSERT_EQ(DscpOf(b.data()), dscp);
                if (v4) {
                    ASSERT_EQ(b[1] & 3, before[1] & 3) << "ECN";
                    ASSERT_EQ(SumOf(b, header) == 0xffff, round % 2 == 1) << "its checksum";
                    b[1] = before[1], b[10] = before[10], b[11] = before[11];
                } else {
                    ASSERT_EQ(b[1] & 0x3f, before[1] & 0x3f) << "ECN and flow label";
                    ASSERT_EQ(b[0] >> 4, 6);
                    b[0] = before[0], b[1] = before[1];
                }
                ASSERT_EQ(b, before);
            }
        }
    }
}

TEST(Marker, TheSameCodePointChangesNoBit)
{
    for (auto b : {Packet4(6), Packet6({}, 6)}) {
        const auto before = b;
        Mark(b.data(), DscpOf(b.data()));
        EXPECT_EQ(b, before);
    }
}

} // namespace
} // namespace msfrs::test
