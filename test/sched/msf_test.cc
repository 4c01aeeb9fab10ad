// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The counters of msf, call by call: charges, virtual time, the reserve, and the lag of a returning user. The orders
/// themselves are in test/golden.
#include "support/engine_driver.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

Driver::Setup Estimating()
{
    Driver::Setup setup;
    setup.estimate = [](int64_t) { return int64_t(1000); };
    return setup;
}

class Msf : public ::testing::Test {
protected:
    explicit Msf(const std::string &settings = "ahead=0 lag=0 lead=0"): d(ParseVariant("msf " + settings)) {}

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
    size_t flows(const msfrs_class &c)
    {
        size_t count = 0;
        d.engine().eachFlow(c, [&](const NamedFlow &) { ++count; });
        return count;
    }

    Driver d;
};

TEST_F(Msf, KeepsThePapersCounterOfAClassForReports)
{
    auto &c = d.addClass("c", 2);
    auto *const a = d.arrive(c, "a", 0);
    d.pick();
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 1000 / (2.0 * 1));
    d.arrive(c, "b", 0);
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 500 + 1000 / (2.0 * 2)) << "b waits: two users are active";
}

TEST_F(Msf, OnlyBytesCount)
{
    Driver::Setup setup;
    setup.resources = 2;
    Driver two(ParseVariant("msf lag=0"), setup);
    auto &c = two.addClass("c", 1);
    auto *const t = two.arrive(c, "a", 0);
    two.pick();
    two.engine().charge(*t->item, 1, 1000, 0);
    EXPECT_EQ(two.engine().gauges(&c).at(0), 0);
}

TEST_F(Msf, EstimatesAreSpentWhenPickedAndGivenBackAtTheEnd)
{
    Driver e(ParseVariant("msf lag=0"), Estimating());
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
    Driver e(ParseVariant("msf lag=0"), Estimating());
    auto &c = e.addClass("c", 1);
    auto *const a = e.arrive(c, "a", 0);
    auto *const b = e.arrive(c, "b", 0);
    e.pick(); // 1000 / 2
    e.remove(*b);
    e.done(*a); // 1000 / 1 is returned
    EXPECT_EQ(e.engine().gauges(&c).at(0), 0);
}

TEST_F(Msf, AUsersWeightIsThatOfTheClassTimesItsOwn)
{
    auto &c = d.addClass("c", 1), &heavy = d.addClass("heavy", 2);
    d.engine().flow(c, "double", 2);
    for (int n = 0; n < 20; ++n) {
        d.arrive(c, "double", 0, "d");
        d.arrive(c, "single", 0, "s");
        d.arrive(heavy, "u", 0, "h");
        d.arrive(heavy, "v", 0, "h");
    }
    std::string order;
    for (int n = 0; n < 28; ++n)
        order += serve(1000);
    EXPECT_EQ(std::count(order.begin(), order.end(), 'd'), 8) << order;
    EXPECT_EQ(std::count(order.begin(), order.end(), 's'), 4) << order;
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
    EXPECT_EQ(flows(c), 1u) << "after ten minutes they are";
}

TEST_F(Msf, VirtualTimeIsTheCounterOfTheLeastServedAtEachPick)
{
    auto &a = d.addClass("a", 1), &b = d.addClass("b", 1);
    for (int n = 0; n < 3; ++n) {
        d.arrive(a, "u", 0, "a");
        d.arrive(b, "u", 0, "b");
    }
    EXPECT_EQ(v(), 0);
    serve(1000); // a
    serve(400);  // b
    serve(400);  // b
    EXPECT_EQ(v(), 400);
    d.arrive(d.addClass("c", 1), "u", 0, "c");
    EXPECT_EQ(serve(601), "c") << "max(own, V): it is 400 behind b";
    EXPECT_EQ(serve(0), "b");
}

TEST_F(Msf, TakingACertainItemOutOfTurnDoesNotMoveVirtualTimeAhead)
{
    auto &c = d.addClass("c", 1);
    auto *const t = d.arrive(c, "a", 0);
    d.pick();
    d.arrive(c, "b", 0);
    d.charge(*t, 1'000'000); // a is far ahead of b, which waits
    d.requeue(*t);
    d.engine().pickThis(*t->item, d.clock.now()); // paused too long: it resumes regardless
    EXPECT_EQ(v(), 0) << "whoever wakes now would wait for b to catch up with a";
    const int64_t est[] = {0};
    d.engine().requeue(*t->item, est, d.clock.now()); // the state that the driver expects
}

TEST_F(Msf, WhatIsUsedWhileNobodyWaitsIsForgotten)
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
    d.charge(*t, 500);
    EXPECT_EQ(v(), 1'000'000) << "while late waits nothing is";
}

