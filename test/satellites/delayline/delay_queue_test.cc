// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/delayline/delay_queue.h"

#include <gtest/gtest.h>
#include <random>

namespace msfrs::delayline {
namespace {

constexpr Nanoseconds Ms = 1'000'000;

Packet Numbered(uint8_t number, size_t length = 100) { return Packet(length, number); }

TEST(DelayQueue, HoldsAPacketForExactlyItsDelay)
{
    DelayQueue queue(1 << 20);
    ASSERT_TRUE(queue.push(0, Numbered(7), 10 * Ms, 1000));
    EXPECT_EQ(queue.nextDue(), 10 * Ms + 1000);
    EXPECT_FALSE(queue.pop(10 * Ms + 999));
    const auto packet = queue.pop(10 * Ms + 1000);
    ASSERT_TRUE(packet);
    EXPECT_EQ(*packet, Numbered(7));
    EXPECT_FALSE(queue.nextDue());
}

TEST(DelayQueue, ShortStreamOvertakesALongOne)
{
    DelayQueue queue(1 << 20);
    queue.push(0, Numbered(1), 100 * Ms, 0);
    queue.push(1, Numbered(2), 5 * Ms, 1 * Ms);
    EXPECT_EQ(queue.pop(6 * Ms)->front(), 2);
    EXPECT_FALSE(queue.pop(99 * Ms));
    EXPECT_EQ(queue.pop(100 * Ms)->front(), 1);
}

TEST(DelayQueue, DueAtOnceLeaveInTheOrderTheyCame)
{
    DelayQueue queue(1 << 20);
    queue.push(3, Numbered(1), 10 * Ms, 0);
    queue.push(1, Numbered(2), 5 * Ms, 5 * Ms);
    queue.push(2, Numbered(3), 10 * Ms, 0);
    EXPECT_EQ(queue.pop(20 * Ms)->front(), 1);
    EXPECT_EQ(queue.pop(20 * Ms)->front(), 2);
    EXPECT_EQ(queue.pop(20 * Ms)->front(), 3);
}

TEST(DelayQueue, ClockThatGoesBackReordersNothingInAStream)
{
    DelayQueue queue(1 << 20);
    queue.push(0, Numbered(1), 10 * Ms, 50 * Ms);
    queue.push(0, Numbered(2), 10 * Ms, 20 * Ms);
    EXPECT_FALSE(queue.pop(59 * Ms));
    EXPECT_EQ(queue.pop(60 * Ms)->front(), 1);
    EXPECT_EQ(queue.pop(60 * Ms)->front(), 2);
}

TEST(DelayQueue, DropsAndCountsWhatDoesNotFit)
{
    DelayQueue queue(2 * (100 + DelayQueue::Overhead));
    EXPECT_TRUE(queue.push(0, Numbered(1), Ms, 0));
    EXPECT_TRUE(queue.push(1, Numbered(2), Ms, 0));
    EXPECT_FALSE(queue.push(0, Numbered(3), Ms, 0));
    EXPECT_EQ(queue.dropped().packets, 1u);
    EXPECT_EQ(queue.dropped().bytes, 100u);
    EXPECT_EQ(queue.pop(Ms)->front(), 1);
    EXPECT_TRUE(queue.push(0, Numbered(4), Ms, Ms)) << "room comes back when a packet leaves";
}

TEST(DelayQueue, RandomTrafficKeepsOrderCountsAndBound)
{
    std::mt19937 random(1);
    constexpr size_t Streams = 12, Limit = 60'000;
    DelayQueue queue(Limit);
    std::vector<uint32_t> sent(Streams, 0), seen(Streams, 0);
    Nanoseconds now = 0, lastDue = 0;
    const auto drain = [&](Nanoseconds until) {
        while (const auto packet = queue.pop(until)) {
            const size_t stream = (*packet)[0];
            const auto number = static_cast<uint32_t>((*packet)[1] | (*packet)[2] << 8 | (*packet)[3] << 16);
            ASSERT_LT(seen[stream], number + 1) << "reordered";
            seen[stream] = number + 1;
        }
    };
    for (int i = 0; i < 50'000; ++i) {
        now += random() % (Ms / 2);
        const size_t stream = random() % Streams;
        const auto number = sent[stream]++;
        Packet packet(40 + random() % 1460);
        packet[0] = static_cast<uint8_t>(stream);
        for (int byte = 0; byte < 3; ++byte)
            packet[static_cast<size_t>(byte) + 1] = static_cast<uint8_t>(number >> (8 * byte));
        queue.push(stream, std::move(packet), static_cast<Nanoseconds>(stream) * 3 * Ms, now);
        ASSERT_LE(queue.heldMemory(), Limit);
        drain(now);
        if (const auto due = queue.nextDue()) {
            ASSERT_GT(*due, now);
            lastDue = std::max(lastDue, *due);
        }
        ASSERT_EQ(queue.offered().packets,
                  queue.delivered().packets + queue.dropped().packets + queue.heldPackets());
    }
    EXPECT_GT(queue.dropped().packets, 0u) << "the bound was meant to be reached";
    drain(lastDue + 100 * Ms);
    EXPECT_EQ(queue.heldMemory(), 0u);
    EXPECT_EQ(queue.offered().bytes, queue.delivered().bytes + queue.dropped().bytes);
}

} // namespace
} // namespace msfrs::delayline
