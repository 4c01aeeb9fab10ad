// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/paper_window.h"

#include "support/host.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using test::Ms;
using test::Random;
using test::Second;

constexpr double C = 8e6; // bit/s: 1,000,000 bytes in one second

class PaperWindowTest : public ::testing::Test {
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

    bool update(const msfrs_time at, const double carried)
    {
        if (!use.update(at, carried, C))
            return false;
        paper.update(params, use, at, carried, C);
        return true;
    }
    void setLimit(const double limit)
    {
        paper.follow(limit);
        paper.lead();
    }
    /// An interval of one second with utilisation u, in which the window was full all the time or never.
    void pass(const double u, const bool full)
    {
        use.setFull(full, now, total);
        now += Second;
        total += u * 1e6;
        ASSERT_TRUE(update(now, total));
        use.setFull(false, now, total);
    }

    WindowParams params = Params();
    msfrs_time now = 5 * Second;
    double total = 123'456; ///< the initial value of the link's counter does not matter
    LinkUse use{params.interval, now, total};
    PaperWindow paper{now, total};
};

TEST_F(PaperWindowTest, FollowsAnotherThatComputesTheWindowAndGoesOnFromThere)
{
    paper.follow(12);
    EXPECT_EQ(paper.limit(), 12);
    pass(0.1, true);
    paper.reset(use, now, total);
    EXPECT_EQ(paper.limit(), 12) << "nothing here changes it";
    EXPECT_NEAR(use.utilisation(), 0.1, 1e-9) << "but it is measured";
    paper.lead();
    pass(0.49, true);
    EXPECT_NEAR(paper.limit(), 24, 1e-9);
}

TEST_F(PaperWindowTest, ComparesWhatIsOutstanding)
{
    paper.follow(3);
    EXPECT_TRUE(paper.open(2));
    EXPECT_FALSE(paper.open(3));
    EXPECT_TRUE(paper.within(3));
    EXPECT_FALSE(paper.within(4));
    EXPECT_TRUE(paper.open(4, params.reserve)) << "4.5 is rounded to 5";
    EXPECT_FALSE(paper.open(5, params.reserve));
}

TEST_F(PaperWindowTest, AddsUpForHowLongSomebodyWaited)
{
    EXPECT_EQ(use.fullTime(now), 0);
    use.setFull(true, now, total);
    EXPECT_EQ(use.fullTime(now + 300 * Ms), 300 * Ms);
    now += Second;
    update(now, total);
    EXPECT_EQ(use.fullTime(now), Second);
    use.setFull(false, now + 200 * Ms, total);
    EXPECT_EQ(use.fullTime(now + 5 * Second), 1200 * Ms);
}

TEST_F(PaperWindowTest, AddsUpWhatTheLinkCarriedWhileSomebodyWaited)
{
    use.setFull(true, now, total);
    now += Second;
    update(now, total += 7000);
    use.setFull(false, now + 500 * Ms, total += 2000);
    use.setFull(true, now + 700 * Ms, total += 4000);
    EXPECT_EQ(use.fullTime(), 1500 * Ms);
    EXPECT_DOUBLE_EQ(use.carriedWhileFull(), 9000);
}

TEST_F(PaperWindowTest, StartsWithOne)
{
    EXPECT_EQ(paper.limit(), 1);
    EXPECT_TRUE(paper.open(0));
    EXPECT_FALSE(paper.open(1));
    EXPECT_TRUE(paper.open(1, params.reserve)) << "1.5 is rounded to 2";
    EXPECT_FALSE(paper.open(2, params.reserve));
}

TEST_F(PaperWindowTest, Equation3)
{
    setLimit(6);
    params.target = 0.99;
    pass(0.60, true); // the paper's own example, section 3.2
    EXPECT_NEAR(paper.limit(), 9.9, 1e-12);
    EXPECT_EQ(std::lround(paper.limit()), 10);
    EXPECT_DOUBLE_EQ(use.utilisation(), 0.60);

    for (double u : {0.5, 0.9, 0.97, 0.98, 0.99, 1.0, 1.3}) {
        params = Params();
        setLimit(8);
        pass(u, true);
        EXPECT_NEAR(paper.limit(), std::min(0.98 / u, 2.0) * 8, 1e-9) << u;
    }
}

TEST_F(PaperWindowTest, UIsTakenOverTheTimeThatReallyPassed)
{
    setLimit(4);
    use.setFull(true, now, total);
    ASSERT_TRUE(update(now + 2500 * Ms, total + 2.5e6 * 0.7)); // the host called late
    EXPECT_NEAR(use.utilisation(), 0.7, 1e-12);
    EXPECT_NEAR(paper.limit(), 4 * 0.98 / 0.7, 1e-12);
    EXPECT_EQ(use.nextUpdate(), now + 3500 * Ms);
}

