// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/swings.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

constexpr msfrs_time Second = 1'000'000'000;

struct Course {
    Swings swings;
    msfrs_time now = 0;

    void at(const double rate, const double seconds, const bool queue = true)
    {
        for (const auto end = now + static_cast<msfrs_time>(seconds * 1e9); now < end; now += Second / 10)
            swings.seen(rate, queue, now);
    }
    void upAndDown(const size_t times, const double low, const double seconds, const bool queue = true)
    {
        for (size_t n = 0; n < times; ++n) {
            at(10e6, seconds);
            at(low, seconds, queue);
        }
    }
    bool varies() const { return swings.varies(now); }
};

TEST(Swings, SeveralFallsInAMinuteAreAVariableRateLink)
{
    Course course;
    course.upAndDown(Swings::Several - 1, 6e6, 3);
    EXPECT_FALSE(course.varies());
    course.upAndDown(1, 6e6, 3);
    EXPECT_TRUE(course.varies());
    course.at(6e6, 30);
    EXPECT_TRUE(course.varies());
    course.at(6e6, 30);
    EXPECT_FALSE(course.varies()) << "a minute later";
}

TEST(Swings, SmallOnesAndThoseWithoutAQueueDoNotCount)
{
    Course course;
    course.upAndDown(30, 8e6, 1);
    course.upAndDown(30, 2e6, 1, false);
    EXPECT_FALSE(course.varies());
}

TEST(Swings, FallsWithoutARiseBetweenAreOne)
{
    Course course;
    for (double rate = 80e6; rate > 0.1e6; rate *= 0.7)
        course.at(rate, 1);
    EXPECT_FALSE(course.varies());
}

TEST(Swings, StepsByFourAndABusyHourAreNone)
{
    Course steps, wave;
    steps.upAndDown(20, 2.5e6, 20);
    EXPECT_FALSE(steps.varies());
    for (int tenth = 0; tenth < 3000; ++tenth)
        wave.at(10e6 * std::pow(3, (std::cos(tenth * 2 * M_PI / 600) - 1) / 2), 0.1);
    EXPECT_FALSE(wave.varies());
}

} // namespace
} // namespace msfrs
