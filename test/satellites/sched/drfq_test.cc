// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// drfq: equal dominant shares over any interval, whatever the packets need; the memory of dove-tailing and its limits.
#include "support/engine_driver.h"
#include "satellites/sim/shops.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;
using sim::Shop;
using sim::Visit;

/// As drfq counts it: at least 1.
Ticks Dominant(const Times &t) { return std::max<Ticks>(*std::max_element(std::begin(t.on), std::end(t.on)), 1); }

class Drfq : public ::testing::TestWithParam<uint32_t> {
protected:
    const uint32_t m = GetParam();
};

/// The bound of start-time fair queueing, on the dominant resource: over any interval in which two flows are both
/// backlogged they differ by at most one packet of each.
TEST_P(Drfq, KeepsDominantSharesTogetherOverAnyInterval)
{
    auto shop = NewShop("drfq", m);
    Random random(m);
    const double weights[] = {1, 1, 2, 0.5};
    const Ticks most[] = {100, 5000, 1000, 1000};
    std::vector<double> longest;
    size_t left[4] = {};
    for (int f = 0; f < 4; ++f) {
        const auto flow = shop.addFlow(weights[f]);
        Ticks work = 0, greatest = 0;
        while (work < 1'000'000 * weights[f]) {
            const auto times = RandomTimes(random, m, most[f]);
            shop.arrive(flow, 0, NeedOf(times, m));
            work += Dominant(times);
            greatest = std::max(greatest, Dominant(times));
            ++left[f];
        }
        longest.push_back(static_cast<double>(greatest) / weights[f]);
    }
    std::vector<std::pair<Spread, std::pair<int, int>>> pairs;
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < i; ++j)
            pairs.push_back({{weights[i], weights[j]}, {i, j}});
    }
    bool all = true;
    shop.served = [&](const Visit &v) {
        all = all && --left[v.flow] > 0; // from then on one is not backlogged
        for (auto &[spread, who] : pairs) {
            if (all && static_cast<int>(v.flow) == who.first)
                spread.a(Dominant(v.times));
            else if (all && static_cast<int>(v.flow) == who.second)
                spread.b(Dominant(v.times));
        }
    };
    shop.run(Shop::Forever);
    for (const auto &[spread, who] : pairs) {
        EXPECT_LE(spread.greatest(), longest[who.first] + longest[who.second]) << who.first << " and " << who.second;
        EXPECT_GT(spread.greatest(), 0) << "nothing was measured";
    }
}

/// Service, in dominant time, of a flow that is always backlogged.
struct Kept {
    explicit Kept(const std::string &settings, const uint32_t m = 2): shop(NewShop("drfq " + settings, m))
    {
        shop.served = [this](const Visit &v) {
            dominant[v.flow] += Dominant(v.times);
            ++packets[v.flow];
        };
    }
    std::vector<int64_t> during(const Ticks until)
    {
        dominant = packets = {};
        shop.run(until);
        return {dominant.begin(), dominant.end()};
    }
    Shop shop;
    std::array<int64_t, 4> dominant{}, packets{};
};

