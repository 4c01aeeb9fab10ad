// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Requests with several exchanges: persistent connections that are mostly idle.
#include "support/requests.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace msfrs {
namespace {

using namespace test;

class ExchangesTest : public RequestTest {};

TEST_F(ExchangesTest, ASilentServerGivesItsPlaceBack)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    EXPECT_EQ(granted(), "a");
    rest(a);
    EXPECT_EQ(granted(), "b");
    EXPECT_EQ(report("gold").resting, 1u);
    EXPECT_EQ(report("gold").users, 0u) << "its user asks for nothing now";
    EXPECT_EQ(report("gold").inFlight, 0u);
    rest(b);
    EXPECT_EQ(s->window().outstanding, 0);
}

TEST_F(ExchangesTest, ANewExchangeWaitsForItsTurnAsAFreshItem)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    auto &b = hold(1, "v", "b");
    EXPECT_EQ(granted(), "a b");
    EXPECT_FALSE(again(a));
    EXPECT_EQ(report("gold").queued, 1u);
    EXPECT_EQ(report("gold").exchanges, 1u);
    EXPECT_EQ(report("gold").requests, 1u) << "it is the same request";
    clock.advance(Second);
    done(b);
    EXPECT_EQ(granted(), "a");
    const auto trace = s->trace(*a.request, clock.now());
    EXPECT_EQ(trace.exchanges, 2u);
    EXPECT_EQ(trace.exchangeWait, Second);
    EXPECT_EQ(trace.firstWait, 0);
    EXPECT_EQ(trace.totalWait, Second);
}

TEST_F(ExchangesTest, ItGoesOnAtOnceWhereThereIsRoom)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    EXPECT_TRUE(again(a)) << "answered directly, not by granted()";
    EXPECT_EQ(a.grants, 1);
    EXPECT_EQ(s->window().outstanding, 1);
}

TEST_F(ExchangesTest, WhatItsServerSaysUnaskedIsChargedToItsUser)
{
    start(1);
    auto &a = hold(0, "u", "a");
    read(a, 100);
    rest(a);
    charge(a, 900);
    EXPECT_EQ(report("gold").bytes, 1000u);
    EXPECT_EQ(s->topUsers(1).at(0).bytes, 1000u);
    EXPECT_EQ(s->trace(*a.request, clock.now()).bytes, 1000);
}

/// A release without an answer costs its user what a first quantum brings on average, which dead servers do not change.
TEST_F(ExchangesTest, WhatIsNeverAnsweredIsPaid)
{
    start(1);
    auto &a = hold(0, "u", "a");
    read(a, 400);
    done(a);
    const auto before = report("gold").service;
    for (const auto name : {"b", "c", "d"})
        done(hold(0, "u", name));
    EXPECT_EQ(report("gold").service - before, 3 * 400 / 2) << "by a weight of 2";
    const auto after = report("gold").service;
    auto &e = hold(0, "u", "e");
    read(e, 10);
    done(e);
    EXPECT_EQ(report("gold").service - after, 10 / 2) << "an answered one pays what it brought";
    EXPECT_EQ(report("gold").bytes, 410u) << "nothing else has come";
}

TEST_F(ExchangesTest, ALaterExchangeIsNeverRefused)
{
    config.maxPerUser = 1;
    config.maxQueued = 1;
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    auto &other = hold(1, "v", "other");
    hold(0, "u", "b");
    EXPECT_FALSE(again(a)) << "beyond both limits, it waits all the same";
    EXPECT_EQ(report("gold").queued, 2u);
    clock.advance(config.maxWait);
    pass(0);
    EXPECT_EQ(owners[2].expiries, 1);
    EXPECT_EQ(a.expiries, 0);
    EXPECT_TRUE(a.served) << "regardless of the window, which is full";
    EXPECT_TRUE(other.served);
    EXPECT_EQ(s->window().outstanding, 2);
}

TEST_F(ExchangesTest, TheAdmissionControlDropsNoLaterExchange)
{
    NEEDS_PLUGIN("choke");
    config.admission = {"choke", {{"min", "1"}, {"max", "3"}, {"weight", "1"}, {"limit", "100"}}};
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    hold(1, "v", "other");
    EXPECT_FALSE(again(a));
    for (int n = 0; n < 50; ++n)
        hold(0, "u", "u" + std::to_string(n));
    EXPECT_EQ(a.expiries, 0);
    EXPECT_NE(a.request, nullptr);
}

TEST_F(ExchangesTest, ItMayEndInEveryState)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(0, "u", "b");
    rest(a);
    rest(b);
    auto &other = hold(1, "v", "other");
    EXPECT_FALSE(again(a));
    done(b); // RESTING
    done(a); // QUEUED again
    done(other);
    EXPECT_EQ(s->window().outstanding, 0);
    EXPECT_EQ(report("gold").resting, 0u);
    EXPECT_EQ(report("gold").queued, 0u);
}

