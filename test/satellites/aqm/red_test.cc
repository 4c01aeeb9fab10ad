// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// droptail, RED, and the AQMs built on RED.
#include "aqm/aqm_queue.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

/// Holds the queue at `length` packets of `size` bytes for `arrivals` arrivals of other flows. \returns the verdicts
std::string Hold(AqmQueue &q, msfrs_class &c, const size_t length, const int arrivals, const int64_t size = 1000)
{
    std::string verdicts;
    for (int n = 0; n < arrivals; ++n) {
        while (q.queued().size() > length)
            q.send();
        verdicts += q.offer(c, std::to_string(n % 20), size);
    }
    return verdicts;
}

/// Fills the queue despite the AQM's drops.
void Fill(AqmQueue &q, msfrs_class &c, const size_t length, const int64_t size = 1000)
{
    for (int n = 0; n < 100000 && q.queued().size() < length; ++n)
        q.offer(c, "fill" + std::to_string(n % 20), size);
    ASSERT_EQ(q.queued().size(), length);
}

double Share(const std::string &verdicts, const char what)
{
    return static_cast<double>(std::count(verdicts.begin(), verdicts.end(), what)) /
           static_cast<double>(verdicts.size());
}

TEST(Droptail, DropsWhatDoesNotFit)
{
    AqmQueue q("droptail limit=3");
    auto &c = q.addClass("c", 1);
    EXPECT_EQ(q.offer(c, "a", 1 << 30), '+') << "packets count, not bytes";
    EXPECT_EQ(q.offer(c, "a"), '+');
    EXPECT_EQ(q.offer(c, "b", 0), '+');
    EXPECT_EQ(q.offer(c, "b", 0), '-');
    q.send();
    EXPECT_EQ(q.offer(c, "b"), '+');
}

TEST(Droptail, CountsBytes)
{
    AqmQueue q("droptail mode=bytes limit=3 packet=10");
    auto &c = q.addClass("c", 1);
    EXPECT_EQ(q.offer(c, "a", 31), '-') << "it would never fit";
    EXPECT_EQ(q.offer(c, "a", int64_t(1) << 62), '-');
    EXPECT_EQ(q.offer(c, "a", 20), '+');
    EXPECT_EQ(q.offer(c, "a", 11), '-');
    EXPECT_EQ(q.offer(c, "a", 10), '+');
    int empty = 0;
    while (empty < 1000 && q.offer(c, "a", 0) == '+')
        ++empty;
    EXPECT_EQ(empty, 28) << "there are never more items than bytes";
}

TEST(Droptail, TakesTheHostsLimit)
{
    AqmQueue q("droptail", 5);
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 5; ++n)
        EXPECT_EQ(q.offer(c, "a"), '+');
    EXPECT_EQ(q.offer(c, "a"), '-');
}

TEST(Red, FollowsTheProfile)
{
    // With weight=1 the average is the queue. The gap between drops is 1, 2, ... K = floor(1/p) arrivals with
    // probability p each, and K + 1 with the remaining probability: the drop rate is above p.
    const auto share = [](const double p) {
        const double k = std::floor(1 / p);
        return 1 / (p * k * (k + 1) / 2 + (k + 1) * (1 - k * p));
    };
    AqmQueue q("red limit=200 weight=1 maxp=20");
    auto &c = q.addClass("c", 1);
    double last = 0;
    for (const size_t length : {49, 60, 80, 99, 120, 150, 180, 199}) {
        Fill(q, c, length);
        const auto verdicts = Hold(q, c, length, 4000);
        const double p = length < 50 ? 0 : length < 100 ? 0.2 * (static_cast<double>(length) - 50) / 50
                                                        : 0.2 + 0.8 * (static_cast<double>(length) - 100) / 100;
        const double dropped = Share(verdicts, '-');
        EXPECT_NEAR(dropped, p > 0 ? share(p) : 0, 0.03) << "queue of " << length;
        EXPECT_GE(dropped, last);
        last = dropped;
    }
    EXPECT_EQ(Hold(q, c, 200, 100), std::string(100, '-'));
}

