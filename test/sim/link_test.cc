// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The simulated link and its clock.
#include "sim/link/link.h"

#include <gtest/gtest.h>
#include <string>

namespace msfrs::sim {
namespace {

TEST(Clock, DoesWhatIsDueAtTheSameTimeInOrder)
{
    Clock clock;
    std::string order;
    clock.at(2, [&] { order += "c"; });
    clock.at(1, [&] {
        order += "a";
        clock.after(0, [&] { order += "b"; });
    });
    clock.at(2, [&] { order += "d"; });
    clock.run(1);
    EXPECT_EQ(order, "ab");
    clock.run(3);
    EXPECT_EQ(order, "abcd");
    EXPECT_EQ(clock.now(), 3);
}

TEST(Clock, TimersCountOnceAndAsSetLast)
{
    Clock clock;
    int calls = 0;
    {
        Timer gone(clock, [&] { calls += 100; });
        gone.set(1);
    }
    Timer timer(clock, [&] { ++calls; });
    timer.set(2);
    timer.set(4);
    clock.run(3);
    EXPECT_EQ(calls, 0);
    clock.run(5);
    EXPECT_EQ(calls, 1);
    timer.set(6);
    timer.stop();
    clock.run(7);
    EXPECT_EQ(calls, 1);
}

TEST(Link, DelaysByItsQueueAndDropsAtItsTail)
{
    Clock clock;
    Link link(clock, FullFrame * 8 * 1000, 10 * FullFrame); // a frame a millisecond
    std::vector<msfrs_time> arrived;
    for (int n = 0; n < 20; ++n)
        EXPECT_EQ(link.send(FullFrame, [&] { arrived.push_back(clock.now()); }), n < 12) << n;
    EXPECT_EQ(link.backlog(), 10 * FullFrame);
    clock.run(Second);
    ASSERT_EQ(arrived.size(), 12u);
    for (size_t n = 0; n < arrived.size(); ++n) // two find tokens
        EXPECT_NEAR(static_cast<double>(arrived[n]), static_cast<double>(n < 2 ? 0 : (n - 1) * Ms), 10) << n;
    const auto &counts = link.counts();
    EXPECT_EQ(counts.droppedFrames, 8u);
    EXPECT_EQ(counts.offered, counts.carried + counts.dropped + link.backlog());
    EXPECT_NEAR(link.meanQueue(), 55e-6, 1e-6); // 10 + 9 + ... + 1 ms for a millisecond each, in a second
    EXPECT_NEAR(link.queueQuantile(0.995), 0.006, 0.0011);
}

TEST(Link, MakesUpForIdlenessByTwoFramesAlone)
{
    Clock clock;
    Link link(clock, FullFrame * 8 * 1000, 100 * FullFrame);
    clock.run(Second);
    int arrived = 0;
    for (int n = 0; n < 10; ++n)
        link.send(FullFrame, [&] { ++arrived; });
    clock.run(Second + 1);
    EXPECT_EQ(arrived, 2);
    clock.run(Second + 8 * Ms + 10);
    EXPECT_EQ(arrived, 10);
}

TEST(Link, WithoutABucketIsAWire)
{
    Clock clock;
    Link link(clock, FullFrame * 8 * 1000, 100 * FullFrame, 0);
    std::vector<msfrs_time> arrived;
    const auto send = [&] { link.send(FullFrame, [&] { arrived.push_back(clock.now()); }); };
    clock.run(Second);
    for (int n = 0; n < 3; ++n)
        send();
    clock.run(2 * Second);
    send();
    clock.run(3 * Second);
    EXPECT_EQ(arrived, (std::vector<msfrs_time>{Second + Ms, Second + 2 * Ms, Second + 3 * Ms, 2 * Second + Ms}));
}

} // namespace
} // namespace msfrs::sim
