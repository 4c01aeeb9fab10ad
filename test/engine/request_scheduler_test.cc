// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Holding, granting, refusing, expiring, reporting.
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class RequestSchedulerTest : public RequestTest {};

TEST_F(RequestSchedulerTest, GrantsAtOnceWhileTheWindowIsOpenAndInOrderAfterwards)
{
    start(2);
    auto &a = hold(0, "u", "a");
    EXPECT_EQ(a.grants, 1) << "granted before hold() returned";
    hold(0, "u", "b");
    auto &c = hold(0, "u", "c");
    auto &d = hold(1, "v", "d");
    EXPECT_EQ(granted(), "a b");
    EXPECT_EQ(s->window().outstanding, 2);
    s->charge(*a.request, 500, clock.now());
    done(a);
    EXPECT_EQ(granted(), "d") << "gold has had 250, bronze nothing";
    s->charge(*d.request, 100, clock.now());
    done(d);
    EXPECT_EQ(granted(), "c");
    done(c);
}

TEST_F(RequestSchedulerTest, DoneInEveryState)
{
    start(1);
    auto &served = hold(0, "u", "served");
    auto &queued = hold(0, "u", "queued");
    auto &paused = hold(1, "v", "paused");
    done(served);
    // At equal counters the first of gold goes; then bronze's is served, uses its quantum, and is paused behind gold's.
    EXPECT_EQ(granted(), "served queued");
    EXPECT_FALSE(read(queued, 1500));
    EXPECT_EQ(granted(), "paused");
    EXPECT_EQ(report("gold").paused, 1u);
    done(queued); // while paused
    EXPECT_EQ(report("gold").paused, 0u);
    EXPECT_EQ(report("gold").users, 0u);
    auto &waits = hold(0, "u", "waits");
    done(waits); // while queued: nothing charged
    EXPECT_EQ(report("gold").bytes, 1500u);
    done(paused); // while served
    EXPECT_EQ(s->window().outstanding, 0);
    EXPECT_EQ(granted(), "");
}

TEST_F(RequestSchedulerTest, RefusesWhatIsTooManyOfOneUser)
{
    config.maxPerUser = 3;
    start(1);
    hold(0, "u", "served");
    for (int n = 0; n < 3; ++n)
        EXPECT_TRUE(hold(0, "u", "q").request);
    EXPECT_EQ(hold(0, "u", "x").refusal, Refusal::PerUser);
    EXPECT_TRUE(hold(0, "v", "y").request) << "another user";
    EXPECT_TRUE(hold(1, "u", "z").request) << "the same name in another class is another user";
    EXPECT_EQ(report("gold").refusedPerUser, 1u);
    EXPECT_EQ(report("gold").requests, 6u);
    done(owners[1]);
    EXPECT_TRUE(hold(0, "u", "again").request) << "room comes back";
}

TEST_F(RequestSchedulerTest, PausedResponsesDoNotCountAsQueuedRequestsOfAUser)
{
    config.maxPerUser = 1;
    start(1);
    auto &a = hold(0, "u", "a");
    EXPECT_TRUE(hold(1, "v", "b").request);
    EXPECT_FALSE(read(a, 1500));
    EXPECT_EQ(report("gold").paused, 1u);
    EXPECT_TRUE(hold(0, "u", "c").request);
    EXPECT_EQ(hold(0, "u", "d").refusal, Refusal::PerUser);
}

TEST_F(RequestSchedulerTest, RefusesWhatIsTooManyInAll)
{
    config.maxQueued = 5;
    start(1);
    hold(0, "u", "served");
    for (int n = 0; n < 5; ++n)
        EXPECT_TRUE(hold(static_cast<uint32_t>(n % 2), std::to_string(n), "q").request);
    EXPECT_EQ(hold(1, "x", "x").refusal, Refusal::Total);
    EXPECT_EQ(report("bronze").refusedTotal, 1u);
    done(owners[0]);
    EXPECT_TRUE(hold(1, "x", "x").request);
}

TEST_F(RequestSchedulerTest, OneUserMayHaveTheWholeQueue)
{
    start(1);
    hold(0, "u", "served");
    for (int n = 0; n < 500; ++n)
        EXPECT_TRUE(hold(0, "u", "q").request);
}

