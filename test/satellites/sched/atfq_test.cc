// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// atfq: equal active time at the end of every loop, and an order of each loop with the least idle time of the CPU.
#include "support/engine_driver.h"
#include "satellites/sim/shops.h"

#include <gtest/gtest.h>
#include <numeric>

namespace msfrs {
namespace {

using namespace test;
using sim::Shop;
using sim::Visit;

/// Four flows with different needs and weights, all of their packets queued from the start.
class Backlogged {
public:
    static constexpr uint32_t Flows = 4;
    static constexpr double Weights[Flows] = {1, 1, 2, 0.5};

    Backlogged(const std::string &settings, const uint32_t m, const uint64_t seed, const bool weighted):
        shop(NewShop("atfq " + settings, m))
    {
        Random random(seed);
        const Ticks most[] = {100, 5000, 1000, 1000};
        for (uint32_t f = 0; f < Flows; ++f) {
            const double weight = weighted ? Weights[f] : 1;
            shop.addFlow(weight);
            Alone alone(m);
            Ticks active = 0;
            first[f] = growths.size() + 1;
            while (static_cast<double>(active) < 500'000 * weight) {
                const auto times = RandomTimes(random, m, most[f]);
                shop.arrive(f, 0, NeedOf(times, m));
                const bool empty = std::equal(times.on, times.on + m, Times{}.on);
                const auto growth = alone.add(times) + empty;
                growths.push_back(active ? static_cast<double>(growth) / weight : 0); // (1): the first has F = 0
                longest[f] = std::max(longest[f], growths.back());
                active += growth;
                ++left[f];
            }
        }
        shop.served = [this](const Visit &v) {
            visits.push_back(v);
            received[v.flow] += growths[v.id - 1];
            --left[v.flow];
        };
    }
    /// Whether all flows still have packets queued.
    bool all() const
    {
        return *std::min_element(std::begin(left), std::end(left)) > 100; // more than a loop has
    }

