// SPDX-License-Identifier: GPL-2.0-or-later
#include "packets.h"

#include <gtest/gtest.h>
#include <stdexcept>

namespace msfrs::test {
namespace {

using namespace middlebox;

constexpr size_t Ring = FunctionOptions::MinCache;

/// The peer, from the description of the format in redundancy.cc.
class Decoder {
public:
    Bytes decode(const Bytes &made, const size_t header)
    {
        Bytes payload;
        size_t at = header;
        const auto number = [&] {
            const auto n = made.at(at) | made.at(at + 1) << 8 | made.at(at + 2) << 16 | made.at(at + 3) << 24;
            at += 4;
            return static_cast<size_t>(n);
        };
        for (;;) {
            const auto literal = number();
            if (literal > made.size() - at)
                throw std::out_of_range("literal");
            payload.insert(payload.end(), &made[0] + at, &made[0] + at + literal);
            at += literal;
            if (at == made.size())
                break;
            const auto length = number(), position = number();
            if (position + length > ring_.size())
                throw std::out_of_range("match");
            payload.insert(payload.end(), &ring_[position], &ring_[position] + length);
        }
        if (payload.size() > ring_.size() - next_)
            next_ = 0;
        std::copy(payload.begin(), payload.end(), &ring_[next_]);
        next_ += payload.size();
        Bytes packet(made.begin(), made.begin() + static_cast<long>(header));
        packet.insert(packet.end(), payload.begin(), payload.end());
        return packet;
    }

private:
    Bytes ring_ = Bytes(Ring);
    size_t next_ = 0;
};

class RedundancyTest : public testing::Test {
protected:
    /// Sends a packet through both. \returns bytes of it that were found redundant
    uint64_t send(const Bytes &packet)
    {
        const auto before = Count(*redundancy, "redundant_bytes");
        const auto made = Process(*redundancy, packet);
        EXPECT_EQ(decoder.decode(made, packet[0] == 0x45 ? 20 : 40), packet) << "the peer has what was sent";
        return Count(*redundancy, "redundant_bytes") - before;
    }

    FunctionOptions options = [] {
        auto o = Options();
        o.cache = Ring;
        return o;
    }();
    std::unique_ptr<Function> redundancy = MakeRedundancy(options);
    Decoder decoder;
    Random random{3};
};

TEST_F(RedundancyTest, FindsAPayloadThatWentBy)
{
    const auto payload = RandomBytes(random, 1400);
    EXPECT_EQ(send(Udp(payload, 1)), 0u) << "nothing was seen yet";
    EXPECT_EQ(send(Udp(payload, 2)), 1400u + 6) << "all but the source port, in another flow";
    EXPECT_EQ(send(Udp(payload, 3, Family::V6)), 1400u + 6) << "and another family";
    EXPECT_EQ(Count(*redundancy, "redundant_stretches"), 2u);
    EXPECT_LT(Process(*redundancy, Udp(payload, 4)).size(), 60u) << "and that much shorter";
}

TEST_F(RedundancyTest, FindsAStretchInTheMidstOfOtherBytes)
{
    const auto known = RandomBytes(random, 4000);
    send(Udp(known));
    // Of 600 bytes some 537 / 64 windows are sampled: none with probability e^-8, and not with these.
    auto mixed = RandomBytes(random, 333);
    mixed.insert(mixed.end(), known.begin() + 1000, known.begin() + 1600);
    const auto tail = RandomBytes(random, 100);
    mixed.insert(mixed.end(), tail.begin(), tail.end());
    const auto found = send(Udp(mixed));
    EXPECT_GE(found, 600u) << "widened to both sides";
    EXPECT_LE(found, 608u) << "and no further, but for bytes that are the same by chance";
}

TEST_F(RedundancyTest, RandomPayloadsAreNotRedundant)
{
    for (int n = 0; n < 1000; ++n)
        EXPECT_EQ(send(Udp(RandomBytes(random, random.below(1400)))), 0u);
    EXPECT_EQ(Count(*redundancy, "inspected_packets"), 1000u);
}

TEST_F(RedundancyTest, ForgetsWhatTheRingHasOverwrittenAndFindsWhatItHolds)
{
    const auto old = RandomBytes(random, 1000);
    send(Udp(old));
    Bytes last;
    for (size_t sent = 0; sent < 3 * Ring; sent += last.size())
        send(Udp(last = RandomBytes(random, 10'000 + random.below(40'000))));
    EXPECT_EQ(send(Udp(old)), 0u);
    EXPECT_GE(send(Udp(last)), last.size());
}

/// Payloads that an attacker may choose, and pieces of older ones, of all lengths: the peer always restores the input.
TEST_F(RedundancyTest, ThePeerAlwaysHasWhatWasSent)
{
    const auto pool = RandomBytes(random, 100'000);
    for (int n = 0; n < 3000; ++n) {
        Bytes payload;
        while (payload.size() < 2000 && !random.chance(0.2)) {
            const size_t length = random.below(500), from = random.below(pool.size() - length);
            switch (random.below(4)) {
            case 0: payload.insert(payload.end(), length, 0); break;
            case 1: payload.insert(payload.end(), length, static_cast<uint8_t>(random.bits())); break;
            case 2: payload.insert(payload.end(), &pool[from], &pool[from] + length); break;
            case 3:
                for (size_t i = 0; i < length; ++i)
                    payload.push_back(static_cast<uint8_t>(i % 7));
            }
        }
        send(Udp(payload, 1, random.chance(0.5) ? Family::V4 : Family::V6));
        ASSERT_FALSE(HasFailure()) << "packet " << n;
    }
    EXPECT_GT(Count(*redundancy, "redundant_bytes"), 0u);
}

TEST_F(RedundancyTest, WhatIsLargerThanTheRingGoesThroughAsItIs)
{
    const auto payload = RandomBytes(random, Ring);
    auto packet = Udp(payload); // with the UDP header more than fits into the ring
    const auto made = Process(*redundancy, packet);
    EXPECT_EQ(made.size(), packet.size() + 4);
    EXPECT_EQ(Process(*redundancy, packet), made) << "nothing of it was kept";
}

TEST_F(RedundancyTest, RefusesSizesOutOfRange)
{
    options.cache = Ring - 1;
    EXPECT_THROW(MakeRedundancy(options), std::invalid_argument);
    options.cache = FunctionOptions::MaxCache + 1;
    EXPECT_THROW(MakeRedundancy(options), std::invalid_argument);
}

} // namespace
} // namespace msfrs::test
