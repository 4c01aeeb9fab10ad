// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/queue_estimate.h"

#include <gtest/gtest.h>

#include <optional>

namespace msfrs {
namespace {

constexpr msfrs_time Ms = 1'000'000, Second = 1000 * Ms, Start = 1000 * Second;

class QueueEstimateTest : public ::testing::Test {
protected:
    void seen(const uint64_t server, const msfrs_time rtt, const int times = 1)
    {
        for (int n = 0; n < times; ++n)
            estimate.seen(server, rtt, rtt, now);
    }

    std::optional<msfrs_time> queue(const msfrs_time at) const
    {
        const auto all = estimate.seen(at);
        return all.enough() ? std::optional(all.queue) : std::nullopt;
    }

    QueueEstimate estimate;
    msfrs_time now = Start;
};

TEST(Together, HasMeansByRoundTrips)
{
    const auto all = Together({{40, 90 * Ms, 100 * Ms}, {3, 0, 20 * Ms}, {20, 30 * Ms, 40 * Ms}});
    EXPECT_EQ(all.trips, 63u);
    EXPECT_EQ(all.queue / Ms, (40 * 90 + 3 * 0 + 20 * 30) / 63);
    EXPECT_EQ(all.base / Ms, (40 * 100 + 3 * 20 + 20 * 40) / 63);
    const auto one = Together({{20, 30 * Ms, 80 * Ms}});
    EXPECT_EQ(one.queue, 30 * Ms);
    EXPECT_EQ(one.base, 80 * Ms);
}

TEST(Together, WhoHasSeenNothingSaysNothing)
{
    EXPECT_FALSE(Together({}).enough());
    EXPECT_EQ(Together({{0, 0, 0}, {8, 10 * Ms, 70 * Ms}}).queue, 10 * Ms);
    EXPECT_EQ(Together({{0, 0, 0}, {8, 10 * Ms, 70 * Ms}}).base, 70 * Ms);
    EXPECT_FALSE(Together({{3, 10 * Ms, 70 * Ms}}).enough());
    EXPECT_TRUE(Together({{3, 10 * Ms, 70 * Ms}, {1, 20 * Ms, 70 * Ms}}).enough()) << "four in all";
}

TEST_F(QueueEstimateTest, SaysNothingBeforeEnoughWasSeen)
{
    seen(1, 40 * Ms, 3);
    EXPECT_FALSE(queue(now));
    seen(1, 40 * Ms);
    EXPECT_EQ(queue(now), 0);
    EXPECT_EQ(estimate.meanBase(now), 40 * Ms);
}

TEST_F(QueueEstimateTest, IsWhatRoundTripsAreBeyondTheLeastToTheSameServer)
{
    seen(1, 10 * Ms);
    seen(2, 200 * Ms);
    now += 3 * Second;
    seen(1, 60 * Ms, 4);
    seen(2, 250 * Ms, 4);
    EXPECT_EQ(queue(now), 50 * Ms) << "far or near";
    EXPECT_EQ(estimate.meanBase(now), 105 * Ms);
    EXPECT_EQ(estimate.base(1), 10 * Ms);
    EXPECT_EQ(estimate.base(3), 0) << "never seen";
}

TEST_F(QueueEstimateTest, ServersThatThinkAndClientsThatAreSlowCountForLittle)
{
    seen(1, 10 * Ms);
    now += 3 * Second;
    seen(1, 20 * Ms, 4);
    seen(1, 900 * Ms, 8);
    EXPECT_EQ(queue(now), 10 * Ms);
}

TEST_F(QueueEstimateTest, TheLeastThatAConnectionEverHadIsABaseToo)
{
    for (int n = 0; n < 4; ++n)
        estimate.seen(1, 90 * Ms, 30 * Ms, now);
    EXPECT_EQ(queue(now), 60 * Ms);
}

TEST_F(QueueEstimateTest, ALongerRouteIsNoQueueAfterTwoMinutes)
{
    seen(1, 20 * Ms);
    for (int n = 0; n < 130; ++n) {
        now += Second;
        seen(1, 80 * Ms, 4);
        if (n == 50) {
            EXPECT_EQ(queue(now), 60 * Ms);
        }
    }
    EXPECT_EQ(queue(now), 0);
}

TEST_F(QueueEstimateTest, AtAllServersIsWhatTheOneThatSeesLeastSawLatest)
{
    for (uint64_t server = 1; server <= 8; ++server)
        seen(server, 20 * Ms);
    now += 3 * Second;
    EXPECT_EQ(estimate.atAll(now, Second).trips, 0u);
    for (int n = 0; n < 20; ++n, now += 20 * Ms) {
        for (uint64_t server = 1; server <= 5; ++server)
            seen(server, 310 * Ms); // the delay of their own path has jumped
    }
    EXPECT_EQ(estimate.atAll(now, 400 * Ms).queue, 290 * Ms);
    EXPECT_EQ(estimate.atAll(now, 400 * Ms).trips, 100u);
    seen(6, 25 * Ms);
    EXPECT_EQ(estimate.atAll(now, 400 * Ms).queue, 5 * Ms);
    EXPECT_EQ(estimate.atAll(now, 400 * Ms).trips, 101u);
    now += 10 * Ms;
    seen(6, 80 * Ms); // its earlier samples do not count any more
    EXPECT_EQ(estimate.atAll(now, 400 * Ms).queue, 60 * Ms);
    EXPECT_EQ(estimate.atAll(now, 400 * Ms).base, estimate.meanBase(now));
}

TEST_F(QueueEstimateTest, AskedForLessTimeAndALowerQuantileItTellsOfThatAlone)
{
    seen(1, 10 * Ms);
    seen(1, 20 * Ms, 9);
    now += Second;
    seen(1, 30 * Ms, 2);
    seen(1, 90 * Ms, 18);
    EXPECT_EQ(queue(now), 10 * Ms);
    EXPECT_EQ(estimate.seen(now, Second / 2).queue, 80 * Ms);
    EXPECT_EQ(estimate.seen(now, Second / 2, 0.05).queue, 20 * Ms);
    EXPECT_EQ(estimate.seen(now, Second / 2, 0.1).queue, 80 * Ms);
}

TEST_F(QueueEstimateTest, WhatIsOldIsForgotten)
{
    seen(1, 20 * Ms, 10);
    now += 2 * Second + 1;
    EXPECT_FALSE(queue(now));
    EXPECT_EQ(estimate.meanBase(now), 0);
}

TEST_F(QueueEstimateTest, AClockThatGoesBackHarmsNothing)
{
    seen(1, 20 * Ms, 10);
    now -= 500 * Second;
    EXPECT_FALSE(queue(now)) << "from the future";
    seen(1, 30 * Ms, 10);
    EXPECT_EQ(queue(now), 0);
}

TEST_F(QueueEstimateTest, ItsMemoryIsBounded)
{
    for (uint64_t server = 0; server < 5 * QueueEstimate::MostServers; ++server, now += Ms)
        seen(server, 20 * Ms);
    size_t known = 0;
    for (uint64_t server = 0; server < 5 * QueueEstimate::MostServers; ++server)
        known += estimate.base(server) > 0;
    EXPECT_EQ(known, QueueEstimate::MostServers);
    EXPECT_GT(estimate.base(5 * QueueEstimate::MostServers - 1), 0) << "the latest is there";
}

} // namespace
} // namespace msfrs
