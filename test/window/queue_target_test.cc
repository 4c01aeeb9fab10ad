// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/queue_target.h"

#include "support/host.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

TEST(QueueTarget, IsLongerWhileTheLinkIsIdleAndRequestsWait)
{
    QueueTarget target(30 * Ms);
    target.update(Second, 1, 0.045, 0.005, 300 * Ms);
    EXPECT_EQ(target.get(), 50 * Ms);
    target.update(Second, 0.5, 0.045, 0.005, 300 * Ms);
    EXPECT_EQ(target.get(), 60 * Ms) << "for as long as they waited";
}

TEST(QueueTarget, IsShorterWhileTheLinkIsFullerThanItHasToBe)
{
    QueueTarget target(30 * Ms);
    target.update(Second, 1, 0, 0.01, 300 * Ms);
    EXPECT_EQ(target.get(), 25 * Ms);
    target.update(Second, 0, 0, 0.01, 300 * Ms);
    EXPECT_EQ(target.get(), 20 * Ms) << "whether anybody waits or not";
}

TEST(QueueTarget, StaysWhileTheLinkIsIdleAndNobodyWaits)
{
    QueueTarget target(30 * Ms);
    target.update(Second, 0, 1, 0.005, 300 * Ms);
    EXPECT_EQ(target.get(), 30 * Ms);
}

TEST(QueueTarget, StaysWithinBounds)
{
    QueueTarget target(30 * Ms);
    target.update(Second, 1, 1, 0.005, 300 * Ms);
    EXPECT_EQ(target.get(), 300 * Ms);
    for (int n = 0; n < 70; ++n)
        target.update(Second, 1, -0.005, 0.005, 300 * Ms);
    EXPECT_EQ(target.get(), 0);
}

TEST(QueueTarget, IsShorterByTheQueueThatIsSeenWhereTheRateIsFound)
{
    QueueTarget target(90 * Ms);
    target.updateFound(Second, 1, 0.045, 0.005, {50 * Ms, 30 * Ms, false});
    EXPECT_EQ(target.get(), 70 * Ms) << "whatever is unused: C may be too high";
    target.updateFound(Second, 1, 0.045, 0.005, {std::nullopt, 30 * Ms, false});
    EXPECT_EQ(target.get(), 90 * Ms);
    target.updateFound(Second, 1, 0.045, 0.005, {20 * Ms, 30 * Ms, true});
    EXPECT_EQ(target.get(), 15 * Ms) << "the next fall of a variable rate is near";
    target.updateFound(Second, 1, 1, 0.005, {20 * Ms, 30 * Ms, false});
    EXPECT_EQ(target.get(), 120 * Ms) << "at most";
    target.updateFound(Second, 1, 0, 0.005, {500 * Ms, 30 * Ms, false});
    EXPECT_EQ(target.get(), 15 * Ms) << "at least";
}

} // namespace
} // namespace msfrs
