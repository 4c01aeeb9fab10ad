// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The values behind msf's order: service counters and virtual time, call by call. The orders themselves are in
/// test/golden.
#include "support/engine_driver.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class Msf : public ::testing::Test {
protected:
    explicit Msf(const std::string &settings = "ahead=0 user_ahead=0 lag=0 lead=0 lead_floor=0"): d(ParseVariant("msf " + settings)) {}

    double sc(const msfrs_class &c) { return d.engine().gauges(&c).at(0); }
    double v() { return d.engine().gauges(nullptr).at(0); }
    /// Serves the item that is picked next, `bytes` long.
    std::string serve(const int64_t bytes)
    {
        auto *const t = d.pick();
        if (!t)
            return "-";
        const auto name = t->name;
        d.charge(*t, bytes);
        d.done(*t);
        return name;
    }

    Driver d;
};

struct MsfPaper : Msf {
    MsfPaper(): Msf("wake=paper users=fifo") {}
};

TEST_F(Msf, Equation1WithTheUserCountOfTheMoment)
{
    auto &c = d.addClass("c", 2);
    auto *const a = d.arrive(c, "a", 0);
    d.pick();
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 1000 / (2.0 * 1));
    auto *const b = d.arrive(c, "b", 0);
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 500 + 1000 / (2.0 * 2)) << "b waits: two users are active";
    d.arrive(c, "b", 0);
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 750 + 250) << "a second request of b is no third user";
    d.done(*a);
    d.pick();
    d.charge(*b, 300);
    EXPECT_DOUBLE_EQ(sc(c), 1000 + 300 / (2.0 * 1));
    EXPECT_EQ(*c.service, sc(c)) << "the counter is the host's";
}

TEST_F(Msf, OnlyBytesCount)
{
    Driver two(ParseVariant("msf lag=0"), [] {
        Driver::Setup setup;
        setup.resources = 2;
        return setup;
    }());
    auto &c = two.addClass("c", 1);
    auto *const t = two.arrive(c, "a", 0);
    two.pick();
    two.engine().charge(*t->item, 1, 1000, 0);
    EXPECT_EQ(two.engine().gauges(&c).at(0), 0);
}

TEST_F(Msf, AnExcessIsTheClassesServiceEvenWhenItIsIdle)
{
    auto &c = d.addClass("c", 4);
    d.engine().chargeFlow(d.engine().flow(c, "a"), 4000, 0);
    EXPECT_DOUBLE_EQ(sc(c), 1000) << "an idle class counts as one user";
}

TEST_F(Msf, EstimatesAreSpentWhenPickedAndGivenBackAtTheEnd)
{
    Driver::Setup setup;
    setup.estimate = [](int64_t) { return int64_t(1000); };
    Driver e(ParseVariant("msf lag=0"), setup);
    auto &c = e.addClass("c", 2);
    const auto counter = [&] { return e.engine().gauges(&c).at(0); };
    auto *const t = e.arrive(c, "a", 0);
    EXPECT_EQ(counter(), 0);
    e.pick();
    EXPECT_DOUBLE_EQ(counter(), 500);
    e.charge(*t, 300);
    EXPECT_DOUBLE_EQ(counter(), 500);
    e.done(*t);
    EXPECT_DOUBLE_EQ(counter(), 150);
}

TEST_F(Msf, ARefundNeverTakesMoreThanThereIs)
{
    Driver::Setup setup;
    setup.estimate = [](int64_t) { return int64_t(1000); };
    Driver e(ParseVariant("msf lag=0"), setup);
    auto &c = e.addClass("c", 1);
    auto *const a = e.arrive(c, "a", 0);
    auto *const b = e.arrive(c, "b", 0);
    e.pick(); // 1000 / 2
    e.remove(*b);
    e.done(*a); // 1000 / 1 is returned
    EXPECT_EQ(e.engine().gauges(&c).at(0), 0);
}

TEST_F(Msf, UsersHaveWeights)
{
    auto &c = d.addClass("c", 1);
    d.engine().flow(c, "double", 2);
    for (int n = 0; n < 20; ++n) {
        d.arrive(c, "double", 0, "d");
        d.arrive(c, "single", 0, "s");
    }
    std::string order;
    for (int n = 0; n < 12; ++n)
        order += serve(1000);
    EXPECT_EQ(std::count(order.begin(), order.end(), 'd'), 8) << order;
}