TEST_F(RequestSchedulerTest, InAFullQueueTheUserWithMostForItsWeightLosesItsLast)
{
    config.maxQueued = 6;
    start(1);
    hold(0, "u", "served");
    auto &first = hold(0, "u", "first");
    for (int n = 0; n < 3; ++n)
        hold(0, "u", "q");
    auto &last = hold(0, "u", "last");
    auto &modest = hold(1, "w", "modest");
    EXPECT_TRUE(hold(1, "v", "v").request);
    EXPECT_EQ(last.expiries, 1);
    EXPECT_EQ(report("gold").refusedTotal, 1u);
    EXPECT_EQ(hold(0, "u", "again").refusal, Refusal::Total) << "its own would be the last";
    EXPECT_EQ(first.expiries + modest.expiries, 0);
    EXPECT_EQ(report("gold").refusedTotal, 2u);
    EXPECT_EQ(report("bronze").refusedTotal, 0u);
}

TEST_F(RequestSchedulerTest, WhatHasBegunIsNotRefusedForRoom)
{
    config.maxQueued = 2;
    start(1);
    auto &tunnel = hold(0, "u", "tunnel");
    s->charge(*tunnel.request, 100, clock.now());
    tunnel.isSilent = true;
    clock.advance(Second);
    s->tick(clock.now());
    auto &served = hold(1, "v", "served");
    EXPECT_FALSE(s->again(*tunnel.request, clock.now())) << "it waits";
    EXPECT_TRUE(hold(1, "v", "q").request);
    EXPECT_EQ(hold(1, "v", "x").refusal, Refusal::Total);
    EXPECT_EQ(tunnel.expiries, 0);
    done(served);
}

TEST_F(RequestSchedulerTest, ExpiresWhatWaitsTooLongAtItsTime)
{
    config.maxWait = 10 * Second;
    start(1);
    hold(0, "u", "served");
    const auto since = clock.now();
    auto &first = hold(0, "u", "first");
    clock.advance(4 * Second);
    auto &second = hold(1, "v", "second");
    EXPECT_LE(s->tick(clock.now()), since + 10 * Second) << "it would be called too late";
    clock.set(since + 10 * Second - 1);
    s->tick(clock.now());
    EXPECT_EQ(first.expiries, 0);
    clock.set(since + 10 * Second);
    s->tick(clock.now());
    EXPECT_EQ(first.expiries, 1);
    EXPECT_EQ(second.expiries, 0);
    EXPECT_EQ(report("gold").expired, 1u);
    EXPECT_EQ(report("gold").users, 1u);
    clock.advance(4 * Second);
    s->tick(clock.now());
    EXPECT_EQ(second.expiries, 1);
    EXPECT_EQ(granted(), "served");
    EXPECT_EQ(report("gold").bytes + report("bronze").bytes, 0u) << "nothing is charged for what was not served";
}

TEST_F(RequestSchedulerTest, WhatHasWaitedElsewhereExpiresAtItsTime)
{
    config.maxWait = 10 * Second;
    start(1);
    hold(0, "u", "served");
    auto &here = hold(0, "u", "here");
    const auto since = clock.now();
    clock.advance(4 * Second);
    auto &later = hold(1, "v", "later");
    clock.advance(Second);
    auto &moved = hold(1, "v", "moved", since + Second);
    EXPECT_EQ(s->trace(*moved.request, clock.now()).totalWait, 4 * Second);
    EXPECT_EQ(s->held(3, clock.now()).at(1).waited, 4.0) << "in order of waiting";
    auto next = clock.now();
    for (const auto &[who, after] : {std::pair(&here, 10), {&moved, 11}, {&later, 14}}) {
        EXPECT_EQ(who->expiries, 0);
        while (who->expiries == 0) {
            clock.set(next);
            next = s->tick(clock.now());
        }
        EXPECT_EQ(clock.now(), since + after * Second);
    }
}

TEST_F(RequestSchedulerTest, AnExpiredRequestMayEndLaterAndKeepsItsFigures)
{
    config.maxWait = 2 * Second;
    start(1);
    hold(0, "u", "served");
    auto &late = hold(1, "v", "late");
    late.onExpired = [] {}; // the host responds later
    clock.advance(3 * Second);
    s->tick(clock.now());
    ASSERT_EQ(late.expiries, 1);
    s->tick(clock.now());
    EXPECT_EQ(late.expiries, 1);
    clock.advance(5 * Second);
    const auto trace = s->trace(*late.request, clock.now());
    EXPECT_EQ(trace.className, "bronze") << "an administrator asks for the refused above all";
    EXPECT_EQ(trace.firstWait, -1);
    EXPECT_EQ(trace.totalWait, 3 * Second);
    s->charge(*late.request, 700, clock.now()); // the response may come from the link for all we know
    done(late);
    EXPECT_EQ(report("bronze").bytes, 700u);
}

