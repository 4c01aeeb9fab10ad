// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/policer.h"

#include "support/host.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

namespace msfrs::test {
namespace {

using namespace edge;

constexpr int64_t Byte = 8 * 1'000'000'000LL; ///< tokens

TEST(Policer, StartsFullAndFillsAtItsRate)
{
    Policer p({8000, 1500}); // 1000 bytes a second
    EXPECT_TRUE(p.admit(1500, 5 * Second)) << "the depth at once";
    EXPECT_FALSE(p.admit(1, 5 * Second));
    EXPECT_FALSE(p.admit(100, 5 * Second + 99 * Ms));
    EXPECT_TRUE(p.admit(100, 5 * Second + 100 * Ms));
    EXPECT_EQ(p.tokens(), 0);
}

TEST(Policer, ADroppedPacketUpdatesTheTimeAndTakesNothing)
{
    Policer p({8000, 1500});
    EXPECT_TRUE(p.admit(1500, 0));
    EXPECT_FALSE(p.admit(1000, 500 * Ms));
    EXPECT_EQ(p.tokens(), 500 * Byte);
    EXPECT_FALSE(p.admit(1000, 600 * Ms));
    EXPECT_EQ(p.tokens(), 600 * Byte) << "the half second is not counted twice";
}

TEST(Policer, NothingIsLostToRounding)
{
    // 1 bit/s queried 1000 times a second: a single arrival adds a thousandth of a bit of tokens.
    Policer p({1, 64});
    ASSERT_TRUE(p.admit(64, 0));
    for (int n = 1; n < 8 * 1000; ++n)
        ASSERT_FALSE(p.admit(1, n * Ms));
    EXPECT_TRUE(p.admit(1, 8 * Second));
}

TEST(Policer, WhatIsLongerThanTheBucketNeverPasses)
{
    Policer p({1'000'000, 1000});
    EXPECT_FALSE(p.admit(1001, 1000 * Second));
    EXPECT_TRUE(p.admit(1000, 1000 * Second));
    EXPECT_TRUE(p.admit(0, 1000 * Second));
}

TEST(Policer, AClockThatJumpsAheadFillsTheBucketAndNoMore)
{
    for (const auto rate : {int64_t(1), int64_t(999'999'937), TokenRate::MaxRate}) {
        for (const auto depth : {TokenRate::MinDepth, TokenRate::MaxDepth}) {
            Policer p({rate, depth});
            ASSERT_TRUE(p.admit(depth, INT64_MIN));
            EXPECT_FALSE(p.admit(depth + 1, INT64_MAX));
            EXPECT_EQ(p.tokens(), depth * Byte);
        }
    }
}

TEST(Policer, AClockThatGoesBackBringsNothingAndStarvesNobody)
{
    Policer p({8000, 1500});
    ASSERT_TRUE(p.admit(1500, 100 * Second));
    EXPECT_FALSE(p.admit(1, 1 * Second));
    EXPECT_EQ(p.tokens(), 0);
    EXPECT_TRUE(p.admit(1000, 2 * Second)) << "the second that passed since, not after the 98 to catch up";
}

TEST(Policer, AdmittedBytesNeverExceedDepthAndRateTimesTime)
{
    Random random(1);
    for (int round = 0; round < 300; ++round) {
        const TokenRate r{random.chance(0.1) ? random.between(1, 100) : random.between(1'000, 10'000'000'000),
                          random.between(64, 100'000)};
        msfrs_time now = random.between(0, Second);
        Policer p(r);
        // Tokens that could have accumulated are counted in 128 bits, for all starts of an interval at once: the start
        // with the least tokens accumulated less tokens admitted is the worst one.
        __int128 slack = 0, worst = 0; // 10^-9 bits that accumulated and were not used, since the first packet
        for (int n = 0; n < 1000; ++n) {
            const auto gap = random.chance(0.02) ? random.between(0, 3600 * Second) : random.between(0, 2 * Ms);
            const auto back = random.chance(0.02) ? random.between(0, now) : 0;
            now += gap - back;
            slack += back > gap ? 0 : __int128(r.rate) * (gap - back); // only an advancing clock counts
            worst = std::max(worst, slack);
            const auto length = random.between(0, 3000);
            const bool admitted = p.admit(length, now);
            if (admitted)
                slack -= __int128(length) * Byte;
            ASSERT_LE(worst - slack, __int128(r.depth) * Byte) << "more than depth + rate * t since some arrival";
            ASSERT_EQ(p.tokens(), static_cast<int64_t>(__int128(r.depth) * Byte - (worst - slack)))
                << "and none of it is withheld";
            if (!admitted) {
                ASSERT_GT(length * Byte, p.tokens());
            }
        }
    }
}

TEST(Policer, RefusesWhatIsOutOfRange)
{
    const auto message = [](const TokenRate &r) -> std::string {
        try {
            Policer{r};
        } catch (const std::invalid_argument &e) {
            return e.what();
        }
        return "accepted";
    };
    EXPECT_EQ(message({0, 1500}), "a rate of 0 bit/s; allowed are 1 to 1000000000000");
    EXPECT_EQ(message({TokenRate::MaxRate + 1, 1500}), "a rate of 1000000000001 bit/s; allowed are 1 to 1000000000000");
    EXPECT_EQ(message({1, 63}), "a depth of 63 bytes; allowed are 64 to 1000000000");
    EXPECT_EQ(message({TokenRate::MaxRate, TokenRate::MaxDepth}), "accepted");
}

} // namespace
} // namespace msfrs::test
