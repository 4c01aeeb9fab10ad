// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The shop's rules: one packet at a time on a resource, no waiting between resources, each start as early as possible.
#include "satellites/sim/shops.h"
#include "support/audit.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;
using sim::Shop;
using sim::Visit;

class Resources : public ::testing::TestWithParam<uint32_t> {
protected:
    const uint32_t m = GetParam();
};

TEST_P(Resources, ServeWithoutWaitingAsEarlyAsTheyCan)
{
    for (const char *scheduler : {"drfq", "drfq memory=dovetail", "atfq packets=7", "atfq loop=time", "fifo"}) {
        SCOPED_TRACE(scheduler);
        auto shop = NewShop(scheduler, m);
        Random random(m);
        std::vector<Visit> visits;
        shop.served = [&](const Visit &v) { visits.push_back(v); };
        size_t offered = 0;
        for (int f = 0; f < 5; ++f) {
            const auto flow = shop.addFlow();
            for (Ticks when = 0; when < 200'000; when += random.between(0, 4000), ++offered)
                shop.arrive(flow, when, NeedOf(RandomTimes(random, m, 1000), m));
        }
        shop.run(Shop::Forever);
        ASSERT_EQ(visits.size(), offered);
        Ticks free[MSFRS_RESOURCES] = {};
        for (const auto &v : visits) {
            ASSERT_LE(v.arrived, v.start);
            Ticks now = v.start;
            bool tight = v.start == v.arrived || v.start == free[0];
            for (uint32_t j = 0; j < m; ++j) {
                ASSERT_GE(now, free[j]) << "resource " << j << " has two packets at a time";
                tight = tight || now == free[j];
                free[j] = now += v.times.on[j];
            }
            ASSERT_EQ(v.finish, now) << "it waited on the way";
            ASSERT_TRUE(tight) << "nothing kept it from beginning earlier";
        }
        EXPECT_EQ(AuditLaws(shop.engine()), "");
        EXPECT_EQ(shop.engine().totals().done.items + shop.engine().totals().inService.items, offered);
    }
}

TEST_P(Resources, ServeOneFlowInItsActiveTime)
{
    auto shop = NewShop("drfq", m);
    Random random(m + 10);
    Alone alone(m);
    const auto flow = shop.addFlow();
    std::vector<Ticks> wanted;
    Ticks left = 0;
    for (int n = 0; n < 500; ++n) {
        const auto times = RandomTimes(random, m, 1000);
        shop.arrive(flow, 0, NeedOf(times, m));
        wanted.push_back(left += alone.add(times));
    }
    std::vector<Ticks> got;
    shop.served = [&](const Visit &v) { got.push_back(v.finish); };
    shop.run(Shop::Forever);
    EXPECT_EQ(got, wanted);
}

INSTANTIATE_TEST_SUITE_P(Of, Resources, ::testing::Values(1u, 2u, 3u, 4u));

TEST(Shop, ChoosesAmongWhatHasArrivedWhenTheFirstResourceIsFree)
{
    auto shop = NewShop("drfq", 2);
    const auto a = shop.addFlow(), b = shop.addFlow();
    std::vector<uint32_t> order;
    shop.served = [&](const Visit &v) { order.push_back(v.flow); };
    shop.arrive(a, 0, {10, 100});
    shop.arrive(a, 0, {10, 100});
    shop.arrive(b, 100, {10, 100}); // just in time: b has not been served
    shop.arrive(b, 301, {10, 100}); // too late
    shop.arrive(a, 300, {10, 100});
    shop.run(Shop::Forever);
    EXPECT_EQ(order, (std::vector<uint32_t>{a, b, a, a, b}));
}

TEST(Shop, StopsWhereItIsTold)
{
    auto shop = NewShop("fifo", 2);
    const auto flow = shop.addFlow();
    shop.keep(flow, {10, 100}, 3);
    EXPECT_EQ(shop.run(1000), 11u) << "at 0, 100, ... 1000";
    EXPECT_EQ(shop.now(), 1000);
    EXPECT_EQ(shop.run(Shop::Forever, 5), 5u);
    EXPECT_EQ(shop.now(), 1500);
    shop.keep(flow, {10, 100}, 0);
    EXPECT_EQ(shop.run(Shop::Forever), 3u) << "what was queued";
    EXPECT_EQ(shop.run(Shop::Forever), 0u);
    EXPECT_EQ(shop.run(5000), 0u);
}

TEST(Shop, TellsTheSchedulerTheRateOfItsLink)
{
    // 1000 bytes are 80,000 ticks at 1 Gbit/s and 800,000 at 100 Mbit/s: the CPU's 200,000 are dominant or not.
    for (const int64_t rate : {100'000'000, 1'000'000'000}) {
        auto shop = NewShop("drfq", 2, rate);
        const auto a = shop.addFlow(), b = shop.addFlow();
        int64_t served[2] = {};
        shop.served = [&](const Visit &v) { ++served[v.flow]; };
        shop.keep(a, {1000, 200'000}, 2);
        shop.keep(b, {0, 200'000}, 2);
        shop.run(Shop::Forever, 3000);
        EXPECT_NEAR(static_cast<double>(served[b]) / static_cast<double>(served[a]), rate < 1e9 ? 4 : 1, 0.02);
    }
}

} // namespace
} // namespace msfrs