TEST_F(Msf, AUserWhoIsAheadIsRememberedWhileIdle)
{
    auto &c = d.addClass("c", 1);
    auto *const t = d.arrive(c, "ahead", 0);
    d.pick();
    d.arrive(c, "behind", 0);
    d.charge(*t, 10'000);
    d.done(*t);
    d.clock.advance(100 * Second);
    d.engine().forgetIdleFlows(d.clock.now() - 60 * Second, d.clock.now() - 600 * Second);
    d.arrive(c, "ahead", 0, "a");
    d.arrive(c, "behind", 0, "b");
    serve(0);
    EXPECT_EQ(serve(0), "b") << "10000 bytes were forgotten after a minute, while another waited";
    d.remove(*d.queued().front());
    d.clock.advance(600 * Second);
    d.engine().forgetIdleFlows(d.clock.now() - 60 * Second, d.clock.now() - 600 * Second);
    size_t flows = 0;
    d.engine().eachFlow(c, [&](const NamedFlow &) { ++flows; });
    EXPECT_EQ(flows, 1u) << "after ten minutes they are";
}

TEST_F(MsfPaper, AllIdleResetsAllCountersToZero)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    d.arrive(a, "u", 0);
    d.arrive(b, "u", 0);
    serve(1000);
    serve(3000);
    EXPECT_GT(sc(a), 0);
    EXPECT_GT(sc(b), 0);
    d.arrive(b, "u", 0);
    EXPECT_EQ(sc(a), 0);
    EXPECT_EQ(sc(b), 0);
}

TEST_F(MsfPaper, AnOutstandingResponseKeepsAClassActive)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    auto *const t = d.arrive(a, "u", 0);
    d.pick();
    d.charge(*t, 5000);
    d.arrive(b, "u", 0);
    EXPECT_EQ(sc(b), 5000) << "the least of the active ones is a's, which has nothing queued";
    d.arrive(a, "u", 0);
    EXPECT_EQ(sc(a), 5000) << "a was not idle";
}

TEST_F(MsfPaper, AWakingClassTakesTheLeastOfTheActive)
{
    msfrs_class *c[4];
    for (int n = 0; n < 4; ++n)
        c[n] = &d.addClass("c" + std::to_string(n), 1);
    Tracked *t[3];
    for (int n = 0; n < 3; ++n) {
        t[n] = d.arrive(*c[n], "u", 0);
        d.pick();
    }
    d.charge(*t[0], 7000);
    d.charge(*t[1], 2000);
    d.charge(*t[2], 4000);
    d.arrive(*c[3], "u", 0);
    EXPECT_EQ(sc(*c[3]), 2000);
    d.done(*t[1]); // idle now
    d.done(*t[0]);
    d.arrive(*c[0], "u", 0);
    EXPECT_EQ(sc(*c[0]), 2000) << "a class that woke with 7000 would be punished for what it had";
}

TEST_F(Msf, VirtualTimeIsTheCounterOfTheLeastServedAtEachPick)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    for (int n = 0; n < 3; ++n) {
        d.arrive(a, "u", 0);
        d.arrive(b, "u", 0);
    }
    EXPECT_EQ(v(), 0);
    serve(1000); // a
    serve(400);  // b
    serve(400);  // b
    EXPECT_EQ(v(), 400);
    auto &c = d.addClass("c", 1);
    d.arrive(c, "u", 0);
    EXPECT_EQ(sc(c), 400) << "max(own, V)";
    EXPECT_EQ(sc(a), 1000);
}

TEST_F(Msf, TakingACertainItemOutOfTurnDoesNotMoveVirtualTimeAhead)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    auto &c = d.addClass("c", 1);
    auto *const t = d.arrive(a, "u", 0);
    d.pick();
    d.arrive(b, "u", 0);
    d.charge(*t, 1'000'000); // a is far ahead of b, which waits
    d.requeue(*t);
    d.engine().pickThis(*t->item, d.clock.now()); // paused too long: it resumes regardless
    EXPECT_EQ(v(), 0) << "whoever wakes now would wait for b to catch up with a";
    const int64_t est[] = {0};
    auto *const woken = d.engine().adopt(d.engine().flow(c, "u"), est, nullptr, 0, 0, false);
    EXPECT_EQ(sc(c), 0);
    d.engine().remove(*woken, 0, MSFRS_GONE);
    d.engine().requeue(*t->item, est, d.clock.now()); // the state that the driver expects
}

