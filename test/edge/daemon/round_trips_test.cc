// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/round_trips.h"

#include "edge/daemon/segments.h"
#include "edge/packet.h"
#include "support/host.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace edge;

constexpr uint8_t Syn = 2, Reset = 4, Ack = 0x10;

/// RTT samples of segments that pass the edge.
class RoundTripsTest : public ::testing::Test {
protected:
    /// \returns the RTT sample, ns; 0: none
    msfrs_time pass(const SegmentOf &of)
    {
        const auto bytes = MadeSegment(of);
        size_t transport = 0;
        const auto key = ReadKey(bytes.data(), bytes.size(), &transport);
        const auto segment = ReadTcp(bytes.data(), bytes.size(), bytes.size() + of.payload, transport);
        if (!segment) {
            ADD_FAILURE() << "it cannot be read";
            return 0;
        }
        if (!of.down) {
            trips.up(*key, *segment, now);
            return 0;
        }
        const auto trip = trips.down(*key, *segment, now);
        server = trip ? trip->server : 0;
        return trip ? trip->time : 0;
    }
    void up(const uint32_t stamp) { pass(stamped(false, stamp, 0)); }
    msfrs_time down(const uint32_t echo) { return pass(stamped(true, 7, echo)); }
    static SegmentOf stamped(const bool down, const uint32_t stamp, const uint32_t echo)
    {
        SegmentOf of;
        of.down = down;
        of.payload = down ? 1448 : 0;
        of.stamps = {stamp, echo};
        return of;
    }
    static SegmentOf plain(const bool down, const uint32_t from, const uint32_t payload, const uint32_t acknowledged,
                           const uint8_t flags = Ack)
    {
        SegmentOf of;
        of.down = down;
        of.from = from;
        of.payload = payload;
        of.acknowledged = acknowledged;
        of.flags = flags;
        return of;
    }

    RoundTrips trips;
    msfrs_time now = 1 * Second;
    uint64_t server = 0;
};

TEST_F(RoundTripsTest, TheFirstEchoOfAStampTellsOne)
{
    up(100);
    now += 30 * Ms;
    EXPECT_EQ(down(100), 30 * Ms);
    now += 1 * Ms;
    EXPECT_EQ(down(100), 0) << "the next one has waited for a place";
}

TEST_F(RoundTripsTest, TheFirstThatGoesWithAStampCounts)
{
    up(100);
    now += 20 * Ms;
    up(100);
    now += 20 * Ms;
    EXPECT_EQ(down(100), 40 * Ms);
}

TEST_F(RoundTripsTest, StampsWrapAround)
{
    up(0xfffffff0);
    now += 20 * Ms;
    up(4);
    now += 20 * Ms;
    EXPECT_EQ(down(0xfffffff0), 40 * Ms);
    now += 20 * Ms;
    EXPECT_EQ(down(4), 40 * Ms);
}

TEST_F(RoundTripsTest, AStampThatWasPassedOverTellsNothing)
{
    up(100);
    now += 20 * Ms;
    up(120);
    now += 20 * Ms;
    EXPECT_EQ(down(120), 20 * Ms);
    EXPECT_EQ(down(100), 0) << "it was overtaken on its way";
}

TEST_F(RoundTripsTest, WhatWasNeverSentIsNoEcho)
{
    up(100);
    now += 20 * Ms;
    for (const uint32_t forged : {101u, 0u, 0x7fffffffu, 0x80000000u, 0xffffffffu})
        EXPECT_EQ(down(forged), 0) << forged;
    EXPECT_EQ(down(100), 20 * Ms) << "and takes nothing away";
}

TEST_F(RoundTripsTest, AbsurdTimesAreIgnored)
{
    up(100);
    EXPECT_EQ(down(100), 0) << "no time at all";
    now += 20 * Ms;
    up(120);
    now += RoundTrips::Longest + 1;
    EXPECT_EQ(down(120), 0);
    up(140);
    now += RoundTrips::Longest;
    EXPECT_EQ(down(140), RoundTrips::Longest);
}

