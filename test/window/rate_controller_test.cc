// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/rate_controller.h"

#include "support/host.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using test::Ms;
using test::Random;
using test::Second;

constexpr double C = 8e6; // bit/s: 1,000,000 bytes in one second

class RateControllerTest : public ::testing::Test {
protected:
    static WindowParams Params()
    {
        WindowParams p;
        p.target = 0.98;
        p.interval = Second;
        p.growth = 2;
        p.reserve = 0.5;
        return p;
    }

    /// An interval of one second in which the link carried a share u of C, the window full all the time or never.
    void pass(const double u, const bool full)
    {
        rate.setFull(full, now, total);
        now += Second;
        total += u * 1e6;
        ASSERT_TRUE(rate.update(now, total, C));
        rate.setFull(false, now, total);
    }

    LedgerWindow window;
    msfrs_time now = 5 * Second;
    double total = 123'456; ///< where the link's count starts is of no importance
    RateController rate{Params(), window, now, total};
};

TEST_F(RateControllerTest, FollowsAnotherThatComputesTheWindowAndGoesOnFromThere)
{
    rate.follow(12);
    EXPECT_EQ(window.limit, 12);
    pass(0.1, true);
    rate.reset(now, total);
    EXPECT_EQ(window.limit, 12) << "nothing here changes it";
    EXPECT_NEAR(rate.utilisation(), 0.1, 1e-9) << "but it is measured";
    rate.lead();
    pass(0.49, true);
    EXPECT_NEAR(window.limit, 24, 1e-9);
}

TEST_F(RateControllerTest, WhatIsOutstandingElsewhereTakesPlaces)
{
    rate.follow(3);
    rate.elsewhere(2);
    EXPECT_TRUE(rate.open());
    rate.released();
    EXPECT_FALSE(rate.open());
    EXPECT_TRUE(rate.within());
    EXPECT_TRUE(rate.openForFresh());
    rate.elsewhere(4);
    EXPECT_FALSE(rate.within());
    EXPECT_FALSE(rate.openForFresh());
    rate.elsewhere(0);
    EXPECT_TRUE(rate.open());
}

TEST_F(RateControllerTest, AddsUpForHowLongSomebodyWaited)
{
    EXPECT_EQ(rate.fullTime(now), 0);
    rate.setFull(true, now, total);
    EXPECT_EQ(rate.fullTime(now + 300 * Ms), 300 * Ms);
    now += Second;
    rate.update(now, total, C);
    EXPECT_EQ(rate.fullTime(now), Second);
    rate.setFull(false, now + 200 * Ms, total);
    EXPECT_EQ(rate.fullTime(now + 5 * Second), 1200 * Ms);
}

TEST_F(RateControllerTest, AddsUpWhatTheLinkCarriedWhileSomebodyWaited)
{
    rate.setFull(true, now, total);
    now += Second;
    rate.update(now, total += 7000, C);
    rate.setFull(false, now + 500 * Ms, total += 2000);
    rate.setFull(true, now + 700 * Ms, total += 4000);
    EXPECT_EQ(rate.fullTime(), 1500 * Ms);
    EXPECT_DOUBLE_EQ(rate.carriedWhileFull(), 9000);
}

TEST_F(RateControllerTest, StartsWithOne)
{
    EXPECT_EQ(window.limit, 1);
    EXPECT_TRUE(rate.open());
    rate.released();
    EXPECT_FALSE(rate.open());
    EXPECT_TRUE(rate.openForFresh()) << "1.5 is rounded to 2";
    rate.released();
    EXPECT_FALSE(rate.openForFresh());
    rate.returned();
    rate.returned();
    EXPECT_TRUE(rate.open());
}

TEST_F(RateControllerTest, AReturnTooManyIsNotFollowedByABillionReleases)
{
    rate.returned();
    EXPECT_EQ(window.outstanding, 0u);
}

TEST_F(RateControllerTest, Equation3)
{
    window.limit = 6;
    WindowParams p = Params();
    p.target = 0.99;
    rate.configure(p);
    pass(0.60, true); // the paper's own example, section 3.2
    EXPECT_NEAR(window.limit, 9.9, 1e-12);
    EXPECT_EQ(std::lround(window.limit), 10);
    EXPECT_DOUBLE_EQ(rate.utilisation(), 0.60);

    for (double u : {0.5, 0.9, 0.97, 0.98, 0.99, 1.0, 1.3}) {
        rate.configure(Params());
        window.limit = 8;
        pass(u, true);
        EXPECT_NEAR(window.limit, std::min(0.98 / u, 2.0) * 8, 1e-9) << u;
    }
}

TEST_F(RateControllerTest, UIsTakenOverTheTimeThatReallyPassed)
{
    window.limit = 4;
    rate.setFull(true, now, total);
    ASSERT_TRUE(rate.update(now + 2500 * Ms, total + 2.5e6 * 0.7, C)); // the host came late
    EXPECT_NEAR(rate.utilisation(), 0.7, 1e-12);
    EXPECT_NEAR(window.limit, 4 * 0.98 / 0.7, 1e-12);
    EXPECT_EQ(rate.nextUpdate(), now + 3500 * Ms);
}

