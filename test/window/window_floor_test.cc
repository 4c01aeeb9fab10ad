// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace msfrs {
namespace {

constexpr msfrs_time Second = 1'000'000'000, Ms = 1'000'000;

class Floor : public ::testing::Test {
protected:
    /// A second of a full link in which requests wait and responses have a share `own`.
    /// \param queue ns; negative: not known
    /// \returns factor() then
    double pass(const double own, const msfrs_time queue = 200 * Ms)
    {
        floor.update({Second, 1, own, 1, queue}, 0.5);
        return floor.factor();
    }
    /// Several such seconds. \returns factor() after the last
    double passMany(const int seconds, const double own, const msfrs_time queue = 200 * Ms)
    {
        for (int n = 0; n < seconds; ++n)
            pass(own, queue);
        return floor.factor();
    }
    /// Such seconds until the windows have grown. \returns their number
    int untilItGrows(const double own, const msfrs_time queue = 200 * Ms)
    {
        return until(own, queue, [this] { return floor.factor() > 1; });
    }
    /// Such seconds until the windows have been shortened again. \returns their number
    int untilItStops(const double own, const msfrs_time queue = 200 * Ms)
    {
        return until(own, queue, [this] { return floor.factor() == 1; });
    }

    WindowFloor floor;

private:
    template <class Condition> int until(const double own, const msfrs_time queue, const Condition reached)
    {
        for (int n = 1; n < 1000; ++n) {
            pass(own, queue);
            if (reached())
                return n;
        }
        ADD_FAILURE() << "never, with " << own;
        return 0;
    }
};

TEST_F(Floor, TheShareBesideOthersIsSeenBeforeWindowsGrow)
{
    EXPECT_EQ(passMany(3, 0.2), 1);
    EXPECT_LT(untilItGrows(0.2), 15);
}

TEST_F(Floor, WindowsGrowByWhatIsMissing)
{
    untilItGrows(0.25);
    passMany(20, 0.25); // by then all is known to be missing
    const double before = floor.factor();
    EXPECT_NEAR(passMany(6, 0.25) / before, std::sqrt(0.5 / 0.25), 0.05) << "half of it in 6 s";
    EXPECT_EQ(passMany(9, 0.05), MostTimes);
}

TEST_F(Floor, AtTheFloorEverythingStays)
{
    untilItGrows(0.2);
    untilItStops(0.4);
    untilItGrows(0.1);
    passMany(10, 0.1);
    passMany(100, 0.5);
    const double before = floor.factor();
    EXPECT_GT(before, 2);
    for (int n = 0; n < 200; ++n)
        EXPECT_NEAR(pass(0.5), before, 0.02 * before);
}

TEST_F(Floor, WhatIsNotNeededIsGivenBack)
{
    untilItGrows(0.1);
    const double before = passMany(15, 0.2);
    EXPECT_GT(before, 2);
    EXPECT_LT(passMany(15, 0.9), before);
    passMany(20, 0.99);
    EXPECT_EQ(floor.factor(), 1);
    EXPECT_FALSE(floor.below());
}

TEST_F(Floor, IsNotKeptWhereTheQueueIsItsOwn)
{
    untilItGrows(0.3, 60 * Ms); // a constant stream of 70 %
    EXPECT_LT(untilItStops(0.34, 400 * Ms), 45) << "it gains a little, since that stream loses packets too";
    EXPECT_TRUE(floor.inVain());
    for (int n = 0; n < 630; ++n)
        EXPECT_EQ(pass(n < 30 ? 0.22 : 0.28, n < 20 ? (400 - 15 * n) * Ms : 100 * Ms), 1) << "for ten minutes: " << n;
    EXPECT_LT(untilItGrows(0.3, 100 * Ms), 10) << "then it is tried again";
}

TEST_F(Floor, IsKeptWhereOtherTrafficFillsTheBufferAnyway)
{
    untilItGrows(0.2);
    EXPECT_LT(untilItStops(0.3, 210 * Ms), 45);
    EXPECT_TRUE(floor.inVain()) << "not known yet";
    EXPECT_LT(untilItGrows(0.2, 190 * Ms), 45);
    for (double n = 0, before = 1; n < 590; ++n, before = floor.factor())
        EXPECT_GE(pass(0.4, 210 * Ms), before) << n;
    EXPECT_EQ(floor.factor(), MostTimes);
    EXPECT_LT(untilItStops(0.4, 210 * Ms), 20) << "whether that is still so is looked at each ten minutes";
    EXPECT_LT(untilItGrows(0.2, 190 * Ms), 45);
}

TEST_F(Floor, OtherTrafficThatComesLaterIsTriedAtOnce)
{
    untilItGrows(0.4, 60 * Ms);
    untilItStops(0.4, 400 * Ms);
    passMany(200, 0.4, 100 * Ms);
    EXPECT_TRUE(floor.inVain()) << "a constant stream";
    EXPECT_LT(untilItGrows(0.1, 400 * Ms), 20) << "and then downloads";
}

TEST_F(Floor, IsThatOfThePartyThatLeads)
{
    using Phase = WindowFloor::Phase;
    passMany(20, 0.3);
    ASSERT_EQ(floor.phase(), Phase::Trial);
    for (int n = 0; n < 100; ++n) {
        floor.follow(Phase::Without);
        EXPECT_EQ(pass(0.3), 1) << "however long: " << n;
    }
    floor.follow(Phase::Kept);
    EXPECT_GT(pass(0.3), 1);
    passMany(20, 0.3);
    EXPECT_EQ(floor.phase(), Phase::Kept) << "goes on without it";
}

TEST_F(Floor, AnUnknownQueueIsNoLongQueue)
{
    untilItGrows(0.3, -1);
    untilItStops(0.3, -1);
    EXPECT_EQ(passMany(600, 0.3, -1), 1);
}

TEST_F(Floor, IsForRequestsThatWaitBesideOthers)
{
    const auto never = [](const WindowFloor::Interval &each, const double share) {
        WindowFloor fresh;
        for (int n = 0; n < 100; ++n)
            fresh.update(each, share);
        EXPECT_EQ(fresh.factor(), 1);
    };
    constexpr auto queue = 200 * Ms;
    never({Second, 1, 0.1, 0.4, queue}, 0.5); // no requests wait
    never({Second, 0.25, 0.24, 1, 0}, 0.5);   // low throughput of the link is not other traffic
    never({Second, 1, -1, 1, queue}, 0.5);    // own share unknown
    never({Second, 1, 0.1, 1, queue}, 0);     // no floor
}

TEST_F(Floor, AloneNothingChanges)
{
    for (int n = 0; n < 300; ++n) // bytes are read later than they arrive on the link
        EXPECT_EQ(pass(n % 10 == 0 ? 0.4 : 1.06), 1) << n;
}

} // namespace
} // namespace msfrs
