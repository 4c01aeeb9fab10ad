// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msf's order among users of a class by bytes remaining, within a lead that decays.
#include "support/engine_driver.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// Users who begin with one response each and its bytes remaining; no user has a lag. A lead of 10000 bytes.
class Lead : public ::testing::Test {
protected:
    explicit Lead(const std::string &more = ""):
        d(ParseVariant("msf lag=0 ahead=0 lead=10000 lead_floor=100 lead_time=10" + more)), c(d.addClass("c", 1))
    {}

    /// A started response that waits for its next quantum.
    Tracked *begun(const std::string &user, const int64_t had, const int64_t left)
    {
        auto *const t = d.arrive(c, user, 0, user);
        EXPECT_EQ(d.pick(), t) << "it is to be the only one without service";
        d.charge(*t, had);
        d.expect(*t, left);
        return t;
    }
    /// Picks an item, charges this many bytes to it, and queues it again.
    std::string turn(const int64_t bytes)
    {
        auto *const t = d.pick();
        d.charge(*t, bytes);
        if (t->item->remaining >= 0)
            d.expect(*t, std::max<int64_t>(t->item->remaining - bytes, 1));
        d.requeue(*t);
        return t->name;
    }
    /// Repeats that. \returns consecutive bytes of the user that is not `other`
    int64_t until(const std::string &other, const int64_t bytes)
    {
        for (int64_t sum = 0; sum < 1'000'000; sum += bytes) {
            if (turn(bytes) == other)
                return sum;
        }
        return -1;
    }

    Driver d;
    msfrs_class &c;
};