TEST_F(RequestSchedulerTest, ASchedulerMayEndBeforeAnExpiredRequestIsAnswered)
{
    config.maxWait = Second;
    start(1);
    hold(0, "u", "served");
    auto &late = hold(1, "v", "late");
    late.onExpired = [] {};
    clock.advance(2 * Second);
    s->tick(clock.now());
    s.reset(); // the sanitizers look for leaks
}

TEST_F(RequestSchedulerTest, EndsWithRequestsInEveryState)
{
    start(1);
    auto &paused = hold(0, "u", "paused");
    hold(1, "v", "served");
    hold(1, "v", "queued");
    EXPECT_FALSE(read(paused, 2000));
    EXPECT_EQ(granted(), "paused served");
    s.reset();
}

TEST_F(RequestSchedulerTest, APausedResponseGoesOnAfterMaxWaitWhateverTheWindowSays)
{
    config.maxWait = 10 * Second;
    start(1);
    auto &paused = hold(0, "u", "paused");
    auto &holder = hold(1, "v", "holder");
    EXPECT_FALSE(read(paused, 1'000'000));
    EXPECT_EQ(granted(), "paused holder");
    pass(9 * Second);
    EXPECT_EQ(paused.grants, 1);
    pass(Second);
    EXPECT_EQ(granted(), "paused");
    EXPECT_EQ(paused.expiries, 0);
    EXPECT_EQ(s->window().outstanding, 2) << "one more than W+: half a response in the client's hands must not be lost";
    EXPECT_TRUE(read(holder, 100));
}

TEST_F(RequestSchedulerTest, AdoptedRequestsAreServedAtOnceAndCountedAsAnyOther)
{
    start(1);
    hold(0, "u", "a");
    auto &pinned = adopt(0, "u", "pinned");
    EXPECT_EQ(s->window().outstanding, 2);
    check();
    EXPECT_TRUE(read(pinned, 10));
    EXPECT_EQ(report("gold").bytes, 10u);
    EXPECT_EQ(report("gold").requests, 2u);
    const auto t = s->trace(*pinned.request, clock.now());
    EXPECT_EQ(t.firstWait, 0);
    EXPECT_EQ(t.quanta, 1u);
    EXPECT_EQ(t.w, 2u);
    hold(1, "v", "b");
    done(pinned);
    EXPECT_EQ(granted(), "a") << "W is still W+";
    done(owners[0]);
    EXPECT_EQ(granted(), "b");
}

TEST_F(RequestSchedulerTest, TraceTellsWhyARequestWasHeld)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    clock.advance(3 * Second);
    auto t = s->trace(*b.request, clock.now());
    EXPECT_EQ(t.className, "bronze");
    EXPECT_EQ(t.firstWait, -1);
    EXPECT_EQ(t.totalWait, 3 * Second);
    EXPECT_EQ(t.quanta, 0u);
    EXPECT_FALSE(read(a, 1000));
    EXPECT_EQ(granted(), "a b");
    clock.advance(2 * Second);
    t = s->trace(*b.request, clock.now());
    EXPECT_EQ(t.firstWait, 3 * Second);
    EXPECT_EQ(t.totalWait, 3 * Second);
    EXPECT_EQ(t.quanta, 1u);
    EXPECT_EQ(t.w, 1u);
    EXPECT_EQ(t.wplus, 1.0);
    t = s->trace(*a.request, clock.now());
    EXPECT_EQ(t.firstWait, 0);
    EXPECT_EQ(t.totalWait, 2 * Second) << "its pause";
    EXPECT_EQ(t.bytes, 1000);
    const auto gold = report("gold"), bronze = report("bronze");
    EXPECT_EQ(gold.heldCount, 1u);
    EXPECT_EQ(bronze.heldCount, 1u);
    EXPECT_NEAR(bronze.heldSum, 3, 1e-9);
    EXPECT_NEAR(bronze.heldP50, 3, 0.28);
    EXPECT_NEAR(gold.heldP50, 2, 0.19) << "its pause, while it lasts";
}