TEST_F(RateControllerTest, GrowsByKAtMost)
{
    for (double expected : {2.0, 4.0, 8.0}) {
        pass(0.01, true);
        EXPECT_DOUBLE_EQ(window.limit, expected);
    }
    pass(0.49, true); // U+/U is K exactly
    EXPECT_DOUBLE_EQ(window.limit, 16);
}

TEST_F(RateControllerTest, NothingAtAllCameIsAlsoK)
{
    pass(0, true);
    EXPECT_DOUBLE_EQ(window.limit, 2);
    EXPECT_EQ(rate.utilisation(), 0);
}

TEST_F(RateControllerTest, OnlyAnIntervalInWhichTheWindowWasFullCounts)
{
    window.limit = 5;
    for (double u : {0.0, 0.5, 1.0}) {
        pass(u, false);
        EXPECT_EQ(window.limit, 5);
        EXPECT_DOUBLE_EQ(rate.utilisation(), u) << "U is known all the same";
        EXPECT_EQ(rate.fullShare(), 0);
    }
    pass(0.5, true);
    EXPECT_EQ(rate.fullShare(), 1);
    const double grown = window.limit;
    EXPECT_GT(grown, 5);
    pass(0.5, false);
    EXPECT_EQ(window.limit, grown) << "being full is not carried over";
}

TEST_F(RateControllerTest, NeverBelowOneAndAlwaysFinite)
{
    pass(50, true); // other traffic floods the counter
    EXPECT_EQ(window.limit, 1);
    for (int n = 0; n < 200; ++n)
        pass(0, true);
    EXPECT_EQ(window.limit, 1 << 20);
    pass(1.96, true);
    EXPECT_DOUBLE_EQ(window.limit, 1 << 19) << "and it still reacts";
}

TEST_F(RateControllerTest, IsARealNumberAndRoundedOnlyWhereItIsCompared)
{
    window.limit = 1;
    for (int n = 0; n < 4; ++n)
        pass(0.98 / 1.2, true);
    EXPECT_NEAR(window.limit, std::pow(1.2, 4), 1e-9) << "rounding at each step would stay at 1";
    EXPECT_EQ(std::lround(window.limit), 2);
    rate.released();
    EXPECT_TRUE(rate.open());
    rate.released();
    EXPECT_FALSE(rate.open());
}

TEST_F(RateControllerTest, AClockThatStandsStillOrGoesBackMakesNoInterval)
{
    window.limit = 5;
    pass(0.5, true);
    const double before = window.limit, u = rate.utilisation();
    rate.setFull(true, now, total);
    EXPECT_FALSE(rate.update(now, total + 1e6, C));
    EXPECT_FALSE(rate.update(now - 30 * Second, total + 1e6, C));
    EXPECT_EQ(window.limit, before);
    EXPECT_EQ(rate.utilisation(), u);
}

TEST_F(RateControllerTest, AClockThatWentBackWhileTheWindowWasFullCountsNoNegativeTime)
{
    rate.setFull(true, now, total);
    rate.setFull(false, now - 100 * Second, total + 5e5);
    rate.setFull(true, now - 100 * Second, total + 5e5);
    EXPECT_FALSE(rate.update(now - 100 * Second, total + 5e5, C));
    const bool ended = rate.update(now - 99 * Second, total + 1.49e6, C);
    EXPECT_TRUE(ended);
    EXPECT_GE(rate.fullShare(), 0);
    EXPECT_LE(rate.fullShare(), 1);
    EXPECT_GE(window.limit, 1);
    EXPECT_LE(window.limit, 2);
}

TEST_F(RateControllerTest, AfterAClockWentBackIntervalsGoOnFromThere)
{
    pass(0.5, true);
    now -= 3600 * Second;
    EXPECT_TRUE(rate.due(now)) << "nobody would ask for an hour";
    EXPECT_FALSE(rate.update(now, total, C));
    EXPECT_LE(rate.nextUpdate(), now + Second) << "W+ would stand still for an hour";
    const double before = window.limit;
    pass(0.49, true);
    EXPECT_DOUBLE_EQ(window.limit, 2 * before);
    EXPECT_DOUBLE_EQ(rate.utilisation(), 0.49);
}

TEST_F(RateControllerTest, UIsThatOfTheTimeInWhichItWasFull)
{
    window.limit = 10;
    // Half a second idle, half a second full, in which the link carried all that it can.
    now += Second / 2;
    rate.setFull(true, now, total);
    now += Second / 2;
    total += 0.5e6;
    ASSERT_TRUE(rate.update(now, total, C));
    EXPECT_DOUBLE_EQ(rate.utilisation(), 0.5) << "of the whole interval, for reports";
    EXPECT_DOUBLE_EQ(rate.fullShare(), 0.5);
    EXPECT_NEAR(window.limit, 9.8, 1e-9) << "U_m is 1, not 1/2: the idle half says nothing about W+";
}

