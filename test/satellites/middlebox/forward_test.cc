// SPDX-License-Identifier: GPL-2.0-or-later
#include "packets.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace middlebox;

class ForwardTest : public testing::Test {
protected:
    std::unique_ptr<Function> forward = MakeForward(Options());
};

TEST_F(ForwardTest, TakesOneFromTheTtlAndKeepsTheChecksumRight)
{
    for (int ttl = 255; ttl > 1; --ttl) {
        auto packet = Udp({1, 2, 3});
        // Another TTL, with its checksum.
        unsigned sum = 0;
        packet[8] = static_cast<uint8_t>(ttl);
        packet[10] = packet[11] = 0;
        for (size_t i = 0; i < 20; i += 2)
            sum += static_cast<unsigned>(packet[i] << 8 | packet[i + 1]);
        sum = ~((sum & 0xffff) + (sum >> 16));
        packet[10] = static_cast<uint8_t>(sum >> 8);
        packet[11] = static_cast<uint8_t>(sum);

        const auto made = Process(*forward, packet);
        ASSERT_EQ(made.size(), packet.size()) << ttl;
        EXPECT_EQ(made[8], ttl - 1);
        // Forwarding checks the checksum itself: its output passes through it again, until the TTL is used up.
        EXPECT_EQ(Process(*forward, made).empty(), ttl == 2) << ttl;
    }
    EXPECT_EQ(Count(*forward, "malformed_packets"), 0u);
    EXPECT_EQ(Count(*forward, "expired_packets"), 1u);
}

TEST_F(ForwardTest, TakesOneFromTheHopLimit)
{
    auto packet = Udp({1, 2, 3}, 1, Family::V6);
    const auto made = Process(*forward, packet);
    ASSERT_EQ(made.size(), packet.size());
    EXPECT_EQ(made[7], 63);
    packet[7] = 1;
    EXPECT_TRUE(Process(*forward, packet).empty());
    EXPECT_EQ(Count(*forward, "forwarded_packets"), 1u);
    EXPECT_EQ(Count(*forward, "forwarded_bytes"), packet.size());
}

TEST_F(ForwardTest, RefusesWhatIsCutShortOrBroken)
{
    const auto whole = Udp(Bytes(100, 7)), whole6 = Udp(Bytes(100, 7), 1, Family::V6);
    for (size_t length = 20; length < whole.size(); ++length)
        EXPECT_TRUE(Process(*forward, {whole.begin(), whole.begin() + static_cast<long>(length)}).empty()) << length;
    for (size_t length = 40; length < whole6.size(); ++length)
        EXPECT_TRUE(Process(*forward, {whole6.begin(), whole6.begin() + static_cast<long>(length)}).empty()) << length;
    for (size_t at = 1; at < 20; ++at) {
        auto broken = whole;
        broken[at] ^= 0x10;
        EXPECT_TRUE(Process(*forward, broken).empty()) << at;
    }
    EXPECT_EQ(Count(*forward, "forwarded_packets"), 0u);
    EXPECT_EQ(Count(*forward, "malformed_packets"), 108u + 108u + 19u);
}

} // namespace
} // namespace msfrs::test