TEST_F(PaperWindowTest, GrowsByKAtMost)
{
    for (double expected : {2.0, 4.0, 8.0}) {
        pass(0.01, true);
        EXPECT_DOUBLE_EQ(paper.limit(), expected);
    }
    pass(0.49, true); // U+/U is K exactly
    EXPECT_DOUBLE_EQ(paper.limit(), 16);
}

TEST_F(PaperWindowTest, NothingAtAllCameIsAlsoK)
{
    pass(0, true);
    EXPECT_DOUBLE_EQ(paper.limit(), 2);
    EXPECT_EQ(use.utilisation(), 0);
}

TEST_F(PaperWindowTest, OnlyAnIntervalInWhichTheWindowWasFullCounts)
{
    setLimit(5);
    for (double u : {0.0, 0.5, 1.0}) {
        pass(u, false);
        EXPECT_EQ(paper.limit(), 5);
        EXPECT_DOUBLE_EQ(use.utilisation(), u) << "U is known all the same";
        EXPECT_EQ(use.fullShare(), 0);
    }
    pass(0.5, true);
    EXPECT_EQ(use.fullShare(), 1);
    const double grown = paper.limit();
    EXPECT_GT(grown, 5);
    pass(0.5, false);
    EXPECT_EQ(paper.limit(), grown) << "being full is not carried over";
}

TEST_F(PaperWindowTest, NeverBelowOneAndAlwaysFinite)
{
    pass(50, true); // other traffic floods the counter
    EXPECT_EQ(paper.limit(), 1);
    for (int n = 0; n < 200; ++n)
        pass(0, true);
    EXPECT_EQ(paper.limit(), 1 << 20);
    pass(1.96, true);
    EXPECT_DOUBLE_EQ(paper.limit(), 1 << 19) << "and it still reacts";
}

TEST_F(PaperWindowTest, IsARealNumberAndRoundedOnlyWhereItIsCompared)
{
    setLimit(1);
    for (int n = 0; n < 4; ++n)
        pass(0.98 / 1.2, true);
    EXPECT_NEAR(paper.limit(), std::pow(1.2, 4), 1e-9) << "rounding at each step would stay at 1";
    EXPECT_EQ(std::lround(paper.limit()), 2);
    EXPECT_TRUE(paper.open(1));
    EXPECT_FALSE(paper.open(2));
}

TEST_F(PaperWindowTest, AClockThatStandsStillOrGoesBackMakesNoInterval)
{
    setLimit(5);
    pass(0.5, true);
    const double before = paper.limit(), u = use.utilisation();
    use.setFull(true, now, total);
    EXPECT_FALSE(update(now, total + 1e6));
    EXPECT_FALSE(update(now - 30 * Second, total + 1e6));
    EXPECT_EQ(paper.limit(), before);
    EXPECT_EQ(use.utilisation(), u);
}

TEST_F(PaperWindowTest, AClockThatWentBackWhileTheWindowWasFullCountsNoNegativeTime)
{
    use.setFull(true, now, total);
    use.setFull(false, now - 100 * Second, total + 5e5);
    use.setFull(true, now - 100 * Second, total + 5e5);
    EXPECT_FALSE(update(now - 100 * Second, total + 5e5));
    const bool ended = update(now - 99 * Second, total + 1.49e6);
    EXPECT_TRUE(ended);
    EXPECT_GE(use.fullShare(), 0);
    EXPECT_LE(use.fullShare(), 1);
    EXPECT_GE(paper.limit(), 1);
    EXPECT_LE(paper.limit(), 2);
}

TEST_F(PaperWindowTest, AfterAClockWentBackIntervalsGoOnFromThere)
{
    pass(0.5, true);
    now -= 3600 * Second;
    EXPECT_TRUE(use.due(now)) << "nobody would ask for an hour";
    EXPECT_FALSE(update(now, total));
    EXPECT_LE(use.nextUpdate(), now + Second) << "W+ would stand still for an hour";
    const double before = paper.limit();
    pass(0.49, true);
    EXPECT_DOUBLE_EQ(paper.limit(), 2 * before);
    EXPECT_DOUBLE_EQ(use.utilisation(), 0.49);
}

TEST_F(PaperWindowTest, UIsThatOfTheTimeInWhichItWasFull)
{
    setLimit(10);
    // Half a second idle, half a second with a full window, in which the link was fully used.
    now += Second / 2;
    use.setFull(true, now, total);
    now += Second / 2;
    total += 0.5e6;
    ASSERT_TRUE(update(now, total));
    EXPECT_DOUBLE_EQ(use.utilisation(), 0.5) << "of the whole interval, for reports";
    EXPECT_DOUBLE_EQ(use.fullShare(), 0.5);
    EXPECT_NEAR(paper.limit(), 9.8, 1e-9) << "U_m is 1, not 1/2: the idle half says nothing about W+";
}

