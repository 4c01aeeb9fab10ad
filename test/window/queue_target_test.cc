// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/queue_target.h"

#include "support/host.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

constexpr QueueTarget::Path Unseen = {30 * Ms, std::nullopt};

TEST(QueueTarget, IsLongerWhileTheLinkIsIdleAndRequestsWait)
{
    QueueTarget target(30 * Ms);
    target.update(Second, 1, 0.045, 0.005, Unseen);
    EXPECT_EQ(target.get(), 50 * Ms);
    target.update(Second, 0.5, 0.045, 0.005, Unseen);
    EXPECT_EQ(target.get(), 60 * Ms) << "for as long as they waited";
}

TEST(QueueTarget, IsShorterWhileTheLinkIsFullerThanItHasToBe)
{
    QueueTarget target(30 * Ms);
    target.update(Second, 1, 0, 0.01, Unseen);
    EXPECT_EQ(target.get(), 25 * Ms);
}

TEST(QueueTarget, StartsAnewOnceNobodyWaits)
{
    QueueTarget target(90 * Ms);
    target.update(Second, 0, 1, 0.005, Unseen);
    EXPECT_EQ(target.get(), 30 * Ms) << "what was asked for then is no more";
}

TEST(QueueTarget, StaysWithinBounds)
{
    QueueTarget target(30 * Ms);
    target.update(Second, 1, 1, 0.005, Unseen);
    EXPECT_EQ(target.get(), 240 * Ms);
    for (int n = 0; n < 70; ++n)
        target.update(Second, 1, -0.005, 0.005, Unseen);
    EXPECT_EQ(target.get(), 0);
}

TEST(QueueTarget, IsShorterByTheQueueThatIsSeenBeyondTheAllowedOne)
{
    QueueTarget target(90 * Ms);
    target.update(Second, 1, 0.045, 0.005, {30 * Ms, 65 * Ms});
    EXPECT_EQ(target.get(), 70 * Ms) << "whatever is unused: C may be too high";
    target.update(Second, 1, 0.045, 0.005, {30 * Ms, 45 * Ms});
    EXPECT_EQ(target.get(), 90 * Ms) << "bursts make as much";
    target.update(Second, 1, 0.045, 0.005, {30 * Ms, 45 * Ms, true});
    EXPECT_EQ(target.get(), 60 * Ms) << "not where C is found";
    target.update(Second, 1, 0, 0.005, {30 * Ms, 500 * Ms});
    EXPECT_EQ(target.get(), 0) << "at least";
}

TEST(QueueTarget, DoesNotGrowOnAVariableRateLink)
{
    QueueTarget target(90 * Ms);
    target.update(Second, 1, 0.045, 0.005, {30 * Ms, 10 * Ms, true, true});
    EXPECT_EQ(target.get(), 0) << "the next fall is near";
}

} // namespace
} // namespace msfrs