TEST_F(RequestSchedulerTest, TopUsersAreThoseWithTheMostBytes)
{
    start(5);
    for (int n = 0; n < 5; ++n)
        read(hold(static_cast<uint32_t>(n % 2), "user" + std::to_string(n), "r"), 100 * (n * 3 % 5));
    const auto top = s->topUsers(3);
    ASSERT_EQ(top.size(), 3u);
    EXPECT_EQ(top[0].name, "user3");
    EXPECT_EQ(top[0].className, "bronze");
    EXPECT_EQ(top[0].bytes, 400u);
    EXPECT_EQ(top[0].inFlight, 1u);
    EXPECT_GE(top[0].bytes, top[1].bytes);
    EXPECT_GE(top[1].bytes, top[2].bytes);
    EXPECT_EQ(s->topUsers(100).size(), 5u);
    EXPECT_TRUE(s->topUsers(0).empty());
}

TEST_F(RequestSchedulerTest, MemoryDoesNotGrowWithEveryUserEverSeen)
{
    start(1);
    TestOwner *before = &hold(0, "user0", "r");
    for (int n = 1; n < 2000; ++n) { // one of them always waits, so that each ends ahead of its successor
        auto &next = hold(0, "user" + std::to_string(n), "r");
        s->charge(*before->request, 1000, clock.now());
        done(*before);
        before = &next;
        clock.advance(Second);
        s->tick(clock.now());
    }
    EXPECT_LE(s->topUsers(5000).size(), 620u) << "ten minutes' worth";
}

TEST_F(RequestSchedulerTest, AReserveLetsFirstQuantaOfAClassThatIsNotAheadPass)
{
    config.window.reserve = 0.5;
    start(4);
    std::vector<TestOwner *> gold;
    for (int n = 0; n < 4; ++n)
        gold.push_back(&hold(0, "u", "g" + std::to_string(n)));
    EXPECT_EQ(granted(), "g0 g1 g2 g3");
    hold(0, "u", "g4"); // equal counters: not ahead
    hold(1, "v", "b0");
    EXPECT_EQ(granted(), "g4 b0") << "six places for first quanta";
    hold(1, "v", "b1");
    EXPECT_EQ(granted(), "") << "and no seventh";
    s->charge(*gold[0]->request, 900, clock.now());
    hold(0, "u", "g5");
    done(*gold[1]);
    EXPECT_EQ(granted(), "b1") << "gold is ahead now";
    done(*gold[2]);
    EXPECT_EQ(granted(), "") << "five are outstanding, and g5 is of a class that is ahead";
}

TEST_F(RequestSchedulerTest, AReserveIsNotForContinuations)
{
    config.window.reserve = 1;
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b"); // by the reserve
    EXPECT_EQ(granted(), "a b");
    hold(1, "v", "c");
    EXPECT_FALSE(read(a, 1000));
    EXPECT_EQ(granted(), "c") << "bronze has had less";
    EXPECT_EQ(s->window().outstanding, 2);
    done(b);
    EXPECT_EQ(granted(), "") << "one is outstanding, W+ is 1: a's continuation has to wait";
}

TEST_F(RequestSchedulerTest, TheWindowOpensTickByTick)
{
    config.quantum = 0; // the paper's window: W+ starts at 1
    start(0);
    for (int n = 0; n < 40; ++n)
        hold(0, std::to_string(n), "r");
    EXPECT_EQ(s->window().outstanding, 1);
    double expected = 1;
    for (int n = 0; n < 4; ++n) {
        clock.advance(config.window.interval);
        EXPECT_LE(s->tick(clock.now()), clock.now() + config.window.interval);
        expected *= 2;
        EXPECT_EQ(s->window().outstanding, expected);
        EXPECT_EQ(s->window().limit, expected);
    }
    const auto history = s->window().history;
    ASSERT_EQ(history.size(), 4u);
    EXPECT_EQ(history.back().w, 8) << "at the end of the interval, before the releases that follow";
    EXPECT_EQ(history.back().wplus, 16);
    EXPECT_EQ(history.back().u, 0);
    EXPECT_EQ(history.back().full, 1);
}