TEST_F(Msf, WhatIsUsedWhileNobodyWaitsIsForgotten)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    auto *const t = d.arrive(a, "u", 0);
    d.pick();
    d.charge(*t, 1'000'000); // alone on an idle link
    d.arrive(b, "u", 0);
    EXPECT_EQ(sc(b), sc(a)) << "a would be starved until b has had as much";
    d.charge(*t, 500);
    EXPECT_EQ(sc(a), sc(b) + 500) << "what a uses while b waits is not";
}

TEST_F(Msf, WithinAClassWhatAUserHadWhileNobodyWaitedIsForgotten)
{
    auto &c = d.addClass("c", 1);
    auto *const t = d.arrive(c, "early", 0);
    d.pick();
    d.charge(*t, 1'000'000);
    d.arrive(c, "late", 0, "late1");
    d.requeue(*t);
    d.arrive(c, "late", 0, "late2");
    EXPECT_EQ(serve(1000), "late1");
    EXPECT_EQ(d.pick(), t) << "early waits for one response of late, not for a megabyte";
}

/// "a" and "b" have started a response, and a also has a fresh item. a has had 3001 bytes, b only one, and both pause.
struct MsfReserve : Msf {
    explicit MsfReserve(const std::string &settings = "ahead=0 user_ahead=0 lag=0 lead=0 lead_floor=0"): Msf(settings) {}

    void begin(msfrs_class &ofA, msfrs_class &ofB)
    {
        auto *const a = d.arrive(ofA, "a", 0, "rest of a");
        auto *const b = d.arrive(ofB, "b", 0, "rest of b");
        d.pick();
        d.pick();
        d.arrive(ofA, "a", 0, "new of a"); // another item waits, so service is counted
        d.charge(*a, 3001);
        d.charge(*b, 1);
        d.requeue(*a);
        d.requeue(*b);
    }
    std::string pickFresh()
    {
        auto *const t = d.pick(MSFRS_PICK_FRESH);
        return t ? t->name : "-";
    }
};

struct MsfReserveAhead : MsfReserve {
    MsfReserveAhead(): MsfReserve("ahead=3000 user_ahead=3000 lag=0 lead=0 lead_floor=0") {}
};

TEST_F(MsfReserve, IsForAClassThatIsNotAhead)
{
    auto &ofA = d.addClass("rich", 1), &ofB = d.addClass("poor", 1);
    begin(ofA, ofB);
    EXPECT_EQ(pickFresh(), "-");
    d.arrive(ofB, "b", 0, "new of b");
    EXPECT_EQ(pickFresh(), "new of b");
}

TEST_F(MsfReserve, IsForAUserWhoIsNotAheadOfOthersOfTheClass)
{
    auto &c = d.addClass("c", 1);
    begin(c, c);
    EXPECT_EQ(pickFresh(), "-") << "who asks for much would have it all the time";
    d.arrive(c, "b", 0, "new of b");
    EXPECT_EQ(pickFresh(), "new of b");
}

TEST_F(MsfReserveAhead, IsForAClassThatIsALittleAhead)
{
    begin(d.addClass("rich", 1), d.addClass("poor", 1));
    EXPECT_EQ(pickFresh(), "new of a");
}

TEST_F(MsfReserveAhead, IsForAUserWhoIsALittleAhead)
{
    auto &c = d.addClass("c", 1);
    begin(c, c);
    EXPECT_EQ(pickFresh(), "new of a");
}

struct MsfReserveShared : MsfReserve {
    MsfReserveShared(): MsfReserve("ahead=1500 user_ahead=1500 lag=0 lead=0 lead_floor=0 favour=0") {}

    void expectTwice()
    {
        EXPECT_EQ(pickFresh(), "-");
        d.engine().share(1);
        EXPECT_EQ(pickFresh(), "new of a");
    }
};

TEST_F(MsfReserveShared, IsForAClassThatIsTwiceAsFarAhead)
{
    begin(d.addClass("rich", 1), d.addClass("poor", 1));
    expectTwice();
}

TEST_F(MsfReserveShared, IsForAUserWhoIsTwiceAsFarAhead)
{
    auto &c = d.addClass("c", 1);
    begin(c, c);
    expectTwice();
}

/// A class, and a user within a class, that were idle while others had 10000 bytes each.
struct MsfLag : Msf {
    explicit MsfLag(const std::string &settings = "lag=1000 lead=0 lead_floor=0"): Msf(settings) {}

    /// Makes a user known: a newcomer has no lag.
    void visit(msfrs_class &c, const std::string &user)
    {
        d.arrive(c, user, 0);
        serve(0);
    }