TEST_F(PaperWindowTest, ShortFullTimesAddUpToHalfAnInterval)
{
    setLimit(10);
    for (int n = 0; n < 4; ++n) { // 0.1 s of each second
        use.setFull(true, now, total);
        total += 0.7 * 0.1e6;
        use.setFull(false, now + Second / 10, total);
        total += 0.2e6; // an open window, which is not counted
        now += Second;
        ASSERT_TRUE(update(now, total));
        EXPECT_EQ(paper.limit(), 10) << n;
        EXPECT_DOUBLE_EQ(use.fullShare(), 0.1);
    }
    use.setFull(true, now, total);
    total += 0.7 * 0.1e6;
    use.setFull(false, now + Second / 10, total);
    now += Second;
    ASSERT_TRUE(update(now, total));
    EXPECT_NEAR(paper.limit(), 10 * 0.98 / 0.7, 1e-9);
}

TEST_F(PaperWindowTest, AnotherOriginOfTheTotalMakesNoJump)
{
    setLimit(10);
    use.setFull(true, now, total);
    use.rebase(now, 0);
    paper.rebase(now, 0); // another meter
    ASSERT_TRUE(update(now + Second, 0.98e6));
    EXPECT_NEAR(use.utilisation(), 0.98, 1e-12);
    EXPECT_NEAR(paper.limit(), 10, 1e-9);
}

TEST_F(PaperWindowTest, WhatTheLinkCarriedOverallKeepsARampFromCountingAsRoom)
{
    use.setFull(false, now, total);
    now += Second * 6 / 10;
    total += 0.6 * 1e6;
    use.setFull(true, now, total); // just filled: during the first RTT less arrives
    now += Second * 5 / 10;
    total += 0.4 * 1e6;
    ASSERT_TRUE(update(now, total));
    EXPECT_NEAR(paper.limit(), 0.98 / (1.0 / 1.1), 1e-9) << "not 0.98 / 0.8";
}

TEST_F(PaperWindowTest, ResetForgetsWhatWasLearned)
{
    pass(0.1, true);
    pass(0.1, true);
    ASSERT_EQ(paper.limit(), 4);
    use.setFull(true, now, total);
    now += Second * 9 / 10; // a full window and an idle link: the next update would double W+
    use.setFull(true, now, total);
    paper.reset(use, now, total);
    EXPECT_EQ(paper.limit(), 1);
    use.setFull(false, now, total);
    now += Second / 10;
    ASSERT_TRUE(update(now, total));
    EXPECT_EQ(paper.limit(), 1) << "measurements from before the reset do not count";
}

TEST_F(PaperWindowTest, ReserveIsAShareOfTheWindow)
{
    struct { double limit, reserve; uint32_t any, fresh; } const cases[] = {
        {10, 0.5, 10, 15}, {10, 0, 10, 10}, {1, 0, 1, 1}, {3.4, 0.5, 3, 5}, {3.5, 0.5, 4, 5}, {2, 1, 2, 4},
    };
    for (const auto &c : cases) {
        params.reserve = c.reserve;
        paper = PaperWindow(now, total);
        setLimit(c.limit);
        uint32_t any = 0, fresh = 0;
        for (int w = 0; w < 20; ++w) {
            any += paper.open(w);
            fresh += paper.open(w, params.reserve);
        }
        EXPECT_EQ(any, c.any) << c.limit << " " << c.reserve;
        EXPECT_EQ(fresh, c.fresh) << c.limit << " " << c.reserve;
    }
}

TEST(PaperWindowRandom, StaysWithinItsBoundsWhateverTheLinkDoes)
{
    Random random(7);
    const WindowParams params;
    LinkUse use(params.interval, 0, 0);
    PaperWindow paper(0, 0);
    msfrs_time now = 0;
    double total = 0;
    for (int n = 0; n < 20'000; ++n) {
        now = std::max<msfrs_time>(now + random.between(-2 * Second, 5 * Second), 0);
        total += random.chance(0.1) ? 0 : static_cast<double>(random.below(3'000'000));
        if (random.chance(0.6))
            use.setFull(random.chance(0.6), now, total);
        if (!use.due(now))
            continue;
        const double before = paper.limit();
        const bool ended = use.update(now, total, C);
        if (ended)
            paper.update(params, use, now, total, C);
        ASSERT_TRUE(std::isfinite(paper.limit()));
        ASSERT_GE(paper.limit(), 1);
        ASSERT_LE(paper.limit(), std::max(1.0, before * params.growth * (1 + 1e-12)));
        ASSERT_GE(use.utilisation(), 0);
        ASSERT_GE(use.fullShare(), 0);
        ASSERT_LE(use.fullShare(), 1);
        ASSERT_LE(use.nextUpdate(), now + params.interval);
        if (!ended) {
            ASSERT_EQ(paper.limit(), before);
        }
    }
}

} // namespace
} // namespace msfrs