TEST_F(ExchangesTest, ARestingRequestOutlivesItsUsersFlowAndItsClass)
{
    start(1);
    auto &a = hold(0, "u", "a");
    read(a, 10);
    rest(a);
    for (int n = 0; n < 100; ++n)
        pass(20 * Second);
    EXPECT_TRUE(s->topUsers(10).empty()) << "its user is forgotten meanwhile";
    charge(a, 5);
    config.classes = {{"bronze", 1}};
    config.defaultClass = 0;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(report("bronze").resting, 1u);
    EXPECT_TRUE(again(a));
    EXPECT_EQ(report("bronze").users, 1u);
    done(a);
}

TEST_F(ExchangesTest, WithoutQuantaAPlaceIsHeldToTheEnd)
{
    config.quantum = 0;
    start(1);
    auto &a = hold(0, "u", "a");
    a.isSilent = true;
    pass(10 * Second);
    EXPECT_TRUE(a.served) << "as in the paper";
}

/// Unsolicited bytes of a server, while others wait.
class UnaskedTest : public ExchangesTest {
protected:
    /// Two users of gold, one of whom has an idle connection, and one of bronze, which has the slot.
    void begin()
    {
        start(1);
        pusher = &hold(0, "u", "pusher");
        rest(*pusher);
        bronze = &hold(1, "w", "bronze");
        gold = &hold(0, "v", "gold");
        granted();
    }
    /// Bytes of each of two backlogged requests out of a total.
    struct Shares { int64_t gold, bronze; };
    Shares share(const int64_t bytes)
    {
        Shares got{0, 0};
        for (int64_t all = 0; all < bytes; all += 500) {
            auto &served = gold->served ? *gold : *bronze;
            (gold->served ? got.gold : got.bronze) += 500;
            read(served, 500);
            clock.advance(Second / 1000);
        }
        return got;
    }
    TestOwner *pusher = nullptr, *gold = nullptr, *bronze = nullptr;
};

