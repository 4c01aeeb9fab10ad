// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How W+ comes down: a window beyond what is asked for holds nothing back.
#include "window/rate_controller.h"

#include "support/host.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using test::Ms;
using test::Second;

constexpr double C = 8e6; // bit/s: 1,000,000 bytes in one second

class WayDown : public ::testing::Test {
protected:
    static WindowParams Params()
    {
        WindowParams p;
        p.target = 0.995;
        p.floor = 0.3;
        p.memory = 5 * Second;
        p.early = 0.9;
        p.initial = 5;
        p.queue = 30 * Ms;
        return p;
    }

    /// Intervals of one second in which the link carries a share u of C, and `w` are outstanding.
    void pass(const int seconds, const double u, const uint32_t w, const bool full, const PathState &path = {})
    {
        for (int n = 0; n < seconds; ++n) {
            while (window.outstanding < w)
                rate.released();
            while (window.outstanding > w)
                rate.returned();
            rate.setFull(full, now, total);
            rate.sample();
            now += Second;
            total += u * 1e6;
            ASSERT_TRUE(rate.update(now, total, C, path));
        }
    }

    LedgerWindow window;
    msfrs_time now = 5 * Second;
    double total = 0;
    RateController rate{Params(), window, now, total};
};

/// Round trips of 100 ms, for which 8 places are plenty.
PathState Path(const msfrs_time queue) { return {queue, 100 * Ms, -1, 8}; }

TEST_F(WayDown, FromWhatIsInServiceWhereNobodyWaits)
{
    window.limit = 279;
    pass(1, 1.0, 54, false, Path(0));
    EXPECT_NEAR(window.limit, 54 * 0.7, 0.01) << "in one interval somebody waits again";
    EXPECT_EQ(rate.lastChange(), WindowChange::NobodyWaits);
    pass(20, 1.0, 54, false, Path(0));
    EXPECT_LT(window.limit, 8.01);
    EXPECT_GT(window.limit, 7) << "below what does by round trips it goes slowly";
}

TEST_F(WayDown, FastWhereAQueueStandsAlthoughSomebodyWaits)
{
    window.limit = 56;
    pass(6, 1.0, 56, true, Path(300 * Ms));
    EXPECT_NEAR(window.limit, 8, 0.1) << "within ten seconds of a disturbance";
    EXPECT_EQ(rate.lastChange(), WindowChange::QueueAtProvider);
    pass(3, 1.0, 8, true, Path(50 * Ms));
    EXPECT_NEAR(window.limit, 8, 0.1) << "no long queue: no haste";
    pass(3, 1.0, 8, true, Path(70 * Ms));
    EXPECT_NEAR(window.limit, 8 * 0.9 * 0.9 * 0.9, 0.1);
}

TEST_F(WayDown, ALinkAtHalfItsRateIsFullWhereAQueueStands)
{
    window.limit = 10;
    pass(30, 0.5, 10, true, Path(40 * Ms));
    EXPECT_LE(window.limit, 10) << "U is half of its target, and W+ does not grow";
    pass(2, 0.5, 10, true, Path(5 * Ms));
    EXPECT_GT(window.limit, 10) << "nothing stands: there is room";
}

TEST_F(WayDown, SlowlyUntilTheLinkIsJustBelowFull)
{
    window.limit = 6;
    pass(5, 1.0, 6, true);
    EXPECT_DOUBLE_EQ(window.limit, 6 * 0.98);
    EXPECT_EQ(rate.lastChange(), WindowChange::LinkFull);
    const double before = window.limit;
    pass(4, 0.996, 6, true);
    EXPECT_DOUBLE_EQ(window.limit, before) << "at the target: it stays";
}

TEST_F(WayDown, ItGrowsSoonerWhereNothingStands)
{
    window.limit = 6;
    pass(1, 0.95, 6, true, Path(20 * Ms));
    EXPECT_EQ(window.limit, 6) << "five seconds are gathered";
    pass(1, 0.95, 6, true, Path(10 * Ms));
    EXPECT_NEAR(window.limit, 6 * 0.995 / 0.95, 0.01);
    EXPECT_EQ(rate.lastChange(), WindowChange::LinkNotFull);
}

