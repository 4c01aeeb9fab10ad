// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/wait_histogram.h"

#include "support/host.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using test::Ms;
using test::Random;
using test::Second;
using test::Us;

constexpr msfrs_time Start = 12'345 * Second; // a monotonic clock seldom starts at 0
constexpr msfrs_time Minute = 60 * Second;

TEST(WaitHistogram, Empty)
{
    WaitHistogram h;
    EXPECT_EQ(h.quantile(0.5, Start), 0);
    EXPECT_EQ(h.count(), 0u);
    EXPECT_EQ(h.sum(), 0);
}

TEST(WaitHistogram, BelowAMillisecondIsNoWait)
{
    WaitHistogram h;
    h.add(0, 0, Start);
    h.add(999 * Us, 0, Start);
    EXPECT_EQ(h.quantile(1, Start), 0);
    EXPECT_EQ(h.count(), 2u);
    EXPECT_NEAR(h.sum(), 0.000999, 1e-12);
}

TEST(WaitHistogram, AQuantileIsNeverTooLowAndAtMostNinePercentTooHigh)
{
    for (msfrs_time wait = Ms; wait < 4 * 3600 * Second; wait = wait * 21 / 20) {
        WaitHistogram h;
        h.add(wait, 0, Start);
        const double seconds = static_cast<double>(wait) * 1e-9, q = h.quantile(0.5, Start);
        ASSERT_GE(q, seconds * (1 - 1e-12));
        ASSERT_LE(q, seconds * 1.0906);
    }
}

TEST(WaitHistogram, TheLongestWaitHasABucket)
{
    WaitHistogram h;
    h.add(Second * 86400 * 365, 0, Start);
    EXPECT_GT(h.quantile(1, Start), 4 * 3600.0);
}

TEST(WaitHistogram, QuantilesOfManyAreThoseOfTheSortedList)
{
    WaitHistogram h;
    Random random(11);
    std::vector<double> all;
    for (int n = 0; n < 10'000; ++n) {
        const auto wait = random.between(Ms, 20 * Second);
        h.add(wait, 0, Start);
        all.push_back(static_cast<double>(wait) * 1e-9);
    }
    std::sort(all.begin(), all.end());
    double before = 0;
    for (double q : {0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 1.0}) {
        const double exact = all[static_cast<size_t>(q * 10'000) - 1];
        EXPECT_GE(h.quantile(q, Start), exact * (1 - 1e-12)) << q;
        EXPECT_LE(h.quantile(q, Start), exact * 1.0906) << q;
        EXPECT_GE(h.quantile(q, Start), before);
        before = h.quantile(q, Start);
    }
}

TEST(WaitHistogram, ForgetsWhatIsOlderThanTenMinutesAndKeepsWhatIsYoungerThanFive)
{
    WaitHistogram h;
    h.add(10 * Second, 0, Start);
    EXPECT_GT(h.quantile(1, Start + 5 * Minute), 9);
    h.add(1 * Second, 0, Start + 5 * Minute);
    EXPECT_GT(h.quantile(1, Start + 9 * Minute), 9) << "the older half still counts";
    EXPECT_LT(h.quantile(1, Start + 10 * Minute), 2);
    EXPECT_GT(h.quantile(1, Start + 10 * Minute), 0.9);
    EXPECT_EQ(h.quantile(1, Start + 16 * Minute), 0) << "nothing came in the last ten minutes";
    h.add(2 * Second, 0, Start + 60 * Minute);
    EXPECT_NEAR(h.quantile(1, Start + 60 * Minute), 2, 0.19) << "an old half came back";
    EXPECT_EQ(h.count(), 3u) << "count and sum are of all times";
    EXPECT_NEAR(h.sum(), 13, 1e-9);
}

TEST(WaitHistogram, AClockThatGoesBackBreaksNothing)
{
    WaitHistogram h;
    h.add(Second, 0, Start);
    h.add(Second, 0, Start - 10 * Minute);
    h.add(-5 * Second, 0, Start);
    EXPECT_EQ(h.count(), 3u);
    EXPECT_NEAR(h.sum(), 2, 1e-9) << "a negative wait is none";
    EXPECT_NEAR(h.quantile(1, Start), 1, 0.1);
}

TEST(WaitHistogram, SecondsAndBytesOfTheTimeThatTheQuantilesCover)
{
    WaitHistogram h;
    h.add(10 * Second, 1'000'000, Start);
    h.add(2 * Second, 3'000'000, Start + 5 * Minute);
    EXPECT_DOUBLE_EQ(h.lately(Start + 9 * Minute).seconds, 12);
    EXPECT_DOUBLE_EQ(h.lately(Start + 9 * Minute).bytes, 4e6);
    EXPECT_DOUBLE_EQ(h.lately(Start + 10 * Minute).seconds, 2);
    EXPECT_DOUBLE_EQ(h.lately(Start + 10 * Minute).bytes, 3e6);
    h.add(Second, 7, Start + 20 * Minute);
    EXPECT_DOUBLE_EQ(h.lately(Start + 20 * Minute).bytes, 7);
    EXPECT_DOUBLE_EQ(h.lately(Start + 40 * Minute).seconds, 0);
}

TEST(WaitHistogram, ASumDoesNotDependOnTheOrder)
{
    WaitHistogram h, back;
    for (msfrs_time n = 0; n < 100; ++n) {
        h.add(n * 100'000'001, 0, Start);
        back.add((99 - n) * 100'000'001, 0, Start);
    }
    EXPECT_EQ(h.sum(), back.sum());
}

} // namespace
} // namespace msfrs