TEST_F(UnaskedTest, IsNoDebtOfTheOtherUsersOfTheClass)
{
    begin();
    charge(*pusher, 1'000'000);
    const auto got = share(60'000);
    EXPECT_NEAR(static_cast<double>(got.gold), 40'000, 2000) << "gold has twice what bronze has, as if nothing was";
    EXPECT_EQ(s->topUsers(1).at(0).name, "v");
}

TEST_F(UnaskedTest, IsPaidByTheTurnsOfWhoeverHadIt)
{
    begin();
    charge(*pusher, 10'500);
    EXPECT_TRUE(s->owes(*pusher->request)) << "a quantum is 1000 bytes";
    EXPECT_FALSE(s->owes(*gold->request)) << "nobody else does";
    EXPECT_FALSE(again(*pusher));
    int64_t goldHad = 0, pusherHad = 0, turns = 0;
    while (pusherHad == 0 && turns < 1000) {
        auto &served = pusher->served ? *pusher : gold->served ? *gold : *bronze;
        if (pusher->served && !read(*pusher, 0)) {
            ++turns; // all of which paid the debt
            continue;
        }
        const bool own = pusher->served;
        read(served, 500);
        (own ? pusherHad : &served == gold ? goldHad : turns) += own || &served == gold ? 500 : 0;
        clock.advance(Second / 1000);
    }
    EXPECT_EQ(turns, 10);
    EXPECT_FALSE(s->owes(*pusher->request));
    EXPECT_NEAR(static_cast<double>(goldHad), 10'000, 2000) << "the other user of the class had as much meanwhile";
    EXPECT_EQ(s->topUsers(9).size(), 3u);
}

TEST_F(UnaskedTest, CostsNothingWhileNobodyWaits)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    charge(a, 1'000'000);
    EXPECT_FALSE(s->owes(*a.request));
    EXPECT_EQ(s->topUsers(1).at(0).bytes, 1'000'000u);
    auto &other = hold(1, "v", "other");
    EXPECT_FALSE(again(a));
    done(other);
    EXPECT_EQ(granted(), "a other a");
    EXPECT_TRUE(read(a, 999)) << "it has a whole quantum";
}

TEST_F(UnaskedTest, IsStillOwedAfterAReconfiguration)
{
    begin();
    charge(*pusher, 5000);
    config.arbiter.settings.push_back({"lead", "0"});
    s->reconfigure(config, clock.now());
    EXPECT_TRUE(s->owes(*pusher->request));
}

TEST_F(ExchangesTest, AResponseThatMayBeCompleteGoesBeyondItsQuantumOnce)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(0, "v", "b");
    const auto goesOn = [this](TestOwner &o, const int64_t bytes) {
        charge(o, bytes);
        o.inReadMore = true;
        o.served = s->readMore(*o.request, clock.now(), true);
        o.inReadMore = false;
        return o.served;
    };
    EXPECT_TRUE(goesOn(a, 500));
    EXPECT_TRUE(goesOn(a, 5000)) << "a turn might be for nothing";
    EXPECT_FALSE(goesOn(a, 1)) << "there was more: records that end where segments do";
    EXPECT_EQ(granted(), "a b");
    EXPECT_TRUE(goesOn(b, 1000));
    EXPECT_FALSE(goesOn(b, 10'000));
    EXPECT_EQ(granted(), "a");
    EXPECT_TRUE(goesOn(a, 1000)) << "once in each quantum";
    done(b);
    EXPECT_TRUE(goesOn(a, 1000)) << "and nobody else waits";
    EXPECT_TRUE(goesOn(a, 1000));
}

/// The second of two users of a class has received less of its response.
class AskedMoreTest : public ExchangesTest {
protected:
    void begin()
    {
        start(1);
        a = &hold(0, "u", "a");
        b = &hold(0, "v", "b");
        EXPECT_FALSE(read(*a, 100'000));
        EXPECT_TRUE(read(*b, 50'000));
        EXPECT_EQ(granted(), "a b");
    }
    TestOwner *a = nullptr, *b = nullptr;
};

TEST_F(AskedMoreTest, WhoHasHadLessGoesOn)
{
    begin();
    EXPECT_TRUE(read(*b, 1000));
}

TEST_F(AskedMoreTest, APausedOneWaitsAsAFirstQuantumDoes)
{
    begin();
    askedMore(*a);
    EXPECT_EQ(report("gold").queued, 1u);
    EXPECT_EQ(report("gold").paused, 0u);
    clock.advance(Second);
    EXPECT_FALSE(read(*b, 1000)) << "what comes next may be small";
    EXPECT_EQ(granted(), "a");
    const auto trace = s->trace(*a->request, clock.now());
    EXPECT_EQ(trace.exchanges, 1u) << "it is the same exchange";
    EXPECT_EQ(trace.bytes, 100'000);
    EXPECT_EQ(report("gold").users, 2u);
}

TEST_F(AskedMoreTest, AServedOneDoesFromItsNextTurnOn)
{
    start(1);
    auto &first = hold(0, "u", "a");
    auto &second = hold(0, "v", "b");
    askedMore(first);
    EXPECT_FALSE(read(first, 50'000)) << "it had its first turn for that";
    EXPECT_EQ(report("gold").paused, 1u);
    EXPECT_FALSE(read(second, 100'000));
    EXPECT_EQ(granted(), "a b a");
    askedMore(first);
    EXPECT_TRUE(read(first, 999)) << "it has the rest of its quantum";
    EXPECT_TRUE(read(first, 100'000)) << "as one without service, before the other";
    EXPECT_FALSE(read(first, 150'000)) << "once";
    EXPECT_EQ(granted(), "b");
}

TEST_F(AskedMoreTest, ItTakesThePlacesThatAreKeptForFirstQuanta)
{
    config.window.reserve = 1;
    config.arbiter = {"msf", {{"lag", "0"}, {"favour", "0"}}};
    begin();
    askedMore(*a);
    EXPECT_EQ(granted(), "a");
    EXPECT_EQ(s->window().outstanding, 2);
}

TEST_F(AskedMoreTest, NobodyGainsASharesWorthByAsking)
{
    start(1);
    auto &often = hold(0, "u", "often");
    auto &never = hold(0, "v", "never");
    std::map<TestOwner *, int64_t> bytes;
    for (int n = 0; n < 20'000; ++n) {
        auto &served = often.served ? often : never;
        askedMore(often);
        read(served, 1000);
        bytes[&served] += 1000;
        clock.advance(Second / 1000);
    }
    EXPECT_NEAR(static_cast<double>(bytes[&often]) / 10e6, 1, 0.21) << "2 MB of lead, which decays";
}

TEST_F(ExchangesTest, NoPlaceIsLostOverManyRandomEnds)
{
    config.window.reserve = 0.5;
    start(4);
    auto random = [engine = std::mt19937_64(11)](const uint64_t below) mutable { return engine() % below; };
    std::vector<TestOwner *> open;
    for (int n = 0; n < 50'000; ++n) {
        if (open.size() < 40 && random(3) == 0) {
            auto &owner = hold(static_cast<uint32_t>(random(2)), "u" + std::to_string(random(9)), "r");
            if (owner.request)
                open.push_back(&owner);
        }
        if (open.empty())
            continue;
        const auto at = random(open.size());
        auto &owner = *open[at];
        switch (random(6)) {
        case 0:
            done(owner);
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
            break;
        case 1:
            owner.isSilent = true;
            pass(30'000'000);
            owner.isSilent = false;
            break;
        case 2:
            if (owner.resting)
                again(owner);
            break;
        case 3:
            if (!owner.resting)
                askedMore(owner);
            break;
        default:
            if (owner.served)
                read(owner, static_cast<int64_t>(random(2000)));
        }
    }
    for (const auto owner : open)
        done(*owner);
    EXPECT_EQ(s->window().outstanding, 0);
    for (const auto name : {"gold", "bronze"}) {
        const auto cls = report(name);
        EXPECT_EQ(cls.resting + cls.queued + cls.paused + cls.inFlight + cls.users, 0u) << name;
    }
}

} // namespace
} // namespace msfrs