/// Sixteen timestamps without a reply: eight are kept, and later samples are right.
TEST_F(RoundTripsTest, KeepsFewStampsOfEach)
{
    for (uint32_t n = 0; n < 16; ++n) {
        up(100 + n);
        now += 20 * Ms;
    }
    for (uint32_t n = 0; n < 8; ++n) {
        EXPECT_EQ(down(100 + n), 320 * Ms) << n;
        now += 20 * Ms;
    }
    EXPECT_EQ(down(108), 0);
}

TEST_F(RoundTripsTest, WithoutStampsHandshakeAndRequests)
{
    pass(plain(false, 999, 0, 0, Syn));
    now += 30 * Ms;
    EXPECT_EQ(pass(plain(true, 4999, 0, 1000, Syn | Ack)), 30 * Ms);
    pass(plain(false, 1000, 0, 5000));
    pass(plain(false, 1000, 300, 5000));
    now += 10 * Ms;
    pass(plain(false, 1300, 300, 5000)); // one at a time
    EXPECT_EQ(pass(plain(true, 5000, 100, 1200)), 0) << "a part of it";
    now += 20 * Ms;
    EXPECT_EQ(pass(plain(true, 5100, 100, 1300)), 30 * Ms);
    EXPECT_EQ(pass(plain(true, 5200, 100, 1600)), 0);
}

TEST_F(RoundTripsTest, WithoutStampsWhatWasSentTwiceTellsNothing)
{
    pass(plain(false, 1000, 300, 5000));
    now += 300 * Ms;
    pass(plain(false, 1000, 300, 5000));
    now += 30 * Ms;
    EXPECT_EQ(pass(plain(true, 5000, 100, 1300)), 0);
    pass(plain(false, 1300, 300, 5100));
    now += 30 * Ms;
    EXPECT_EQ(pass(plain(true, 5100, 100, 1600)), 30 * Ms);
}

TEST_F(RoundTripsTest, SequenceNumbersWrapAround)
{
    pass(plain(false, 0xffffff00, 300, 5000));
    now += 30 * Ms;
    EXPECT_EQ(pass(plain(true, 5000, 100, 0xffffff00)), 0);
    EXPECT_EQ(pass(plain(true, 5100, 100, 44)), 30 * Ms);
}

TEST_F(RoundTripsTest, AServerThatWantsNoStamps)
{
    auto syn = plain(false, 999, 0, 0, Syn);
    syn.stamps = {100, 0};
    pass(syn);
    now += 30 * Ms;
    EXPECT_EQ(pass(plain(true, 4999, 0, 1000, Syn | Ack)), 30 * Ms);
    pass(plain(false, 1000, 300, 5000));
    now += 20 * Ms;
    EXPECT_EQ(pass(plain(true, 5000, 100, 1300)), 20 * Ms);
}

TEST_F(RoundTripsTest, Ipv6)
{
    auto of = stamped(false, 100, 0);
    of.family = Family::V6;
    pass(of);
    now += 30 * Ms;
    auto answer = stamped(true, 7, 100);
    answer.family = Family::V6;
    EXPECT_EQ(pass(answer), 30 * Ms);
    const auto first = server;
    answer.server = of.server = 2;
    of.stamps = {101, 0};
    pass(of);
    now += 30 * Ms;
    answer.stamps = {7, 101};
    EXPECT_EQ(pass(answer), 30 * Ms);
    EXPECT_NE(server, first);
}

TEST_F(RoundTripsTest, WhoEndedAndBeginsAnewIsAnother)
{
    up(100);
    pass(plain(false, 0, 0, 0, Reset));
    now += 30 * Ms;
    EXPECT_EQ(down(100), 0);
    up(100);
    auto syn = plain(false, 70000, 0, 0, Syn);
    syn.stamps = {5, 0}; // another clock
    pass(syn);
    now += 30 * Ms;
    EXPECT_EQ(down(100), 0);
    EXPECT_EQ(down(5), 30 * Ms);
}

