// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace msfrs {
namespace {

constexpr msfrs_time Second = 1'000'000'000;

class Floor : public ::testing::Test {
protected:
    /// A second of a full link in which requests wait and responses have a share `own`.
    /// \returns factor() then
    double pass(const double own, const double fullShare = 1, const double utilisation = 1)
    {
        floor.update({Second, utilisation, own, fullShare}, 0.5);
        return floor.factor();
    }
    /// Several such seconds. \returns factor() after the last
    double passMany(const int seconds, const double own)
    {
        for (int n = 0; n < seconds; ++n)
            pass(own);
        return floor.factor();
    }
    /// Such seconds until the windows have grown. \returns their number
    int untilItGrows(const double own) { return until(own, [this] { return floor.factor() > 1; }); }
    /// Such seconds until the windows have been shortened again. \returns their number
    int untilItStops(const double own) { return until(own, [this] { return floor.factor() == 1; }); }

    WindowFloor floor;

private:
    template <class Condition> int until(const double own, const Condition reached)
    {
        for (int n = 1; n < 1000; ++n) {
            pass(own);
            if (reached())
                return n;
        }
        ADD_FAILURE() << "never, with " << own;
        return 0;
    }
};

TEST_F(Floor, TheShareBesideOthersIsSeenBeforeWindowsGrow)
{
    passMany(5, 0.2);
    EXPECT_EQ(pass(0.2), 1);
    EXPECT_LT(untilItGrows(0.2), 15);
}

TEST_F(Floor, WindowsGrowByWhatIsMissingInTheTimeOfAMean)
{
    untilItGrows(0.25);
    passMany(24, 0.25); // by then all is known to be missing
    const double before = floor.factor();
    EXPECT_NEAR(passMany(4, 0.25) / before, std::pow(0.5 / 0.25, 4.0 / 12), 0.05);
    EXPECT_EQ(passMany(15, 0.1), WindowFloor::Most);
}

TEST_F(Floor, AtTheFloorEverythingStays)
{
    untilItGrows(0.2);
    untilItStops(0.4);
    untilItGrows(0.1); // others take what is given up
    passMany(100, 0.5);
    const double before = floor.factor();
    EXPECT_GT(before, 2);
    for (int n = 0; n < 200; ++n)
        EXPECT_NEAR(pass(0.5), before, 0.02 * before);
}

TEST_F(Floor, WhatIsNotNeededIsGivenBack)
{
    untilItGrows(0.1);
    const double before = passMany(20, 0.2);
    EXPECT_GT(before, 2);
    EXPECT_LT(passMany(20, 0.9), before);
    passMany(20, 0.99);
    EXPECT_EQ(floor.factor(), 1);
}

TEST_F(Floor, TrafficThatDoesNotYieldIsFoundOut)
{
    untilItGrows(0.3); // a constant stream of 70 %
    EXPECT_LT(untilItStops(0.3), 60);
    EXPECT_TRUE(floor.inVain());
    for (int n = 0; n < 600; ++n) // some of it is lost in a full buffer, and throughput is uneven while that empties
        EXPECT_EQ(pass(n < 30 ? 0.22 : 0.28), 1) << "for ten minutes: " << n;
    EXPECT_LT(untilItGrows(0.3), 60) << "then it is tried again";
}

TEST_F(Floor, APossibleSuccessThatLastsWithoutGrowthIsNone)
{
    untilItGrows(0.3);
    untilItStops(0.48); // the mean by chance, or a buffer that fills
    EXPECT_EQ(passMany(600, 0.45), 1) << "a queue for nothing";
}

TEST_F(Floor, NothingIsGainedNearTheFloorEither)
{
    untilItGrows(0.45);
    untilItStops(0.48);
    EXPECT_EQ(passMany(600, 0.45), 1);
}

TEST_F(Floor, TrafficThatTakesWhatIsGivenUpIsPressed)
{
    untilItGrows(0.2);
    double own = 0.2;
    while (pass(own) > 1) // slow to yield
        own = std::min(own + 0.005, 0.4);
    EXPECT_TRUE(floor.inVain());
    EXPECT_LT(untilItGrows(0.2), 60);
    for (double n = 0, before = 1; n < 540; ++n, before = floor.factor())
        EXPECT_GE(pass(0.4), before) << "it would be lost again: " << n;
    EXPECT_EQ(floor.factor(), WindowFloor::Most);
    EXPECT_LT(untilItStops(0.4), 70) << "but whether that is so is looked at again";
    EXPECT_LT(untilItGrows(0.2), 60);
}

TEST_F(Floor, OtherTrafficThatComesLaterIsTriedAtOnce)
{
    untilItGrows(0.4);
    untilItStops(0.4);
    passMany(200, 0.4);
    EXPECT_TRUE(floor.inVain()) << "a constant stream";
    EXPECT_LT(untilItGrows(0.1), 40) << "and then downloads";
}

TEST_F(Floor, IsForRequestsThatWaitBesideOthers)
{
    const auto never = [](const WindowFloor::Interval &each, const double share) {
        WindowFloor fresh;
        for (int n = 0; n < 100; ++n)
            fresh.update(each, share);
        EXPECT_EQ(fresh.factor(), 1);
    };
    never({Second, 1, 0.1, 0.4}, 0.5);     // no requests wait
    never({Second, 0.25, 0.24, 1}, 0.5);   // low throughput of the link is not other traffic
    never({Second, 1, -1, 1}, 0.5);        // own share unknown
    never({Second, 1, 0.1, 1}, 0);         // no floor
}

TEST_F(Floor, AloneNothingChanges)
{
    for (int n = 0; n < 300; ++n) // bytes are read later than they arrive on the link
        EXPECT_EQ(pass(n % 10 == 0 ? 0.4 : 1.06), 1) << n;
}

} // namespace
} // namespace msfrs