TEST_F(RateControllerTest, ShortFullTimesAddUpToHalfAnInterval)
{
    window.limit = 10;
    for (int n = 0; n < 4; ++n) { // 0.1 s of each second
        rate.setFull(true, now, total);
        total += 0.7 * 0.1e6;
        rate.setFull(false, now + Second / 10, total);
        total += 0.2e6; // an open window, of no interest
        now += Second;
        ASSERT_TRUE(rate.update(now, total, C));
        EXPECT_EQ(window.limit, 10) << n;
        EXPECT_DOUBLE_EQ(rate.fullShare(), 0.1);
    }
    rate.setFull(true, now, total);
    total += 0.7 * 0.1e6;
    rate.setFull(false, now + Second / 10, total);
    now += Second;
    ASSERT_TRUE(rate.update(now, total, C));
    EXPECT_NEAR(window.limit, 10 * 0.98 / 0.7, 1e-9);
}

TEST_F(RateControllerTest, AnotherOriginOfTheTotalMakesNoJump)
{
    window.limit = 10;
    rate.setFull(true, now, total);
    rate.rebase(now, 0); // another meter
    ASSERT_TRUE(rate.update(now + Second, 0.98e6, C));
    EXPECT_NEAR(rate.utilisation(), 0.98, 1e-12);
    EXPECT_NEAR(window.limit, 10, 1e-9);
}

TEST_F(RateControllerTest, WhatTheLinkCarriedOverallKeepsARampFromCountingAsRoom)
{
    rate.setFull(false, now, total);
    now += Second * 6 / 10;
    total += 0.6 * 1e6;
    rate.setFull(true, now, total); // filled just now: for a round trip less comes
    now += Second * 5 / 10;
    total += 0.4 * 1e6;
    ASSERT_TRUE(rate.update(now, total, C));
    EXPECT_NEAR(window.limit, 0.98 / (1.0 / 1.1), 1e-9) << "not 0.98 / 0.8";
}

TEST_F(RateControllerTest, ResetForgetsWhatWasLearned)
{
    pass(0.1, true);
    pass(0.1, true);
    ASSERT_EQ(window.limit, 4);
    window.outstanding = 3;
    rate.setFull(true, now, total);
    now += Second * 9 / 10; // full, and the link idle: the next update would double W+
    rate.reset(now, total);
    EXPECT_EQ(window.limit, 1);
    EXPECT_EQ(window.outstanding, 3) << "who is served stays served";
    rate.setFull(false, now, total);
    now += Second / 10;
    ASSERT_TRUE(rate.update(now, total, C));
    EXPECT_EQ(window.limit, 1) << "by what came before the reset";
}

TEST_F(RateControllerTest, ReserveIsAShareOfTheWindow)
{
    struct { double limit, reserve; uint32_t any, fresh; } const cases[] = {
        {10, 0.5, 10, 15}, {10, 0, 10, 10}, {1, 0, 1, 1}, {3.4, 0.5, 3, 5}, {3.5, 0.5, 4, 5}, {2, 1, 2, 4},
    };
    for (const auto &c : cases) {
        auto p = Params();
        p.reserve = c.reserve;
        rate.configure(p);
        window = {};
        window.limit = c.limit;
        uint32_t any = 0, fresh = 0;
        for (; rate.openForFresh() || rate.open(); rate.released()) {
            any += rate.open();
            fresh += rate.openForFresh();
        }
        EXPECT_EQ(any, c.any) << c.limit << " " << c.reserve;
        EXPECT_EQ(fresh, c.fresh) << c.limit << " " << c.reserve;
    }
}

TEST(RateControllerRandom, StaysWithinItsBoundsWhateverTheLinkDoes)
{
    Random random(7);
    LedgerWindow window;
    WindowParams params;
    params.interval = Second;
    RateController rate(params, window, 0, 0);
    msfrs_time now = 0;
    double total = 0;
    for (int n = 0; n < 20'000; ++n) {
        now = std::max<msfrs_time>(now + random.between(-2 * Second, 5 * Second), 0);
        total += random.chance(0.1) ? 0 : static_cast<double>(random.below(3'000'000));
        if (random.chance(0.6))
            rate.setFull(random.chance(0.6), now, total);
        if (!rate.due(now))
            continue;
        const double before = window.limit;
        const bool ended = rate.update(now, total, C);
        ASSERT_TRUE(std::isfinite(window.limit));
        ASSERT_GE(window.limit, 1);
        ASSERT_LE(window.limit, std::max(1.0, before * params.growth * (1 + 1e-12)));
        ASSERT_GE(rate.utilisation(), 0);
        ASSERT_GE(rate.fullShare(), 0);
        ASSERT_LE(rate.fullShare(), 1);
        ASSERT_LE(rate.nextUpdate(), now + params.interval);
        if (!ended) {
            ASSERT_EQ(window.limit, before);
        }
    }
}

} // namespace
} // namespace msfrs