/// Newcomers do not displace active connections; idle ones are removed.
TEST_F(RoundTripsTest, AFullTable)
{
    up(100);
    auto other = stamped(false, 100, 0);
    for (uint32_t n = 0; n < 8 * RoundTrips::Most; ++n) {
        other.user = static_cast<uint8_t>(2 + n / 60000);
        other.port = static_cast<uint16_t>(1 + n % 60000);
        pass(other);
    }
    now += 30 * Ms;
    EXPECT_EQ(down(100), 30 * Ms);
    auto late = stamped(false, 200, 0);
    late.user = 9;
    pass(late);
    auto answer = stamped(true, 7, 200);
    answer.user = 9;
    now += 30 * Ms;
    EXPECT_EQ(pass(answer), 0) << "there is no place for it";
    now += RoundTrips::Idle;
    late.stamps = {201, 0};
    pass(late);
    now += 30 * Ms;
    answer.stamps = {7, 201};
    EXPECT_EQ(pass(answer), 30 * Ms);
}

TEST_F(RoundTripsTest, NobodyOutsideTakesAPlace)
{
    for (uint32_t n = 0; n < 100; ++n)
        EXPECT_EQ(pass(plain(true, n, 100, 0)), 0);
    EXPECT_EQ(trips.packets(), 0u);
}

TEST_F(RoundTripsTest, CountsWhatComesAfterAHole)
{
    const auto comes = [&](const uint32_t from) { pass(plain(true, from, 1000, 1)); };
    pass(plain(false, 0, 1, 0));
    comes(0xfffff000); // sequence numbers wrap around meanwhile
    comes(0xfffff000 + 1000);
    comes(0xfffff000 + 3000);
    comes(0xfffff000 + 4000);
    EXPECT_EQ(trips.outOfOrder(), 2u);
    comes(0xfffff000 + 2000);
    comes(0xfffff000 + 5000);
    EXPECT_EQ(trips.outOfOrder(), 2u);
    comes(0xfffff000 + 7000);
    EXPECT_EQ(trips.outOfOrder(), 3u);
    pass(plain(false, 1, 0, 0xfffff000 + 8000)); // the missing segment took another path
    comes(0xfffff000 + 8000);
    EXPECT_EQ(trips.outOfOrder(), 3u);
    EXPECT_EQ(trips.packets(), 8u);
}

/// Malformed headers are read up to the captured end, and not beyond it.
TEST(ReadTcp, TrustsNothing)
{
    SegmentOf of;
    of.stamps = {100, 50};
    of.payload = 10;
    const auto good = MadeSegment(of);
    const auto read = [](const std::vector<uint8_t> &b, const size_t length) {
        return ReadTcp(b.data(), b.size(), length, 20);
    };
    const auto segment = read(good, good.size() + 10);
    ASSERT_TRUE(segment && segment->stamped);
    EXPECT_EQ(segment->stamp, 100u);
    EXPECT_EQ(segment->echo, 50u);
    EXPECT_EQ(segment->to - segment->from, 10u);
    for (size_t n = 0; n < good.size(); ++n) {
        const std::vector<uint8_t> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
        EXPECT_FALSE(read(cut, good.size())) << n << " bytes";
    }
    EXPECT_FALSE(read(good, good.size() - 1)) << "longer than the packet";
    EXPECT_FALSE(ReadTcp(good.data(), good.size(), good.size(), 0)) << "a later fragment";
    auto wrong = good;
    for (const uint8_t header : {0, 1, 4, 9, 15}) {
        wrong[32] = static_cast<uint8_t>(header << 4);
        EXPECT_FALSE(read(wrong, wrong.size())) << "a header of so many words: " << int{header};
    }
    for (const uint8_t length : {0, 1, 9, 11, 12, 255}) {
        wrong = good;
        wrong[43] = length;
        const auto odd = read(wrong, wrong.size());
        EXPECT_TRUE(odd && !odd->stamped) << "an option of so many bytes: " << int{length};
    }
    wrong = good;
    std::fill(wrong.begin() + 40, wrong.end(), uint8_t{1});
    EXPECT_FALSE(read(wrong, wrong.size())->stamped);
    wrong.back() = 8; // an option's kind, without its length
    EXPECT_FALSE(read(wrong, wrong.size())->stamped);
}

} // namespace
} // namespace msfrs::test