TEST(Red, WithoutGentleDropsAllFromMaxOn)
{
    AqmQueue q("red limit=200 weight=1 gentle=off maxp=10");
    auto &c = q.addClass("c", 1);
    Fill(q, c, 99);
    EXPECT_LT(Share(Hold(q, c, 99, 2000), '-'), 0.3);
    Fill(q, c, 100);
    EXPECT_EQ(Hold(q, c, 100, 100), std::string(100, '-'));
}

TEST(Red, MarksWhileCongestionIsOnlyComing)
{
    AqmQueue q("red limit=200 weight=1 maxp=30");
    auto &c = q.addClass("c", 1);
    q.itemFlags = MSFRS_ECN_CAPABLE;
    Fill(q, c, 90);
    const auto early = Hold(q, c, 90, 2000);
    EXPECT_GT(Share(early, '*'), 0.1);
    EXPECT_EQ(Share(early, '-'), 0);
    Fill(q, c, 120);
    const auto beyond = Hold(q, c, 120, 2000);
    EXPECT_EQ(Share(beyond, '*'), 0) << "beyond max it drops";
    EXPECT_GT(Share(beyond, '-'), 0.3);

    AqmQueue off("red limit=200 weight=1 maxp=30 ecn=off");
    auto &o = off.addClass("c", 1);
    off.itemFlags = MSFRS_ECN_CAPABLE;
    Fill(off, o, 90);
    EXPECT_EQ(Share(Hold(off, o, 90, 2000), '*'), 0);
}

TEST(Red, TheAverageForgetsWhileTheLinkIsIdle)
{
    AqmQueue q("red limit=100 weight=0.5 transmission=1000000");
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 20; ++n)
        q.offer(c, "a");
    const double full = q.gauge("average");
    EXPECT_GT(full, 15);
    q.send(20);
    q.offer(c, "a");
    EXPECT_EQ(q.gauge("average"), full) << "the clock stood still";
    q.send();
    q.clock.advance(3 * Ms);
    q.offer(c, "a");
    EXPECT_NEAR(q.gauge("average"), full / 8, 1e-9) << "three packets could have been sent";
    q.send();
    q.offer(c, "a");
    EXPECT_NEAR(q.gauge("average"), full / 8, 1e-9) << "idle time counts once";
    q.send();
    q.clock.advance(Never);
    q.offer(c, "a");
    EXPECT_EQ(q.gauge("average"), 0);
}

TEST(Red, ByteModeSparesSmallPackets)
{
    const auto dropped = [](const int64_t size) {
        AqmQueue q("red mode=bytes limit=200 packet=1000 weight=1 maxp=10");
        auto &c = q.addClass("c", 1);
        Fill(q, c, 90);
        int64_t n = 0, lost = 0;
        for (; n < 5000; ++n) {
            const char verdict = q.offer(c, "a", size);
            lost += verdict == '-';
            if (verdict == '+')
                q.remove(*q.queued().back());
        }
        return static_cast<double>(lost) / static_cast<double>(n);
    };
    EXPECT_EQ(dropped(0), 0);
    const double small = dropped(100), typical = dropped(1000);
    EXPECT_GT(small, 0.005);
    EXPECT_NEAR(typical / small, 10, 1.5);
}

TEST(Choke, DropsBothOfOneFlow)
{
    AqmQueue q("choke limit=100 weight=1");
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 25; ++n)
        EXPECT_EQ(q.offer(c, "a"), '+') << "below min nothing is compared";
    EXPECT_EQ(q.offer(c, "a"), 'x') << "the queue is all its own";
    EXPECT_EQ(q.queued().size(), 24u);
    EXPECT_EQ(q.offer(c, "a"), '+');
    EXPECT_EQ(q.offer(c, "b"), '+') << "another flow";
}

TEST(Choke, TellsFlowsApartWhoseKeysCollide)
{
    AqmQueue q("choke limit=100 weight=1 maxp=0 draws=64");
    auto &c = q.addClass("c", 1);
    q.engine().flow(c, "a").key = q.engine().flow(c, "b").key = 1;
    for (int n = 0; n < 30; ++n)
        q.offer(c, n < 25 ? "a" : std::to_string(n));
    EXPECT_EQ(q.offer(c, "b"), '+');
    EXPECT_EQ(q.victims(), 0u);
}

