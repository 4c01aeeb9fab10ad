// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// RequestScheduler's reports of requests in service, of waiting requests, and of the reasons.
#include "support/requests.h"

#include <gtest/gtest.h>
#include <random>

namespace msfrs {
namespace {

using namespace test;

class ReportTest : public RequestTest {
protected:
    std::string holding() const
    {
        const auto window = s->window();
        return (window.holding ? "yes, " : "no, ") + window.because;
    }
};

TEST_F(ReportTest, WhyAnybodyIsHeldAndWhyNobodyIs)
{
    start(1);
    EXPECT_EQ(holding(), "no, nobody waits (W is 0 of W+ 1.00)");
    auto &a = hold(0, "u", "a");
    EXPECT_EQ(holding(), "no, nobody waits (W is 1 of W+ 1.00)");
    hold(1, "v", "b");
    hold(1, "v", "c");
    EXPECT_EQ(holding(), "yes, 2 wait and the window is full (W is 1 of W+ 1.00)");
    done(a);
    done(owners[1]);
    rest(owners[2]);
    EXPECT_EQ(holding(), "no, no request needs a slot, 1 are open and idle (W is 0 of W+ 1.00)");
}

TEST_F(ReportTest, WhoHasAPlaceIsSendingOrWasAsked)
{
    start(3);
    hold(0, "u", "a").isAsked = true;
    hold(0, "u", "b");
    hold(1, "v", "c").isAsked = true;
    hold(1, "v", "d").isAsked = true; // waits: it has no slot yet
    EXPECT_EQ(report("gold").inFlight, 2u);
    EXPECT_EQ(report("gold").asked, 1u);
    EXPECT_EQ(report("bronze").inFlight, 1u);
    EXPECT_EQ(report("bronze").asked, 1u);
}

TEST_F(ReportTest, WhoIsHeldTheLongestFirst)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    auto &b = hold(0, "u", "b");
    EXPECT_TRUE(read(b, 999));
    clock.advance(Second);
    hold(1, "v", "c");
    clock.advance(Second);
    EXPECT_FALSE(read(b, 1)) << "its quantum is over: c goes on";
    EXPECT_EQ(granted(), "a b c");
    clock.advance(Second);
    EXPECT_FALSE(again(a));
    clock.advance(Second);
    hold(1, "w", "d");
    clock.advance(Second);

    const auto held = s->held(50, clock.now());
    ASSERT_EQ(held.size(), 3u);
    const struct { const char *user, *cls, *host, *what; double waited; } wanted[] = {
        {"u", "gold", "host of b", "response", 3}, {"u", "gold", "host of a", "exchange", 2},
        {"w", "bronze", "host of d", "request", 1}};
    for (size_t n = 0; n < held.size(); ++n) {
        EXPECT_EQ(held[n].user, wanted[n].user) << n;
        EXPECT_EQ(held[n].className, wanted[n].cls) << n;
        EXPECT_EQ(held[n].host, wanted[n].host) << n;
        EXPECT_STREQ(HeldText(held[n].what), wanted[n].what) << n;
        EXPECT_DOUBLE_EQ(held[n].waited, wanted[n].waited) << n;
    }
    EXPECT_EQ(s->held(2, clock.now()).size(), 2u);
    EXPECT_EQ(s->held(2, clock.now()).front().host, "host of b");
    EXPECT_EQ(s->held(2, clock.now()).front().id, 7u);
    EXPECT_TRUE(s->held(0, clock.now()).empty());
}

TEST_F(ReportTest, AnExchangeThatEndsWhileItWaitsHasWaited)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    hold(1, "v", "b");
    EXPECT_FALSE(again(a));
    clock.advance(2 * Second);
    const auto trace = s->trace(*a.request, clock.now());
    EXPECT_EQ(trace.exchangeWait, 2 * Second);
    EXPECT_EQ(trace.totalWait, trace.firstWait + trace.exchangeWait);
}

