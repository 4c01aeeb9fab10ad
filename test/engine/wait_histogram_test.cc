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

constexpr msfrs_time Start = 12'345 * Second; // a monotonic clock seldom begins at 0
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
    h.add(0, Start);
    h.add(999 * Us, Start);
    EXPECT_EQ(h.quantile(1, Start), 0);
    EXPECT_EQ(h.count(), 2u);
    EXPECT_NEAR(h.sum(), 0.000999, 1e-12);
}

TEST(WaitHistogram, AQuantileIsNeverTooLowAndAtMostNinePercentTooHigh)
{
    for (msfrs_time wait = Ms; wait < 4 * 3600 * Second; wait = wait * 21 / 20) {
        WaitHistogram h;
        h.add(wait, Start);
        const double seconds = static_cast<double>(wait) * 1e-9, q = h.quantile(0.5, Start);
        ASSERT_GE(q, seconds * (1 - 1e-12));
        ASSERT_LE(q, seconds * 1.0906);
    }
}

TEST(WaitHistogram, TheLongestWaitHasABucket)
{
    WaitHistogram h;
    h.add(Second * 86400 * 365, Start);
    EXPECT_GT(h.quantile(1, Start), 4 * 3600.0);
}

TEST(WaitHistogram, QuantilesOfManyAreThoseOfTheSortedList)
{
    WaitHistogram h;
    Random random(11);
    std::vector<double> all;
    for (int n = 0; n < 10'000; ++n) {
        const auto wait = random.between(Ms, 20 * Second);
        h.add(wait, Start);
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
    h.add(10 * Second, Start);
    EXPECT_GT(h.quantile(1, Start + 5 * Minute), 9);
    h.add(1 * Second, Start + 5 * Minute);
    EXPECT_GT(h.quantile(1, Start + 9 * Minute), 9) << "the older half still counts";
    EXPECT_LT(h.quantile(1, Start + 10 * Minute), 2);
    EXPECT_GT(h.quantile(1, Start + 10 * Minute), 0.9);
    EXPECT_EQ(h.quantile(1, Start + 16 * Minute), 0) << "nothing came in the last ten minutes";
    h.add(2 * Second, Start + 60 * Minute);
    EXPECT_NEAR(h.quantile(1, Start + 60 * Minute), 2, 0.19) << "an old half came back";
    EXPECT_EQ(h.count(), 3u) << "count and sum are of all times";
    EXPECT_NEAR(h.sum(), 13, 1e-9);
}

TEST(WaitHistogram, AClockThatGoesBackBreaksNothing)
{
    WaitHistogram h;
    h.add(Second, Start);
    h.add(Second, Start - 10 * Minute);
    h.add(-5 * Second, Start);
    EXPECT_EQ(h.count(), 3u);
    EXPECT_NEAR(h.sum(), 2, 1e-9) << "a negative wait is none";
    EXPECT_NEAR(h.quantile(1, Start), 1, 0.1);
}

} // namespace
} // namespace msfrs