TEST(Choke, NeverDrawsThePacketThatIsBeingTransmitted)
{
    AqmQueue q("choke limit=100 weight=1 min=1 max=50 maxp=0 draws=64");
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 2000; ++n) {
        ASSERT_NE(q.offer(c, "sent"), 'x'); // the queue is empty
        auto *const onLink = q.pick();
        for (int other = 0; other < 3; ++other)
            q.offer(c, "other" + std::to_string(other));
        ASSERT_EQ(q.offer(c, "sent"), '+') << "the only packet of its flow is on the link";
        EXPECT_TRUE(onLink->inService);
        q.finish(*onLink);
        q.send(10);
    }
}

TEST(Choke, DrawsEvenly)
{
    // One packet of "b" among n others is drawn with probability 1/(n+1).
    AqmQueue q("choke limit=100 weight=1 min=1 max=50 maxp=0");
    auto &c = q.addClass("c", 1);
    int both = 0;
    constexpr int Rounds = 20000;
    for (int n = 0; n < Rounds; ++n) {
        for (int other = 0; other < 9; ++other)
            q.offer(c, "other" + std::to_string(other));
        q.offer(c, "b");
        both += q.offer(c, "b") == 'x';
        q.send(20);
    }
    EXPECT_NEAR(both, Rounds / 10., 5 * std::sqrt(Rounds * 0.09));
}

TEST(Fred, KeepsStateOnlyForFlowsWithPackets)
{
    AqmQueue q("fred limit=100");
    auto &c = q.addClass("c", 1);
    Random random(4);
    for (int n = 0; n < 3000; ++n) {
        if (random.chance(0.5))
            q.offer(c, std::to_string(random.below(30)));
        else if (random.chance(0.7))
            q.send();
        else if (!q.queued().empty())
            q.remove(*q.queued()[random.below(q.queued().size())]);
        double active = 0;
        q.engine().eachFlow(c, [&](const NamedFlow &f) { active += f.backlog > 0; });
        ASSERT_EQ(q.gauge("active"), active);
    }
    q.drain();
    EXPECT_EQ(q.gauge("active"), 0);
}

TEST(Fred, LimitsOneFlowToMinPackets)
{
    AqmQueue q("fred limit=100");
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 25; ++n)
        EXPECT_EQ(q.offer(c, "a"), '+') << n;
    EXPECT_EQ(q.offer(c, "a"), '-') << "maxq is min";
    EXPECT_EQ(q.offer(c, "b"), '+') << "others may";
}

TEST(Fred, StrikesCountAgainstAFlowUntilItsLastPacketIsGone)
{
    AqmQueue q("fred limit=100");
    auto &c = q.addClass("c", 1);
    while (q.offer(c, "a") == '+') {
    }
    EXPECT_EQ(q.offer(c, "a"), '-'); // the second strike
    q.send(20);
    EXPECT_EQ(q.offer(c, "a"), '-') << "five queued are more than the average flow has, and it has been struck twice";
    q.send(5);
    EXPECT_EQ(q.offer(c, "a"), '+') << "forgotten";
    EXPECT_EQ(q.offer(c, "a"), '+');
}

TEST(Fred, BeyondMaxEachFlowMayHaveTwoPackets)
{
    AqmQueue q("fred limit=40 weight=1");
    auto &c = q.addClass("c", 1);
    for (int flow = 0; flow < 20; ++flow)
        EXPECT_EQ(q.offer(c, std::to_string(flow)), '+');
    EXPECT_EQ(q.offer(c, "0"), '+') << "its second";
    EXPECT_EQ(q.offer(c, "0"), '-') << "its third";
    EXPECT_EQ(q.offer(c, "new"), '+');
}

TEST(Fred, CountsBytes)
{
    AqmQueue q("fred mode=bytes limit=100 packet=1000");
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 50; ++n)
        EXPECT_EQ(q.offer(c, "a", 500), '+') << "25 packets of 1000 are 50 of 500; " << n;
    EXPECT_EQ(q.offer(c, "a", 500), '-');
}

} // namespace
} // namespace msfrs::test