TEST_P(Drfq, FollowsWeightsThatChangeWhileBacklogged)
{
    Kept k("", m);
    const auto need = NeedOf(Uniform(m, 50), m);
    for (int f = 0; f < 3; ++f)
        k.shop.keep(k.shop.addFlow(), need, 5);
    const auto shares = [&](const Ticks until) {
        const auto d = k.during(until);
        return std::vector<double>{static_cast<double>(d[1]) / static_cast<double>(d[0]),
                                   static_cast<double>(d[2]) / static_cast<double>(d[0])};
    };
    auto s = shares(100'000);
    EXPECT_NEAR(s[0], 1, 0.01);
    EXPECT_NEAR(s[1], 1, 0.01);
    k.shop.setWeight(1, 3);
    k.shop.setWeight(2, 0.25);
    s = shares(400'000);
    EXPECT_NEAR(s[0], 3, 0.05);
    EXPECT_NEAR(s[1], 0.25, 0.02);
    k.shop.setWeight(1, 1e-30); // beyond the precision, but still defined
    k.shop.setWeight(2, 1e30);
    const auto d = k.during(500'000);
    EXPECT_GT(d[2], 50 * (d[0] + d[1]));
}

INSTANTIATE_TEST_SUITE_P(Resources, Drfq, ::testing::Values(1u, 2u, 3u, 4u));

/// Ghodsi et al., section 5.3: packets that alternately need the CPU and the link dove-tail, so that the flow gets as
/// much as one that needs half of each in every packet; without memory each of its packets counts in full.
TEST(DrfqMemory, LetsAlternatingNeedsDovetail)
{
    for (const bool memory : {false, true}) {
        Kept k(memory ? "memory=dovetail" : "memory=none");
        const auto alternating = k.shop.addFlow(), steady = k.shop.addFlow();
        k.shop.keep(steady, {15, 15}, 4);
        for (int n = 0; n < 2000; ++n)
            k.shop.arrive(alternating, 0, n % 2 ? sim::Need{20, 10} : sim::Need{10, 20});
        k.during(30'000);
        const double ratio = static_cast<double>(k.packets[alternating]) / static_cast<double>(k.packets[steady]);
        EXPECT_NEAR(ratio, memory ? 1.0 : 0.75, 0.02);
    }
}

/// ATFQ, figure 5(a): the drawback of that memory.
TEST(DrfqMemory, FavoursAFlowWhoseDominantResourceShifts)
{
    for (const bool memory : {false, true}) {
        Kept k(memory ? "memory=dovetail" : "memory=none");
        const auto shifting = k.shop.addFlow(), steady = k.shop.addFlow();
        k.shop.keep(shifting, {10, 100}, 2);
        k.shop.keep(steady, {60, 60}, 2);
        k.during(1'000'000);
        k.shop.keep(shifting, {100, 10}, 2);
        const auto d = k.during(1'200'000);
        if (memory)
            EXPECT_GT(d[shifting], 5 * d[steady]) << "its clock of the link is far behind";
        else
            EXPECT_NEAR(static_cast<double>(d[shifting]), static_cast<double>(d[steady]), 500);
    }
}

TEST(DrfqMemory, NobodyIsPunishedForIdleTimeOrFavouredForHavingBeenAway)
{
    for (const char *settings : {"memory=none", "memory=dovetail"}) {
        SCOPED_TRACE(settings);
        Kept k(settings);
        const auto first = k.shop.addFlow(), late = k.shop.addFlow();
        k.shop.keep(first, {30, 100}, 3);
        k.during(1'000'000); // alone
        k.shop.keep(late, {100, 30}, 3);
        auto d = k.during(1'200'000);
        EXPECT_NEAR(static_cast<double>(d[late]), static_cast<double>(d[first]), 400);
        k.shop.keep(late, {}, 0);
        k.during(2'000'000); // idle
        k.shop.keep(late, {100, 30}, 3);
        d = k.during(2'200'000);
        EXPECT_NEAR(static_cast<double>(d[late]), static_cast<double>(d[first]), 400);
    }
}

TEST(DrfqItems, OfNoTimeOrOfTooMuchAreServed)
{
    for (const char *settings : {"memory=none", "memory=dovetail"}) {
        SCOPED_TRACE(settings);
        Kept k(settings);
        const auto empty = k.shop.addFlow(), normal = k.shop.addFlow();
        k.shop.keep(empty, {0, 0}, 2);
        k.shop.keep(normal, {100, 100}, 2);
        k.shop.run(Shop::Forever, 10'000);
        EXPECT_GE(k.packets[normal], 95) << "a flow of empty packets goes first for ever";
        EXPECT_EQ(k.packets[normal] + k.packets[empty], 10'000);

        auto setup = Driver::Setup();
        setup.cost = Engine::Cost::Exact;
        setup.resources = MSFRS_RESOURCES;
        Driver d(ParseVariant(std::string("drfq ") + settings), setup);
        auto &c = d.addClass("c", 1e-300);
        d.processing = {INT64_MAX, INT64_MAX, INT64_MAX};
        for (int n = 0; n < 100; ++n)
            d.arrive(c, std::to_string(n % 3), n % 2 ? INT64_MAX / 200 : 0);
        d.drain();
    }
}

TEST(DrfqItems, TakenOutOfTurnDoNotHoldUpWhoWakes)
{
    EXPECT_GE(PicksOfOneThatWakes("drfq"), 18);
}

TEST(DrfqItems, CountAgainstAnIdleFlowUntilOthersHaveCaughtUp)
{
    RemembersWhoIsAhead("drfq");
    RemembersWhoIsAhead("drfq memory=dovetail");
}

TEST(DrfqParameters, AreRefusedWithWhatIsAllowed)
{
    EXPECT_EQ(WhatIsSaidTo("drfq memory=all"),
              "drfq parameter memory=all is not allowed: expected one of none dovetail");
    EXPECT_EQ(WhatIsSaidTo("drfq rate=0"),
              "drfq parameter rate=0 is not allowed: expected a whole number from 1 to 800000000000 bit/s");
    EXPECT_EQ(WhatIsSaidTo("drfq quantum=3"), "drfq has no parameter 'quantum'; it has memory, rate");
    EXPECT_EQ(WhatIsSaidTo("drfq rate=1 rate=2"), "drfq parameter rate is given twice; rate=1 comes first");
}

} // namespace
} // namespace msfrs
