// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/capacity_day.h"

#include <gtest/gtest.h>
#include <utility>
#include <vector>

namespace msfrs {
namespace {

constexpr msfrs_time Second = 1'000'000'000, Hour = 3600 * Second;

TEST(CapacityDay, KnowsNothingAtFirst)
{
    const CapacityDay day;
    EXPECT_EQ(day.known(), 0);
    EXPECT_EQ(day.least(0.9), 0);
}

TEST(CapacityDay, TellsWhatThereWasForSoMuchOfTheTime)
{
    CapacityDay day;
    msfrs_time now = 5 * Second;
    for (int n = 0; n < 100; ++n, now += Second)
        day.add(n % 10 == 0 ? 1e6 : n % 2 ? 8e6 : 4e6, Second, now);
    EXPECT_EQ(day.known(), 100 * Second);
    const std::vector<std::pair<double, double>> wanted = {{0.95, 1e6}, {0.9, 4e6}, {0.51, 4e6}, {0.5, 8e6},
                                                           {0.01, 8e6}};
    for (const auto &[share, rate] : wanted) {
        EXPECT_GE(day.least(share), rate / 1.091) << share;
        EXPECT_LE(day.least(share), rate * 1.001) << share;
    }
}

TEST(CapacityDay, ForgetsWhatIsADayOld)
{
    CapacityDay day;
    day.add(1e6, 600 * Second, Hour / 2);
    for (int hour = 1; hour < 24; ++hour) {
        day.add(16e6, 600 * Second, hour * Hour);
        EXPECT_LT(day.least(1), 1.1e6) << hour;
    }
    EXPECT_EQ(day.known(), 24 * 600 * Second);
    day.add(16e6, 600 * Second, 24 * Hour);
    EXPECT_GT(day.least(1), 14e6);
    day.add(2e6, Second, 500 * Hour);
    EXPECT_EQ(day.known(), Second) << "nobody waited for weeks";
    EXPECT_LT(day.least(1), 2.1e6);
}

TEST(CapacityDay, AClockThatGoesBackAndAbsurdRatesDoNoHarm)
{
    CapacityDay day;
    day.add(4e6, Second, 100 * Hour);
    day.add(1e-3, Second, 3 * Hour);
    EXPECT_EQ(day.known(), Second);
    EXPECT_EQ(day.least(1), 8000);
    day.add(1e30, 9 * Second, 3 * Hour);
    EXPECT_GT(day.least(0.5), 1e11);
}

} // namespace
} // namespace msfrs