TEST_F(Msf, WhatIsUsedWhileSomebodyWaitsElsewhereIsNotForgotten)
{
    d.engine().waitElsewhere(1);
    auto *const t = d.arrive(d.addClass("c", 1), "u", 0);
    d.pick();
    d.charge(*t, 1000);
    EXPECT_EQ(v(), 0);
}

TEST_F(Msf, ExcessPutsAUserAheadByNoMoreThanAMegabyteForItsWeight)
{
    auto &c = d.addClass("c", 2);
    d.arrive(c, "waits", 0, "w");
    d.engine().chargeFlow(d.engine().flow(c, "flooded"), 1'000'000'000, d.clock.now());
    d.arrive(c, "flooded", 0, "f");
    for (int n = 0; n < 3; ++n)
        d.arrive(c, "waits", 0, "w");
    EXPECT_EQ(serve(2 * 1'048'576), "w");
    EXPECT_EQ(serve(0), "f");
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
    EXPECT_LE(flows(c), 612u) << "memory must not grow with every user that was ever seen";
}

/// "a" and "b" have started a response, and a also has a fresh item. a has had 3001 bytes, b only one, and both pause.
struct MsfReserve : Msf {
    explicit MsfReserve(const int ahead = 0): Msf("lag=0 lead=0 ahead=" + std::to_string(ahead))
    {
        auto *const a = d.arrive(c, "a", 0, "rest of a");
        auto *const b = d.arrive(c, "b", 0, "rest of b");
        d.pick();
        d.pick();
        d.arrive(c, "a", 0, "new of a"); // another item waits, so service is counted
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

    msfrs_class &c = d.addClass("c", 1);
};
struct MsfReserveAhead : MsfReserve {
    MsfReserveAhead(): MsfReserve(3000) {}
};

TEST_F(MsfReserve, IsForAUserWhoIsNotAhead)
{
    EXPECT_EQ(pickFresh(), "-") << "who asks for much would have it all the time";
    d.arrive(c, "b", 0, "new of b");
    EXPECT_EQ(pickFresh(), "new of b");
}

TEST_F(MsfReserveAhead, OrALittleAhead) { EXPECT_EQ(pickFresh(), "new of a"); }

/// Users that were idle while others had 10000 bytes for their weight.
struct MsfLag : Msf {
    explicit MsfLag(const std::string &settings = "lag=1000 lead=0 ahead=0"): Msf(settings)
    {
        visit(); // a newcomer has no lag
    }

    void visit()
    {
        d.arrive(c, "w", 0);
        serve(0);
    }
    /// Keeps one item of a user queued while it serves others of it, so that virtual time advances.
    void spend(const int64_t bytes)
    {
        d.arrive(c, "busy", 0);
        d.arrive(c, "busy", 0);
        serve(bytes);
        serve(0);
    }
    /// \returns how far the user lags when it returns: bytes after which another goes first
    int64_t lag(const std::string &user)
    {
        d.arrive(c, "busy", 0, "busy");
        for (int64_t sum = 0;; sum += 100) {
            d.arrive(c, user, 0, "back");
            if (serve(100) == "busy")
                return sum - 100; // with equal counters the earlier arrival goes first
        }
    }

    msfrs_class &c = d.addClass("c", 2);
};
struct MsfWithoutLag : MsfLag {
    MsfWithoutLag(): MsfLag("lag=0 lead=0 ahead=0") {}
};

TEST_F(MsfLag, WhoReturnsIsBehindByNoMoreThanThat)
{
    spend(20'000);
    EXPECT_EQ(v(), 10'000);
    EXPECT_NEAR(static_cast<double>(lag("w")), 2000, 100) << "of a user of weight 2";
    EXPECT_EQ(v(), 10'000) << "virtual time does not go back with it";
}

TEST_F(MsfLag, ItDecaysOverAPause)
{
    spend(20'000);
    d.clock.advance(15 * Second);
    EXPECT_NEAR(static_cast<double>(lag("w")), 1000, 100);
    d.clock.advance(30 * Second);
    spend(20'000);
    EXPECT_NEAR(static_cast<double>(lag("w")), 0, 100);
}

TEST_F(MsfLag, AnAnswerThatTakesLongIsNoPause)
{
    auto *const slow = d.arrive(c, "w", 0);
    d.pick();
    spend(20'000);
    d.clock.advance(40 * Second);
    EXPECT_NEAR(static_cast<double>(lag("w")), 2000, 100);
    d.finish(*slow);
}

TEST_F(MsfLag, WhoWasNeverHereHasNone)
{
    spend(20'000);
    EXPECT_NEAR(static_cast<double>(lag("new")), 0, 100);
}

TEST_F(MsfWithoutLag, WhoReturnsIsNotBehind)
{
    spend(20'000);
    EXPECT_NEAR(static_cast<double>(lag("w")), 0, 100);
}

} // namespace
} // namespace msfrs