TEST_F(Lead, WhoHasLessLeftMayBeAheadByIt)
{
    auto *const large = begun("large", 1, 1'000'000), *const small = begun("small", 1, 500'000);
    d.requeue(*large);
    d.requeue(*small);
    EXPECT_NEAR(static_cast<double>(until("large", 1000)), 10'000, 1000);
}

TEST_F(Lead, ItDecaysWhileTheOtherWaits)
{
    auto *const large = begun("large", 1, 1'000'000), *const small = begun("small", 1, 500'000);
    d.requeue(*large);
    d.requeue(*small);
    d.clock.advance(7 * Second); // half of it, nearly
    EXPECT_NEAR(static_cast<double>(until("large", 100)), 10'000 * std::exp(-0.7), 200);
}

TEST_F(Lead, WhoHadNothingForLeadTimeIsNext)
{
    auto *const large = begun("large", 1, 1'000'000), *const small = begun("small", 1, 500'000);
    d.requeue(*large);
    d.requeue(*small);
    EXPECT_EQ(turn(1000), "small");
    d.clock.advance(10 * Second);
    EXPECT_EQ(turn(1000), "large") << "small is ahead by more than lead_floor";
    EXPECT_EQ(turn(1000), "small") << "large has been served, and is behind by less than a third of the lead";
}

TEST_F(Lead, WhoHasSomethingElsewhereIsNotWithoutService)
{
    auto *const large = begun("large", 1, 1'000'000), *const small = begun("small", 1, 500'000);
    d.requeue(*large);
    d.requeue(*small);
    EXPECT_EQ(turn(1000), "small");
    d.clock.advance(10 * Second);
    d.engine().chargeElsewhere(*large->item->flow, 1, d.clock.now(), true);
    EXPECT_EQ(turn(1000), "small") << "within a third of the lead";
    d.clock.advance(10 * Second);
    d.engine().chargeElsewhere(*large->item->flow, 1, d.clock.now());
    EXPECT_EQ(turn(1000), "large") << "what nobody holds back is no service";
}

TEST_F(Lead, ItDoesNotComeBackWithEachContinuation)
{
    auto *const large = begun("large", 1, 1'000'000), *const small = begun("small", 1, 500'000);
    d.requeue(*large);
    d.requeue(*small);
    for (int n = 0; n < 60; ++n) { // both have all their turns
        d.clock.advance(Second);
        turn(1000);
    }
    EXPECT_LE(until("large", 100), 1200) << "all of it, if large had begun to wait with its latest quantum";
}

TEST_F(Lead, APauseForgetsTheWaitOverLeadTime)
{
    for (const auto &[pause, least, most] : {std::tuple(Second / 10, 0, 1000), std::tuple(11 * Second, 9000, 11'000)}) {
        SCOPED_TRACE(pause);
        auto *const large = begun("large", 1, 1'000'000);
        d.requeue(*large);
        d.clock.advance(40 * Second); // waits
        d.remove(*large);
        d.clock.advance(pause);
        auto *const again = begun("large", 1, 1'000'000), *const small = begun("small", 1, 500'000);
        d.requeue(*again);
        d.requeue(*small);
        const auto ahead = until("large", 100);
        EXPECT_GE(ahead, least);
        EXPECT_LE(ahead, most);
        while (!d.queued().empty())
            d.remove(*d.queued().front());
        d.clock.advance(700 * Second);
        d.engine().forgetIdleFlows(d.clock.now(), d.clock.now());
    }
}

TEST_F(Lead, ARequestThatWaitsTakesThreeCacheLines) { EXPECT_EQ(d.engine().itemSize(), 192u); }

TEST_F(Lead, WithinAUserTheLeastLeftGoesFirstAndWhatIsNewBeforeThat)
{
    auto *const large = begun("u", 10, 900'000);
    auto *const middle = begun("u", 10, 70'000);
    auto *const unknown = begun("u", 50'000, MSFRS_UNKNOWN); // counts as the bytes it has received
    auto *const small = begun("u", 10, 5000);
    int n = 0;
    for (auto *const t : {large, middle, unknown, small}) {
        t->name = std::to_string(++n);
        d.requeue(*t);
    }
    d.arrive(c, "u", 0, "new");
    std::string order;
    while (auto *const t = d.pick())
        order += t->name + " ";
    EXPECT_EQ(order, "new 4 3 2 1 ");
}

TEST_F(Lead, AnItemOfUnknownSizeThatHasWaitedForLeadTimeIsTheNextOfItsUser)
{
    auto *const unknown = d.arrive(c, "user", 0, "unknown");
    d.pick();
    d.charge(*unknown, 50'000);
    d.requeue(*unknown);
    for (int second = 0; second < 10; ++second) { // its user goes on asking for small ones
        auto *const small = d.arrive(c, "user", 0, "small");
        ASSERT_EQ(d.pick(), small) << "after " << second << " s";
        d.charge(*small, 1000);
        d.done(*small);
        d.clock.advance(Second);
    }
    auto *const small = d.arrive(c, "user", 0, "small");
    EXPECT_EQ(d.pick(), unknown);
    d.requeue(*unknown);
    d.clock.advance(20 * Second);
    EXPECT_EQ(d.pick(), small) << "not twice in succession";
    EXPECT_EQ(d.pick(), unknown);
}

TEST_F(Lead, WhatIsHeardWhileItWaitsCounts)
{
    auto *const a = begun("a", 1, 1000), *const b = begun("b", 1, 2000);
    d.requeue(*a);
    d.requeue(*b);
    d.expect(*a, 3000);
    EXPECT_EQ(d.pick(), b);
    d.requeue(*b);
    d.expect(*b, MSFRS_UNKNOWN); // 4096
    EXPECT_EQ(d.pick(), a);
}

TEST_F(Lead, WhatNobodyKnowsCountsAs4096OrAsMuchAsItHasHad)
{
    auto *const known = begun("known", 1, 4097), *const unknown = begun("unknown", 1, MSFRS_UNKNOWN);
    d.requeue(*known);
    d.requeue(*unknown);
    EXPECT_EQ(d.pick(), unknown);
    d.charge(*unknown, 4097);
    d.requeue(*unknown);
    EXPECT_EQ(d.pick(), known);
}

struct AttainedOrder : Lead {
    AttainedOrder(): Lead(" order=attained") {}
};

TEST_F(AttainedOrder, KnowsNoSizes)
{
    auto *const large = begun("large", 1, 1'000'000), *const small = begun("small", 2, 10);
    d.requeue(*large);
    d.requeue(*small);
    EXPECT_EQ(d.pick(), large) << "it has had less";
}

/// Two classes of weight 1. The class that is ahead has fewer bytes remaining.
class OutOfTurn : public ::testing::Test {
protected:
    explicit OutOfTurn(const std::string &settings = "ahead=0 favour=0.6",
                       int64_t (*estimate)(int64_t) = Driver::Setup().estimate):
        d(ParseVariant("msf lag=0 " + settings), setup(estimate))
    {}
    static Driver::Setup setup(int64_t (*estimate)(int64_t))
    {
        Driver::Setup made;
        made.estimate = estimate;
        return made;
    }

    /// After an idle time each class has a response that waits for its next quantum.
    void begin(const msfrs_time idle)
    {
        d.clock.advance(idle);
        small = d.arrive(ofSmall, "s", 0, "small");
        large = d.arrive(ofLarge, "l", 0, "large");
        d.pick();
        d.pick();
        auto *const waits = d.arrive(ofLarge, "w", 0); // bytes charged while nobody waits are forgotten
        d.charge(*small, 5000);
        d.charge(*large, 1);
        d.expect(*small, 1000);
        d.expect(*large, 900'000);
        d.requeue(*small);
        d.requeue(*large);
        d.remove(*waits);
    }
    /// The next turns, of 500 bytes and 100 ms: s for `small`, l for `large`.
    std::string turns(const int count)
    {
        std::string order;
        for (int n = 0; n < count; ++n) {
            auto *const t = d.pick();
            d.charge(*t, 500);
            d.requeue(*t);
            order += t == large ? 'l' : 's';
            d.clock.advance(Second / 10);
        }
        return order;
    }

    /// A fresh item of the class that is ahead, released by the reserve.
    Tracked *fresh()
    {
        d.arrive(ofSmall, "s", 0, "new");
        return d.pick(MSFRS_PICK_FRESH);
    }

    Driver d;
    msfrs_class &ofSmall = d.addClass("of small", 1), &ofLarge = d.addClass("of large", 1);
    Tracked *small = nullptr, *large = nullptr;
};

TEST_F(OutOfTurn, NothingIsHadBeforeItIsEarned)
{
    begin(0);
    EXPECT_EQ(turns(4), "llll");
}

TEST_F(OutOfTurn, WhatIsShortHasEverySecondTurnForThatTime)
{
    begin(3600 * Second);
    EXPECT_EQ(turns(10), "slslslllll");
}

TEST_F(OutOfTurn, EachSecondWithoutAnybodyWhoWaitsEarnsFifteen)
{
    begin(Second * 4 / 10 / 15);
    EXPECT_EQ(turns(8), "slslllll");
}

TEST_F(OutOfTurn, WhatIsLongHasNone)
{
    begin(3600 * Second);
    d.expect(*small, 16385);
    EXPECT_EQ(turns(4), "llll");
}

TEST_F(OutOfTurn, WhileSomebodyWaitsElsewhereNothingIsEarned)
{
    d.engine().waitElsewhere(1);
    d.remove(*d.arrive(ofSmall, "s", 0, "before"));
    begin(3600 * Second);
    EXPECT_EQ(turns(4), "llll");
    d.engine().waitElsewhere(0);
    d.clock.advance(Second);
    EXPECT_EQ(turns(4), "llll") << "here somebody waits all the time";
}

TEST_F(OutOfTurn, ItIsNotPaidBack)
{
    begin(Second);
    const double before = *ofSmall.service;
    EXPECT_EQ(turns(6), "slslsl");
    EXPECT_EQ(*ofSmall.service, before);
}

TEST_F(OutOfTurn, OfSeveralSchedulersTheReserveGivesItToo)
{
    begin(Second);
    EXPECT_EQ(fresh(), nullptr) << "the next place that is free is here";
    d.engine().share(1);
    const auto *const item = fresh();
    ASSERT_TRUE(item);
    EXPECT_EQ(item->name, "new");
    d.clock.advance(Second);
    EXPECT_EQ(fresh(), nullptr);
}

struct Estimated : OutOfTurn {
    Estimated(): OutOfTurn("ahead=0 favour=0.6", [](int64_t) { return int64_t(2000); }) {}
};

TEST_F(Estimated, NeitherAnEstimateNorItsRefundIsCharged)
{
    begin(Second);
    const double before = *ofSmall.service;
    EXPECT_EQ(turns(6), "slslsl");
    EXPECT_EQ(*ofSmall.service, before);
}

struct NoFavour : OutOfTurn {
    NoFavour(): OutOfTurn("ahead=0 favour=0") {}
};

TEST_F(NoFavour, TheLeastServedClassGoesFirst)
{
    begin(3600 * Second);
    d.engine().share(1);
    EXPECT_EQ(fresh(), nullptr);
    EXPECT_EQ(turns(4), "llll");
}

struct NoShares : OutOfTurn {
    NoShares(): OutOfTurn("ahead=inf") {}
};

TEST_F(NoShares, TheLeastLeftGoesFirstWhateverItHasHad)
{
    begin(0);
    EXPECT_EQ(turns(100), std::string(100, 's'));
}

TEST(MsfOrder, RefusesWhatWouldHaveNoEffect)
{
    const auto refused = [](const std::string &settings, const Engine::Cost cost = Engine::Cost::Measured) {
        Driver::Setup setup;
        setup.cost = cost;
        try {
            Driver d(ParseVariant("msf " + settings), setup);
        } catch (const ConfigError &error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const std::string why = " would have no effect; it is allowed with order=remaining and users=fair, for requests";
    EXPECT_EQ(refused("order=attained ahead=inf"), "msf: ahead=inf" + why);
    EXPECT_EQ(refused("users=fifo ahead=inf"), "msf: ahead=inf" + why);
    EXPECT_EQ(refused("ahead=inf", Engine::Cost::Exact), "msf: ahead=inf" + why);
    EXPECT_EQ(refused("", Engine::Cost::Exact), "");
    EXPECT_EQ(refused("lead_time=inf"),
              "msf parameter lead_time=inf is not allowed: expected a number from 0.001 to 1000000 s");
}

} // namespace
} // namespace msfrs