TEST_F(ReportTest, APauseBetweenQuantaIsTimeHeld)
{
    start(1);
    auto &tunnel = hold(0, "u", "tunnel");
    auto &other = hold(1, "v", "other");
    EXPECT_FALSE(read(tunnel, 1000));
    for (int second = 1; second <= 8; ++second) {
        clock.advance(Second);
        EXPECT_NEAR(report("gold").heldP95, second, 0.0906 * second) << "at once, not when it is over";
        EXPECT_DOUBLE_EQ(report("gold").heldSum, second);
    }
    EXPECT_FALSE(read(other, 20'000));
    EXPECT_EQ(granted(), "tunnel other tunnel");
    EXPECT_EQ(s->trace(*tunnel.request, clock.now()).firstWait, 0);
    for (int n = 0; n < 2; ++n) {
        const auto gold = report("gold");
        EXPECT_NEAR(gold.heldP95, 8, 0.72);
        EXPECT_DOUBLE_EQ(gold.heldSum, 8);
        EXPECT_DOUBLE_EQ(gold.heldLately / gold.bytesLately, 8.0 / 1000);
        EXPECT_EQ(gold.heldCount, 1u);
        rest(tunnel); // and the same again afterwards
    }
}

TEST_F(ReportTest, ANewExchangeIsHeldAnew)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    auto &b = hold(1, "v", "b");
    EXPECT_FALSE(again(a));
    clock.advance(3 * Second);
    rest(b);
    rest(a);
    const auto gold = report("gold");
    EXPECT_EQ(gold.heldCount, 2u);
    EXPECT_EQ(gold.heldP50, 0);
    EXPECT_NEAR(gold.heldP95, 3, 0.28);
}

TEST_F(ReportTest, WhatIsUnfinishedGrowsByWhatIsAskedForAndNotThere)
{
    config.quantum = 100'000;
    start(2);
    auto &a = hold(0, "u", "a"); // 4,000 bytes
    auto &b = hold(0, "v", "b"); // 1,000
    clock.advance(Second);
    read(a, 3000);
    clock.advance(Second);
    read(a, 1000);
    read(b, 1000);
    EXPECT_DOUBLE_EQ(report("gold").unfinished, 5000 * 1 + 2000 * 1);
    rest(a);
    clock.advance(Second); // idle meanwhile
    EXPECT_TRUE(again(a));
    clock.advance(2 * Second);
    read(a, 500);
    EXPECT_DOUBLE_EQ(report("gold").unfinished, 7000 + 500 * 2);
    EXPECT_DOUBLE_EQ(report("bronze").unfinished, 0);
}

TEST_F(ReportTest, EachMegabyteOfADownloadCountsForItself)
{
    config.quantum = 100'000;
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(0, "v", "b");
    for (int n = 0; n < 1000; ++n) { // 100 MB, half of it for each
        clock.advance(Second / 10);
        EXPECT_FALSE(read(a.served ? a : b, 100'000));
    }
    const auto gold = report("gold");
    EXPECT_NEAR(gold.heldP99, 1, 0.19) << "not the 50 s that each was held in all";
    EXPECT_NEAR(gold.heldLately / gold.bytesLately * 1e6, 1, 0.01);
    EXPECT_EQ(gold.heldCount, 102u) << "and what each has had since its last megabyte";
}

TEST_F(ReportTest, WhoGivesUpOrIsRefusedWasHeld)
{
    start(1);
    hold(0, "u", "a");
    auto &leaves = hold(1, "v", "leaves");
    hold(1, "v", "refused");
    clock.advance(5 * Second);
    done(leaves);
    EXPECT_NEAR(report("bronze").heldP50, 5, 0.46);
    pass(config.maxWait);
    EXPECT_EQ(owners[2].expiries, 1);
    EXPECT_DOUBLE_EQ(report("bronze").heldSum, 65);
    EXPECT_EQ(report("bronze").heldCount, 2u);
}

TEST_F(ReportTest, WhatItWasHeldStaysInTheClassWhereItWas)
{
    start(1);
    hold(1, "v", "blocker");
    auto &a = hold(0, "u", "a");
    clock.advance(2 * Second);
    s->reclass(*a.request, 1, clock.now());
    EXPECT_DOUBLE_EQ(report("gold").heldSum, 2);
    EXPECT_DOUBLE_EQ(report("bronze").heldSum, 0);
    clock.advance(3 * Second);
    done(owners[0]);
    EXPECT_EQ(granted(), "blocker a");
    done(a);
    EXPECT_DOUBLE_EQ(report("gold").heldSum, 2);
    EXPECT_DOUBLE_EQ(report("bronze").heldSum, 3);
}

TEST_F(ReportTest, WhoAsksForMoreWhileItIsHeldGoesOnBeingHeld)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    EXPECT_FALSE(read(a, 1000));
    clock.advance(3 * Second);
    askedMore(a);
    clock.advance(2 * Second);
    EXPECT_EQ(s->trace(*a.request, clock.now()).totalWait, 5 * Second);
    EXPECT_NEAR(report("gold").heldP95, 5, 0.46);
    EXPECT_FALSE(read(b, 1000));
    EXPECT_EQ(s->trace(*a.request, clock.now()).totalWait, 5 * Second);
    EXPECT_DOUBLE_EQ(report("gold").heldSum, 5);
}

TEST_F(ReportTest, SumsOfTimesHeldNeverFall)
{
    config.maxWait = 3600 * Second; // users who are never answered wait for long
    start(3);
    config.quantum = 1000;
    std::mt19937_64 engine(5);
    const auto random = [&](const uint64_t below) { return engine() % below; };
    std::vector<TestOwner *> open;
    double sum[2] = {};
    uint64_t count[2] = {};
    for (int n = 0; n < 5000; ++n) {
        clock.advance(static_cast<msfrs_time>(random(500'000'000)));
        if (open.size() < 12)
            open.push_back(&hold(static_cast<uint32_t>(random(2)), "u" + std::to_string(random(4)), "r"));
        const auto at = random(open.size());
        auto &owner = *open[at];
        const auto what = random(8);
        if (what == 0) {
            done(owner);
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
        } else if (what == 1) {
            s->reclass(*owner.request, static_cast<uint32_t>(random(2)), clock.now());
        } else if (owner.resting) {
            again(owner);
        } else if (what == 2) {
            askedMore(owner);
        } else if (what == 3 && owner.served) {
            rest(owner);
        } else if (owner.served) {
            read(owner, static_cast<int64_t>(random(400'000)));
        }
        for (const size_t c : {0, 1}) {
            const auto cls = report(config.classes[c].name);
            ASSERT_GE(cls.heldSum, sum[c]) << n;
            ASSERT_GE(cls.heldCount, count[c]) << n;
            sum[c] = cls.heldSum;
            count[c] = cls.heldCount;
        }
    }
    EXPECT_GT(sum[0], 100);
    for (const auto owner : open)
        done(*owner);
}

TEST_F(ReportTest, TheWindowBeginsAnewWithoutLosingAnybody)
{
    start(3);
    for (const auto name : {"a", "b", "c", "d"})
        hold(0, "u", name);
    EXPECT_EQ(granted(), "a b c");
    s->resetWindow(clock.now());
    EXPECT_EQ(s->window().limit, 1);
    EXPECT_EQ(s->window().outstanding, 3) << "a reset interrupts no response in service";
    EXPECT_EQ(report("gold").queued, 1u);
}

} // namespace
} // namespace msfrs