TEST_F(WayDown, WindowsDoNotMakeUpForWhatPacketsBesideLeave)
{
    rate.elsewhere(4, 4);
    pass(60, 0.98, 6, true, Path(40 * Ms));
    EXPECT_EQ(rate.onTheWay(), 1) << "their pace is below C, and they come in bursts";
    pass(3, 0.96, 6, true, Path(40 * Ms));
    EXPECT_GT(rate.onTheWay(), 1) << "and for more than that";
    rate.elsewhere(4);
    const double before = rate.onTheWay();
    pass(3, 0.98, 6, true, Path(40 * Ms));
    EXPECT_GT(rate.onTheWay(), before) << "responses elsewhere have windows, too";
}

TEST_F(WayDown, BackToItsStartWhileTheLinkIsIdle)
{
    window.limit = 90;
    pass(9, 0.1, 1, false);
    EXPECT_EQ(window.limit, 90);
    pass(90, 0.1, 1, false);
    EXPECT_NEAR(window.limit, 5, 0.1);
    EXPECT_EQ(rate.lastChange(), WindowChange::Idle);
    window.limit = 2;
    pass(90, 0.1, 1, false);
    EXPECT_NEAR(window.limit, 5, 0.1) << "from below as well";
}

/// Responses have a share `own` of C, and a queue stands.
PathState Beside(const double own, const double weighted = 0) { return {100 * Ms, 100 * Ms, own, 8, weighted}; }

TEST_F(WayDown, OtherTrafficLeavesTheFloor)
{
    pass(25, 1.0, 10, true, Beside(0.05));
    window.limit = 4;
    pass(1, 1.0, 4, true, Beside(0.05));
    EXPECT_DOUBLE_EQ(window.limit, 5) << "up to W0+";
    EXPECT_EQ(rate.lastChange(), WindowChange::Floor);
    EXPECT_GT(rate.onTheWay(), 1);
    pass(5, 1.0, 5, true, Beside(0.05));
    EXPECT_DOUBLE_EQ(window.limit, 5) << "more would leave nobody waiting: windows grow";
    pass(20, 1.0, 5, true, Beside(0.32));
    EXPECT_DOUBLE_EQ(window.limit, 5) << "near the floor W+ stays";
    pass(10, 1.0, 5, true, Beside(0.5));
    EXPECT_LT(window.limit, 5) << "above it the rest yields as before";
}

TEST_F(WayDown, BesideOthersThereAreAsManyPlacesAsWeightsAllow)
{
    pass(25, 1.0, 5, true, Beside(0.05, 20));
    window.limit = 8;
    pass(1, 1.0, 8, true, Beside(0.05, 20));
    EXPECT_DOUBLE_EQ(window.limit, 10);
    pass(4, 1.0, 10, true, Beside(0.05, 20));
    EXPECT_DOUBLE_EQ(window.limit, 12) << "where 20 would leave a class without anybody who waits";
    pass(5, 1.0, 12, true, Beside(0.05, 10));
    EXPECT_DOUBLE_EQ(window.limit, 6) << "and back when fewer want one";
}

TEST_F(WayDown, TheFloorIsForRequestsThatWait)
{
    window.limit = 10;
    pass(30, 1.0, 2, false, Beside(0.05, 20));
    EXPECT_LT(window.limit, 2.1);
    EXPECT_EQ(rate.onTheWay(), 1);
}

TEST_F(WayDown, ALinkThatCarriesLittleIsNotOthersTraffic)
{
    window.limit = 10;
    pass(10, 0.25, 10, true, Beside(0.24));
    EXPECT_LE(window.limit, 10);
}

TEST_F(WayDown, NeverBelowOne)
{
    window.limit = 1.2;
    pass(100, 1.0, 1, true, Path(900 * Ms));
    EXPECT_EQ(window.limit, 1);
}

TEST_F(WayDown, OffItIsThePapersWindow)
{
    auto params = Params();
    params.queue = 0;
    params.memory = 0;
    rate.configure(params);
    window.limit = 90;
    pass(20, 1.0, 54, false, Path(900 * Ms));
    EXPECT_EQ(window.limit, 90) << "nobody waits";
    pass(1, 1.0, 90, true, Path(900 * Ms));
    EXPECT_DOUBLE_EQ(window.limit, 90 * 0.995) << "equation (3)";
}

} // namespace
} // namespace msfrs