    /// Keeps one item of the class and user queued while it serves others of them, so that virtual time advances.
    void spend(msfrs_class &c, const std::string &user, const int64_t bytes)
    {
        d.arrive(c, user, 0);
        d.arrive(c, user, 0);
        serve(bytes);
        serve(0);
    }
};

struct MsfWithoutLag : MsfLag {
    MsfWithoutLag(): MsfLag("lag=0 lead=0 lead_floor=0") {}
};

TEST_F(MsfLag, AClassThatWakesIsBehindByNoMoreThanThat)
{
    auto &busy = d.addClass("busy", 1), &heavy = d.addClass("heavy", 4);
    visit(heavy, "w");
    spend(busy, "u", 10'000);
    EXPECT_EQ(v(), 10'000);
    d.arrive(heavy, "w", 0, "woken");
    EXPECT_EQ(sc(heavy), 9'000) << "4000 bytes of a user of weight 4";
    d.arrive(busy, "u", 0, "again");
    EXPECT_EQ(serve(3'999), "woken");
    d.arrive(heavy, "w", 0, "more");
    EXPECT_EQ(serve(0), "more") << "it still lags by a byte of busy's service";
    EXPECT_EQ(v(), 10'000) << "virtual time does not go back with it";
}

TEST_F(MsfLag, ItGoesDownOverAPause)
{
    auto &busy = d.addClass("busy", 1), &other = d.addClass("other", 1);
    visit(other, "w");
    spend(busy, "u", 10'000);
    d.clock.advance(15 * Second);
    visit(other, "w");
    EXPECT_EQ(sc(other), 9'500) << "half of lag_time: half of the lag";
    spend(busy, "u", 10'000);
    d.clock.advance(30 * Second);
    visit(other, "w");
    EXPECT_EQ(sc(other), 20'000) << "all of it: none";
}

TEST_F(MsfLag, AnAnswerThatTakesLongIsNoPause)
{
    auto &busy = d.addClass("busy", 1), &other = d.addClass("other", 1);
    auto *const slow = d.arrive(other, "w", 0);
    d.pick();
    spend(busy, "u", 10'000);
    d.clock.advance(40 * Second);
    d.arrive(other, "w", 0);
    EXPECT_EQ(sc(other), 9'000);
    d.finish(*slow);
}

TEST_F(MsfLag, WhoWasNeverHereIsNotBehind)
{
    auto &busy = d.addClass("busy", 1), &fresh = d.addClass("new", 1);
    spend(busy, "u", 10'000);
    d.arrive(fresh, "w", 0);
    EXPECT_EQ(sc(fresh), 10'000);
}

TEST_F(MsfWithoutLag, AClassThatWakesIsNotBehind)
{
    auto &busy = d.addClass("busy", 1), &heavy = d.addClass("heavy", 4);
    visit(heavy, "w");
    spend(busy, "u", 10'000);
    d.arrive(heavy, "w", 0);
    EXPECT_EQ(sc(heavy), 10'000);
}

TEST_F(MsfLag, AUserWhoWakesIsBehindByNoMoreThanThat)
{
    auto &c = d.addClass("c", 2);
    visit(c, "new");
    spend(c, "busy", 10'000);
    d.arrive(c, "busy", 0, "again");
    d.arrive(c, "new", 0, "woken");
    EXPECT_EQ(serve(1'999), "woken") << "2000 bytes of a class of weight 2";
    d.arrive(c, "new", 0, "more");
    EXPECT_EQ(serve(2), "more");
    d.arrive(c, "new", 0, "too much");
    EXPECT_EQ(serve(0), "again");
}

TEST_F(Msf, FlowsAreForgottenInTime)
{
    auto &c = d.addClass("c", 1);
    for (int n = 0; n < 1000; ++n) { // each user arrives once; one always waits, so that the class is never idle
        d.arrive(c, "user" + std::to_string(n), 0);
        if (n > 0)
            serve(1000);
        d.clock.advance(Second);
        if (n % 10 == 0)
            d.engine().forgetIdleFlows(d.clock.now() - 60 * Second, d.clock.now() - 600 * Second);
    }
    size_t flows = 0;
    d.engine().eachFlow(c, [&](const NamedFlow &) { ++flows; });
    EXPECT_LE(flows, 612u) << "memory must not grow with every user that was ever seen";
}

} // namespace
} // namespace msfrs