    Shop shop;
    std::vector<double> growths; ///< of the flow's clock, by id
    uint64_t first[Flows] = {};  ///< id of the flow's first packet; the others follow
    double longest[Flows] = {}, received[Flows] = {};
    size_t left[Flows] = {};
    std::vector<Visit> visits;
};

class Atfq : public ::testing::TestWithParam<uint32_t> {
protected:
    const uint32_t m = GetParam();
};

TEST_P(Atfq, GivesEqualActiveTimeAtTheEndOfEveryLoop)
{
    for (const bool weighted : {false, true}) {
        for (const uint32_t x : {1u, 2u, 7u, 20u, 64u}) {
            SCOPED_TRACE("x " + std::to_string(x) + (weighted ? ", weighted" : ""));
            Backlogged b("packets=" + std::to_string(x), m, 17 * m, weighted);
            for (int loop = 0; b.all(); ++loop) {
                b.shop.run(Shop::Forever, x);
                for (uint32_t i = 0; i < b.Flows; ++i) {
                    for (uint32_t j = 0; j < i; ++j) {
                        const double bound = std::max(b.longest[i], b.longest[j]) * 1.0001; // sums of doubles
                        ASSERT_LE(std::abs(b.received[i] - b.received[j]), bound)
                            << i << " and " << j << " after loop " << loop;
                    }
                }
            }
            EXPECT_GT(b.visits.size(), 500u);
        }
    }
}

TEST_P(Atfq, KeepsFlowsWithinATimeDomain)
{
    constexpr Ticks Domain = 20'000;
    Backlogged b("loop=time domain=" + std::to_string(Domain / 10), m, 3 * m, false);
    while (b.all()) {
        b.shop.run(Shop::Forever, 1);
        for (uint32_t i = 0; i < b.Flows; ++i) {
            for (uint32_t j = 0; j < i; ++j)
                ASSERT_LE(std::abs(b.received[i] - b.received[j]), Domain + std::max(b.longest[i], b.longest[j]));
        }
    }
    EXPECT_GT(b.visits.size(), 500u);
}

TEST_P(Atfq, KeepsTheOrderOfAFlowWhereItSaysSo)
{
    for (const char *settings : {"loop=strict", "flow_order=on", "loop=time flow_order=on"}) {
        SCOPED_TRACE(settings);
        Backlogged b(settings, m, 5, true);
        b.shop.run(Shop::Forever);
        for (const auto &v : b.visits)
            ASSERT_EQ(v.id, b.first[v.flow]++);
    }
}

TEST_P(Atfq, KeepsTheOrderOfPacketsThatAreAlike)
{
    auto shop = NewShop("atfq packets=50", m);
    Random random(m);
    uint64_t last[3] = {};
    shop.served = [&](const Visit &v) {
        EXPECT_GT(v.id, last[v.flow]);
        last[v.flow] = v.id;
    };
    for (int f = 0; f < 3; ++f) {
        const auto flow = shop.addFlow();
        const auto need = NeedOf(RandomTimes(random, m, 1000), m);
        for (int n = 0; n < 300; ++n)
            shop.arrive(flow, 0, need);
    }
    EXPECT_EQ(shop.run(Shop::Forever), 900u);
}

TEST_P(Atfq, AFlowsActiveTimeIsTheTimeItTakesAloneToTheTick)
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    setup.resources = m;
    Driver d(ParseVariant("atfq loop=strict rate=" + std::to_string(ByteATick)), setup);
    auto &c = d.addClass("c", 1);
    Random random(m);
    Alone alone(m);
    Ticks active = 0, hidden = 0; // packets served completely during the previous one have no active time
    for (int n = 0; n < 400; ++n) {
        auto times = RandomTimes(random, m, 6);
        if (std::equal(times.on, times.on + m, Times{}.on))
            times.on[0] = 1;
        const auto growth = alone.add(times);
        active += n ? growth : 0; // (1): the first has F = 0
        hidden += growth == 0;
        const auto need = NeedOf(times, m);
        d.processing.assign(need.begin() + 1, need.begin() + m);
        d.arrive(c, "flow", need[0]);
        d.finish(*d.pick());
        ASSERT_NEAR(d.engine().gauges(nullptr)[0] * 1e4, static_cast<double>(active), 1e-6) << "packet " << n;
    }
    EXPECT_EQ(hidden > 0, m > 1);
}

INSTANTIATE_TEST_SUITE_P(Resources, Atfq, ::testing::Values(1u, 2u, 3u, 4u));

/// Idle time of the first resource in the best order of these visits.
Ticks LeastIdleTime(const std::vector<Visit> &loop, const Times &before, const uint32_t m)
{
    std::vector<size_t> order(loop.size());
    std::iota(order.begin(), order.end(), 0);
    Ticks least = INT64_MAX;
    do {
        Ticks idle = 0;
        const Times *last = &before;
        for (const auto n : order) {
            idle += Gap(*last, loop[n].times, m);
            last = &loop[n].times;
        }
        least = std::min(least, idle);
    } while (std::next_permutation(order.begin(), order.end()));
    return least;
}

/// Idle time of every loop of x, and the least possible one.
void CompareLoops(const std::vector<Visit> &visits, const uint32_t m, const size_t x,
                  const std::function<void(Ticks idle, Ticks least)> &compare)
{
    for (size_t begin = x; begin + x <= visits.size() && begin < 60 * x; begin += x) {
        const std::vector<Visit> loop(visits.begin() + static_cast<ptrdiff_t>(begin),
                                      visits.begin() + static_cast<ptrdiff_t>(begin + x));
        const auto &before = visits[begin - 1];
        const auto idle = loop.back().start - before.start - before.times.on[0];
        Ticks busy = 0;
        for (size_t n = 0; n + 1 < x; ++n)
            busy += loop[n].times.on[0];
        compare(idle - busy, LeastIdleTime(loop, before.times, m));
    }
}

TEST(AtfqLoop, LeavesTheCpuIdleForAsShortAsAnyOrderCould)
{
    for (const size_t x : {2u, 5u, 7u}) {
        Backlogged b("packets=" + std::to_string(x), 2, x, false);
        b.shop.run(Shop::Forever);
        CompareLoops(b.visits, 2, x, [](const Ticks idle, const Ticks least) { EXPECT_EQ(idle, least); });
    }
}

/// If one term of (3) is always the greatest, its order is the optimum.
class OneTerm : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {}; ///< least and greatest L(p, 3)

TEST_P(OneTerm, IsOptimalForThreeResources)
{
    auto shop = NewShop("atfq packets=6", 3);
    Random random(8);
    std::vector<Visit> visits;
    shop.served = [&](const Visit &v) { visits.push_back(v); };
    for (uint32_t f = 0; f < 4; ++f) {
        shop.addFlow();
        for (int n = 0; n < 100; ++n)
            shop.arrive(f, 0, {random.between(GetParam().first, GetParam().second), random.between(0, 1000),
                               random.between(50, 1000)});
    }
    shop.run(Shop::Forever);
    CompareLoops(visits, 3, 6, [](const Ticks idle, const Ticks least) { EXPECT_EQ(idle, least); });
}

// The last resource is faster than the previous one, section IV-B, equations (7) and (8); or it is slower.
INSTANTIATE_TEST_SUITE_P(, OneTerm, ::testing::Values(std::pair(0, 50), std::pair(1000, 3000)));

TEST(AtfqLoop, IsNeverWorseThanTheOrderOfTheTimestamps)
{
    for (const uint32_t m : {3u, 4u}) {
        for (uint64_t seed = 1; seed <= 5; ++seed) {
            Backlogged plain("loop=strict", m, seed, false), loops("packets=6", m, seed, false);
            plain.shop.run(Shop::Forever);
            loops.shop.run(Shop::Forever);
            EXPECT_LT(loops.visits.back().finish, plain.visits.back().finish);
            double sum = 0, best = 0;
            CompareLoops(loops.visits, m, 6, [&](const Ticks idle, const Ticks least) {
                ASSERT_GE(idle, least);
                sum += static_cast<double>(idle);
                best += static_cast<double>(least);
            });
            RecordProperty("idle_against_optimum_m" + std::to_string(m) + "_" + std::to_string(seed),
                           std::to_string(sum / best));
        }
    }
}

TEST(AtfqLoop, SavesWhatThePaperSays)
{
    // Two packets U (4, 4) and four V (2, 1): figure 1. In strict order U V V takes 10 units, in loops at most 9.
    Ticks makespan[2];
    for (const int relaxed : {0, 1}) {
        auto shop = NewShop(relaxed ? "atfq packets=6" : "atfq loop=strict", 2);
        for (const auto &need : {sim::Need{4, 4}, sim::Need{1, 2}})
            shop.keep(shop.addFlow(), need, 10);
        shop.run(Shop::Forever, 3000);
        makespan[relaxed] = shop.now();
    }
    EXPECT_NEAR(static_cast<double>(makespan[0]), 10'000, 10);
    EXPECT_LE(makespan[1], 9'000);
}

/// Active time of flows of one kind of packet each.
struct Kept {
    explicit Kept(const std::string &settings): shop(NewShop("atfq " + settings, 2))
    {
        shop.served = [this](const Visit &v) {
            active[v.flow] += std::max(v.times.on[0], v.times.on[1]);
            ++packets[v.flow];
        };
    }
    std::vector<double> during(const Ticks until)
    {
        active = {};
        shop.run(until);
        return {active.begin(), active.end()};
    }
    Shop shop;
    std::array<double, 4> active{};
    std::array<int64_t, 4> packets{};
};

class Modes : public ::testing::TestWithParam<const char *> {};

TEST_P(Modes, NobodyIsPunishedForIdleTimeOrFavouredForHavingBeenAway)
{
    Kept k(GetParam());
    const auto first = k.shop.addFlow(), late = k.shop.addFlow();
    k.shop.keep(first, {30, 100}, 40);
    k.during(1'000'000); // alone
    k.shop.keep(late, {100, 30}, 40);
    auto d = k.during(1'500'000);
    EXPECT_NEAR(d[late], d[first], 4000);
    k.shop.keep(late, {}, 0);
    k.during(2'000'000); // idle
    k.shop.keep(late, {100, 30}, 40);
    d = k.during(2'500'000);
    EXPECT_NEAR(d[late], d[first], 4000);
}

TEST_P(Modes, PausingGainsNothing)
{
    // A flow whose queue empties after every packet, beside one that is always backlogged.
    Kept k(GetParam());
    const auto steady = k.shop.addFlow(), pausing = k.shop.addFlow();
    k.shop.keep(steady, {50, 50}, 40);
    k.shop.keep(pausing, {50, 50}, 1);
    const auto d = k.during(1'000'000);
    EXPECT_LE(d[pausing], d[steady] + 4000);
}

TEST_P(Modes, FollowWeightsThatChangeWhileBacklogged)
{
    Kept k(GetParam());
    for (int f = 0; f < 3; ++f)
        k.shop.keep(k.shop.addFlow(), {60, 60}, 200);
    auto d = k.during(300'000);
    EXPECT_NEAR(d[1] / d[0], 1, 0.05);
    k.shop.setWeight(1, 3);
    k.shop.setWeight(2, 0.25);
    d = k.during(1'500'000);
    EXPECT_NEAR(d[1] / d[0], 3, 0.15);
    EXPECT_NEAR(d[2] / d[0], 0.25, 0.03);
    k.shop.setWeight(1, 1e-30);
    k.shop.setWeight(2, 1e30);
    d = k.during(2'500'000);
    EXPECT_GT(d[2], 5 * (d[0] + d[1]));
}

TEST_P(Modes, ServeItemsOfNoTimeOrOfTooMuch)
{
    Kept k(GetParam());
    const auto empty = k.shop.addFlow(), normal = k.shop.addFlow();
    k.shop.keep(empty, {0, 0}, 2);
    k.shop.keep(normal, {100, 100}, 2);
    k.shop.run(Shop::Forever, 20'000);
    EXPECT_GE(k.packets[normal], 60) << "a flow of empty packets goes first for ever";

    auto setup = Driver::Setup();
    setup.cost = Engine::Cost::Exact;
    setup.resources = MSFRS_RESOURCES;
    Driver d(ParseVariant(std::string("atfq ") + GetParam()), setup);
    auto &c = d.addClass("c", 1e-300);
    d.processing = {INT64_MAX, INT64_MAX, INT64_MAX};
    for (int n = 0; n < 100; ++n)
        d.arrive(c, std::to_string(n % 3), n % 2 ? INT64_MAX / 200 : 0);
    d.drain();
}

TEST_P(Modes, PacketsTakenOutOfTurnDoNotHoldUpWhoWakes)
{
    EXPECT_GE(PicksOfOneThatWakes(std::string("atfq ") + GetParam()), 18);
}

TEST_P(Modes, RememberWhoIsAheadUntilOthersHaveCaughtUp) { RemembersWhoIsAhead(std::string("atfq ") + GetParam()); }

INSTANTIATE_TEST_SUITE_P(, Modes, ::testing::Values("packets=1", "packets=20", "loop=time domain=30", "loop=strict",
                                                    "flow_order=on", "loop=time domain=300"));

TEST(AtfqParameters, AreRefusedWithWhatIsAllowed)
{
    EXPECT_EQ(WhatIsSaidTo("atfq loop=all"),
              "atfq parameter loop=all is not allowed: expected one of packets time strict");
    EXPECT_EQ(WhatIsSaidTo("atfq packets=0"),
              "atfq parameter packets=0 is not allowed: expected a whole number from 1 to 4096 packets");
    EXPECT_EQ(WhatIsSaidTo("atfq domain=1e3"),
              "atfq parameter domain=1e3 is not allowed: expected a whole number from 1 to 100000000000 ns");
    EXPECT_EQ(WhatIsSaidTo("atfq x=3"), "atfq has no parameter 'x'; it has loop, packets, domain, flow_order, rate");
}

} // namespace
} // namespace msfrs
