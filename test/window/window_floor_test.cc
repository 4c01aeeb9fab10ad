// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/window_floor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace msfrs {
namespace {

constexpr msfrs_time Second = 1'000'000'000;
using Verdict = WindowFloor::Verdict;

class Floor : public ::testing::Test {
protected:
    /// A second of a full link in which requests wait and responses have a share `own`.
    Verdict pass(const double own, const double fullShare = 1, const double utilisation = 1)
    {
        return floor.update({Second, utilisation, own, fullShare}, 0.5);
    }

    WindowFloor floor;
};

TEST_F(Floor, WindowsGrowByAQuarterOrByWhatIsMissing)
{
    EXPECT_EQ(pass(0.1), Verdict::Grow);
    EXPECT_DOUBLE_EQ(floor.factor(), 1.25);
    EXPECT_EQ(pass(0.48), Verdict::Grow);
    EXPECT_DOUBLE_EQ(floor.factor(), 1.25 * 0.5 / 0.48);
}

TEST_F(Floor, NearItEverythingStays)
{
    pass(0.1);
    const double before = floor.factor();
    for (int n = 0; n < 10; ++n)
        EXPECT_EQ(pass(0.52), Verdict::Stay);
    EXPECT_EQ(floor.factor(), before);
}

TEST_F(Floor, WhatIsNotNeededIsGivenBack)
{
    for (int n = 0; n < 5; ++n)
        pass(0.1 + 0.05 * n);
    EXPECT_EQ(pass(0.9), Verdict::Yield);
    for (int n = 0; n < 30; ++n)
        pass(0.99);
    EXPECT_EQ(floor.factor(), 1);
}

TEST_F(Floor, TrafficThatDoesNotGiveWayIsFoundOut)
{
    double most = 0;
    for (int n = 0; n < 10; ++n) {
        pass(0.3); // a constant stream of 70 %
        most = std::max(most, floor.factor());
    }
    EXPECT_GE(most, 2);
    EXPECT_LT(most, 2.5) << "twice the windows bring nothing";
    for (int n = 0; n < 40; ++n)
        EXPECT_EQ(pass(0.3), Verdict::Yield) << n;
    EXPECT_EQ(floor.factor(), 1) << "for a minute";
    most = 1;
    for (int n = 0; n < 20; ++n) {
        pass(0.3);
        most = std::max(most, floor.factor());
    }
    EXPECT_GT(most, 2) << "then it is tried again";
}

TEST_F(Floor, TrafficThatGivesWayIsPressedOn)
{
    for (double own = 0.05; own < 0.49; own *= 1.15)
        EXPECT_EQ(pass(own), Verdict::Grow);
    EXPECT_GT(floor.factor(), 6);
}

TEST_F(Floor, IsBounded)
{
    for (double own = 0.001; own < 0.4; own *= 1.2)
        pass(own);
    EXPECT_EQ(floor.factor(), WindowFloor::Most);
}

TEST_F(Floor, IsForRequestsThatWaitBesideOthers)
{
    EXPECT_EQ(pass(0.1, 0.4), Verdict::Yield) << "nobody waits";
    EXPECT_EQ(pass(0.24, 1, 0.25), Verdict::Yield) << "a link that carries little is not others' traffic";
    EXPECT_EQ(pass(-1), Verdict::Yield) << "nobody knows";
    EXPECT_EQ(floor.factor(), 1);
    EXPECT_EQ(floor.update({Second, 1, 0.1, 1}, 0), Verdict::Yield) << "no floor";
    EXPECT_EQ(floor.factor(), 1);
}

} // namespace
} // namespace msfrs
