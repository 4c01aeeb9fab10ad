// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <gtest/gtest.h>

#include <algorithm>

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
    /// Other traffic has begun, and the windows start to grow. \returns seconds until then
    int untilItGrows(const double own)
    {
        for (int n = 1; n < 100; ++n) {
            const double before = floor.factor();
            if (pass(own) > before)
                return n;
        }
        ADD_FAILURE() << "they do not";
        return 0;
    }

    WindowFloor floor;
};

TEST_F(Floor, TheShareBesideOthersIsSeenBeforeWindowsGrow)
{
    passMany(10, 0.2);
    EXPECT_EQ(pass(0.2), 1);
    EXPECT_LT(untilItGrows(0.2), 15);
}

TEST_F(Floor, WindowsGrowByAFifthOrByWhatIsMissing)
{
    untilItGrows(0.1);
    EXPECT_DOUBLE_EQ(floor.factor(), 1.2);
    passMany(2, 0.1);
    EXPECT_DOUBLE_EQ(floor.factor(), 1.2 * 1.2 * 1.2);
    passMany(40, 0.48);
    const double before = floor.factor();
    pass(0.48);
    EXPECT_NEAR(floor.factor(), std::min(before * 0.5 / 0.48, WindowFloor::Most), 0.01);
}

TEST_F(Floor, NearItEverythingStays)
{
    untilItGrows(0.1);
    passMany(3, 0.1);
    passMany(30, 0.52);
    const double before = floor.factor();
    for (int n = 0; n < 200; ++n)
        EXPECT_EQ(pass(0.52), before);
}

TEST_F(Floor, WhatIsNotNeededIsGivenBack)
{
    untilItGrows(0.1);
    passMany(5, 0.2);
    const double before = floor.factor();
    EXPECT_GT(before, 2);
    EXPECT_LT(passMany(20, 0.9), before);
    passMany(20, 0.99);
    EXPECT_EQ(floor.factor(), 1);
}

TEST_F(Floor, TrafficThatDoesNotGiveWayIsFoundOut)
{
    const int before = untilItGrows(0.3); // a constant stream of 70 %
    EXPECT_EQ(passMany(15, 0.3), WindowFloor::Most);
    passMany(20, 0.3);
    for (int n = 0; n < 540; ++n) // some of it is lost in a full buffer, and throughput is uneven while that empties
        EXPECT_EQ(pass(n < 30 ? 0.22 : 0.28), 1) << "for ten minutes: " << n;
    EXPECT_GT(untilItGrows(0.3), before) << "then it is tried again";
}

TEST_F(Floor, NothingIsGainedNearTheFloorEither)
{
    untilItGrows(0.45);
    EXPECT_EQ(passMany(60, 0.52), 1) << "a queue for nothing";
}

TEST_F(Floor, TrafficThatGivesWaySlowlyIsPressedOn)
{
    untilItGrows(0.2);
    double before = 1;
    for (double own = 0.2; own < 0.4; own += 0.01) {
        EXPECT_GT(pass(own), std::min(before, WindowFloor::Most - 0.01)) << own;
        before = floor.factor();
    }
    for (int n = 0; n < 300; ++n)
        EXPECT_GE(pass(0.4), before) << "it has brought more, and would be lost: " << n;
    EXPECT_EQ(floor.factor(), WindowFloor::Most);
}

TEST_F(Floor, TrafficThatTakesWhatItIsLeftIsPressedAtOnce)
{
    untilItGrows(0.4);
    passMany(60, 0.42);
    EXPECT_EQ(pass(0.42), 1) << "that was not worth it";
    EXPECT_LT(untilItGrows(0.1), 40);
    for (double n = 0, before = 1; n < 300; ++n, before = floor.factor())
        EXPECT_GT(pass(0.15), std::min(before, WindowFloor::Most - 0.01)) << "this traffic is known to be responsive: " << n;
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