TEST_F(RequestSchedulerTest, HistoryIsBounded)
{
    start(0);
    for (int n = 0; n < 500; ++n) {
        clock.advance(config.window.interval);
        s->tick(clock.now());
    }
    EXPECT_EQ(s->window().history.size(), 120u);
    EXPECT_NEAR(s->window().history.back().at, static_cast<double>(clock.now()) * 1e-9, 1e-6);
}

TEST_F(RequestSchedulerTest, AClockThatGoesBackWedgesNothing)
{
    start(0);
    auto &a = hold(0, "u", "a");
    hold(1, "v", "b");
    pass(3 * Second);
    const double before = s->window().limit;
    clock.advance(-500 * Second);
    for (int n = 0; n < 3; ++n) {
        const auto next = s->tick(clock.now());
        EXPECT_GT(next, clock.now());
        EXPECT_LE(next, clock.now() + config.window.interval);
        clock.set(next);
    }
    EXPECT_GE(s->window().limit, before) << "no negative interval";
    read(a, 1000);
    hold(1, "v", "c");
    for (const auto &c : s->classes(clock.now())) {
        EXPECT_GE(c.heldP50, 0);
        EXPECT_GE(c.heldSum, 0);
    }
    done(a);
    check();
}

TEST_F(RequestSchedulerTest, AnArbiterThatWaitsIsAskedAgainInTime)
{
    config.arbiter = {TestModule("checker"), {{"pace", "5000000"}}};
    start(0);
    FixWindow(*s, 1, clock.now()); // no interval ends here; only the checker's clock counts
    clock.advance(2);              // to its present value: time must not decrease for a new engine
    config = s->config();
    config.window.growth = 2;
    s->reconfigure(config, clock.now());
    auto &a = hold(0, "u", "a");
    hold(0, "u", "b");
    EXPECT_EQ(granted(), "a");
    done(a);
    EXPECT_EQ(granted(), "") << "within 5 ms of the last pick";
    const auto next = s->tick(clock.now());
    EXPECT_EQ(next, clock.now() + 5 * Ms);
    clock.set(next);
    s->tick(clock.now());
    EXPECT_EQ(granted(), "b");
    EXPECT_EQ(host.logged(0), "");
}

TEST_F(RequestSchedulerTest, ReceiveBufferFollowsTheBandwidthDelayProduct)
{
    config.rate = 20e6;
    config.rtt = 300 * Ms;
    start();
    EXPECT_EQ(s->receiveBuffer(), 750'000);
    config.rate = 1e5;
    config.quantum = 16384;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->receiveBuffer(), 16384) << "never below the quantum";
    config.rate = 1e12;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->receiveBuffer(), 16 << 20);
    config.quantum = 0;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->receiveBuffer(), 0) << "without quanta nothing is paused";
}

TEST_F(RequestSchedulerTest, ReceiveBuffersOfNewResponsesTogetherHoldABandwidthDelayProduct)
{
    config.rate = 2e6; // C rtt is 75,000 bytes
    config.rtt = 300 * Ms;
    config.quantum = 16384;
    start(40);
    auto &first = hold(0, "u", "1");
    EXPECT_EQ(s->receiveBufferShare(), 75'000) << "one alone: no more than the link's own";
    hold(0, "u", "2");
    EXPECT_EQ(s->receiveBufferShare(), 75'000 / 2);
    for (const auto name : {"3", "4", "5", "6", "7", "8"})
        hold(0, "u", name);
    EXPECT_EQ(s->receiveBufferShare(), 75'000 / 8);
    for (int n = 9; n <= 20; ++n)
        hold(0, "u", std::to_string(n));
    EXPECT_EQ(s->receiveBufferShare(), 4380) << "at least three segments";
    config.quantum = 4096;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->receiveBufferShare(), 4096) << "or a quantum";
    config.quantum = 0;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->receiveBufferShare(), 0);
    EXPECT_EQ(s->receiveBuffer(*first.request), 0);
}

TEST_F(RequestSchedulerTest, IndicesOfClasses)
{
    start();
    EXPECT_EQ(s->classIndex("gold"), 0u);
    EXPECT_EQ(s->classIndex("bronze"), 1u);
    EXPECT_EQ(s->classIndex("silver"), UINT32_MAX);
    EXPECT_EQ(s->classIndex(""), UINT32_MAX);
}

} // namespace
} // namespace msfrs
