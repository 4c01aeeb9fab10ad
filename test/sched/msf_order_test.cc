// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msf's order by bytes remaining, within a lead that decays.
#include "support/engine_driver.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// Users who begin with one response each and its bytes remaining; no user has a lag. A lead of 10000 bytes.
class Lead : public ::testing::Test {
protected:
    Lead(): d(ParseVariant("msf lag=0 ahead=0 lead=10000 lead_time=10")), c(d.addClass("c", 1)) {}

    /// A started response that waits for its next quantum.
    Tracked *begun(const std::string &user, const int64_t had, const int64_t left)
    {
        auto *const t = d.arrive(c, user, 0, user);
        EXPECT_EQ(d.pick(), t) << "it is to be the only one without service";
        d.charge(*t, had);
        d.expect(*t, left);
        return t;
    }
    /// "large" and "small", which has 2000 bytes left whatever it gets, wait for their next quanta.
    void begin()
    {
        large = begun("large", 1, 1'000'000);
        small = begun("small", 1, 2000);
        d.requeue(*large);
        d.requeue(*small);
    }
    /// Picks an item, charges this many bytes to it, and queues it again.
    std::string turn(const int64_t bytes)
    {
        auto *const t = d.pick();
        d.charge(*t, bytes);
        d.requeue(*t);
        return t->name;
    }
    /// Repeats that. \returns consecutive bytes of "small"
    int64_t untilLarge(const int64_t bytes)
    {
        for (int64_t sum = 0; sum < 1'000'000; sum += bytes) {
            if (turn(bytes) == "large")
                return sum;
        }
        return -1;
    }

    Driver d;
    msfrs_class &c;
    Tracked *large = nullptr, *small = nullptr;
};

TEST_F(Lead, WhoEndsWithinItMayBeAhead)
{
    begin();
    EXPECT_NEAR(static_cast<double>(untilLarge(100)), 10'000 - 2000, 200) << "the last one would end beyond it";
}

TEST_F(Lead, WhatEndsBeyondItHasNone)
{
    begin();
    d.expect(*small, 10'100);
    EXPECT_EQ(turn(100), "large");
    EXPECT_EQ(turn(100), "small") << "the least served";
    EXPECT_EQ(turn(1), "large");
}

TEST_F(Lead, ItDecaysWhileTheOtherWaits)
{
    begin();
    d.clock.advance(7 * Second);
    EXPECT_NEAR(static_cast<double>(untilLarge(100)), 10'000 * std::exp(-0.7) - 2000, 200);
}

TEST_F(Lead, ItDoesNotComeBackWithEachContinuation)
{
    begin();
    for (int n = 0; n < 60; ++n) { // both have all their turns
        d.clock.advance(Second);
        turn(1000);
    }
    EXPECT_LE(untilLarge(100), 1200) << "all of it, if large had begun to wait with its latest quantum";
}

TEST_F(Lead, IsForTheReserveToo)
{
    begin();
    d.arrive(c, "small", 0, "new");
    d.charge(*d.pick(), 5000);
    d.arrive(c, "small", 0, "newer");
    EXPECT_TRUE(d.pick(MSFRS_PICK_FRESH));
    d.arrive(c, "small", 0, "newest");
    d.clock.advance(10 * Second);
    EXPECT_FALSE(d.pick(MSFRS_PICK_FRESH));
}

TEST_F(Lead, ARequestThatWaitsTakesThreeCacheLines) { EXPECT_EQ(d.engine().itemSize(), 192u); }

TEST_F(Lead, WithinAUserTheLeastLeftGoesFirstAndWhatIsNewBeforeThat)
{
    large = begun("u", 10, 900'000);
    auto *const middle = begun("u", 10, 70'000);
    auto *const unknown = begun("u", 50'000, MSFRS_UNKNOWN); // counts as the bytes it has received
    small = begun("u", 10, 5000);
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

TEST_F(Lead, AnItemOfUnknownSizeThatHasWaitedForFifteenSecondsIsTheNextOfItsUser)
{
    auto *const unknown = d.arrive(c, "user", 0, "unknown");
    d.pick();
    d.charge(*unknown, 50'000);
    d.requeue(*unknown);
    for (int second = 0; second < 15; ++second) { // its user goes on asking for small ones
        auto *const one = d.arrive(c, "user", 0, "small");
        ASSERT_EQ(d.pick(), one) << "after " << second << " s";
        d.charge(*one, 1000);
        d.done(*one);
        d.clock.advance(Second);
    }
    auto *const one = d.arrive(c, "user", 0, "small");
    EXPECT_EQ(d.pick(), unknown);
    d.requeue(*unknown);
    d.clock.advance(20 * Second);
    EXPECT_EQ(d.pick(), one) << "not twice in succession";
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

TEST_F(Lead, WeightsCount)
{
    auto &heavy = d.addClass("heavy", 4);
    auto *const light = begun("light", 1, 2000);
    auto *const t = d.arrive(heavy, "heavy", 0, "heavy");
    d.pick();
    d.charge(*t, 1);
    d.expect(*t, 7999);
    d.requeue(*light);
    d.requeue(*t);
    EXPECT_EQ(d.pick(), t) << "its 7999 bytes are as short as 1999.75";
}

TEST(MsfOrder, WithoutABoundTheLeastLeftGoesFirstWhateverItHasHad)
{
    Driver d(ParseVariant("msf lead=inf"));
    auto &c = d.addClass("c", 1);
    auto *const large = d.arrive(c, "large", 0), *const small = d.arrive(c, "small", 0);
    d.pick();
    d.pick();
    d.charge(*small, 1'000'000'000);
    d.expect(*small, 1);
    d.expect(*large, 2);
    d.requeue(*large);
    d.requeue(*small);
    d.clock.advance(600 * Second);
    EXPECT_EQ(d.pick(), small);
}

} // namespace
} // namespace msfrs
