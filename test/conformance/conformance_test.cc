// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The laws that every plugin of the build must obey, in every combination of its modes. A plugin in the build is part
/// of this suite.
///
/// 1. Every picked item ends in exactly one done (the engine's; Driver and checker watch it).
/// 2. Work conservation: a pick with a backlog returns an item or a time to wake.
/// 3. Offered = dropped + queued + in service + done, in items and in bytes, after every call.
/// 4. A class with items cannot be freed.
/// 5. One trace, prepaid and postpaid, gives class shares that agree.
/// 6. Per-flow order is kept where the plugin promises it.
/// Laws 2, 3 and 6 are checked by Driver after every call. AQMs, beside every scheduler: aqm_conformance_test.cc.
///
/// MSFRS_CONFORMANCE_PLUGINS=PATH[:PATH...] adds plugins of other builds.
#include "support/engine_driver.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr int64_t Packet = 1500;

bool NeedsCost(const Variant &v) { return v.load().plugin->ops().flags & MSFRS_NEEDS_COST; }

/// Ways in which a host may state an item's cost.
struct Costs {
    const char *name;
    Engine::Cost cost;
    int64_t (*estimate)(int64_t);
};

constexpr Costs Prepaid{"prepaid", Engine::Cost::Exact, [](int64_t) { return int64_t(0); }};
constexpr Costs Postpaid{"postpaid", Engine::Cost::Measured, [](int64_t) { return int64_t(0); }};
constexpr Costs Learnt{"learnt", Engine::Cost::Measured, [](int64_t) { return Packet / 2; }};

std::vector<Costs> CostsOf(const Variant &v)
{
    return NeedsCost(v) ? std::vector<Costs>{Prepaid} : std::vector<Costs>{Prepaid, Postpaid, Learnt};
}

Driver::Setup With(const Costs &costs, const uint64_t seed = 1)
{
    Driver::Setup setup;
    setup.cost = costs.cost;
    setup.estimate = costs.estimate;
    setup.seed = seed;
    return setup;
}

std::string NameOf(const ::testing::TestParamInfo<Variant> &test) { return test.param.testName(); }

class Scheduler : public ::testing::TestWithParam<Variant> {
protected:
    /// Random calls: any call that a host may make, in any order; items of any size; random weights and clock steps.
    void live(Driver &d, const bool measured, const uint64_t seed, const int steps)
    {
        Random random(seed);
        std::vector<msfrs_class *> classes;
        for (int n = 0; n < 3; ++n)
            classes.push_back(&d.addClass("c" + std::to_string(n), static_cast<double>(random.between(1, 8))));
        int made = 3;
        const auto size = [&]() -> int64_t {
            switch (random.below(6)) {
            case 0: return 0;                                   // nothing at all
            case 1: return int64_t(1) << random.between(30, 40); // huge
            case 2: return 1;
            default: return random.between(40, 3000);
            }
        };
        const auto any = [&](const std::vector<Tracked *> &list) -> Tracked & {
            return *list[random.below(list.size())];
        };
        for (int step = 0; step < steps && !HasFailure(); ++step) {
            if (random.chance(0.02))
                d.clock.advance(random.between(0, 3600 * Second)); // the host was suspended
            else if (random.chance(0.5))                           // otherwise the clock stands still
                d.clock.advance(random.between(0, Ms));
            switch (random.below(12)) {
            case 11:
                if (const auto &list = random.chance(0.5) ? d.served() : d.queued(); measured && !list.empty())
                    d.move(any(list), *classes[random.below(classes.size())], std::to_string(random.below(6)));
                break;
            case 10:
                if (const auto &list = random.chance(0.5) ? d.served() : d.queued(); measured && !list.empty())
                    d.expect(any(list), random.chance(0.2) ? MSFRS_UNKNOWN : size());
                break;
            case 0: case 1: case 2: {
                auto &c = *classes[random.below(classes.size())];
                auto &f = d.engine().flow(c, std::to_string(random.below(6)));
                f.key = random.below(2); // colliding keys, within a class and across
                if (d.engine().scheduler().flags & MSFRS_MULTI_RESOURCE)
                    d.processing = {size(), size(), size()};
                d.arrive(c, f.name(), size());
                break;
            }
            case 3: case 4:
                d.pick();
                break;
            case 5:
                d.pick(MSFRS_PICK_FRESH);
                break;
            case 6:
                if (!d.served().empty())
                    d.finish(any(d.served()));
                break;
            case 7:
                if (!d.served().empty()) {
                    auto &t = any(d.served());
                    d.charge(t, random.between(0, std::max<int64_t>(t.size - t.charged, 0)));
                    if (random.chance(0.5))
                        d.requeue(t);
                }
                break;
            case 8:
                if (!d.queued().empty())
                    d.remove(any(d.queued()), static_cast<msfrs_reason>(random.between(MSFRS_GONE, MSFRS_EXPIRED)));
                break;
            case 9: {
                auto *&c = classes[random.below(classes.size())];
                if (random.chance(0.3)) {
                    const bool empty = c->backlog == 0 && c->in_service == 0;
                    EXPECT_EQ(d.engine().removeClass(*c), empty) << "law 4";
                    if (empty)
                        c = &d.addClass("c" + std::to_string(made++), 1);
                } else if (random.chance(0.5)) {
                    d.engine().setWeight(*c, std::exp2(static_cast<double>(random.between(-10, 10))));
                } else {
                    d.engine().chargeFlow(d.engine().flow(*c, "excess"), size(), d.clock.now());
                    d.engine().forgetIdleFlows(d.clock.now(), d.clock.now() - Second);
                }
                d.audit("a change of a class");
                break;
            }
            }
            for (const auto *const c : d.engine().classes()) {
                for (const double g : d.engine().gauges(c))
                    ASSERT_TRUE(std::isfinite(g)) << "gauge of " << c->name;
            }
        }
        d.drain();
        for (auto *const c : classes)
            EXPECT_TRUE(d.engine().removeClass(*c));
        EXPECT_EQ(d.host.logged(0), "");
    }
};

TEST_P(Scheduler, KeepsTheLawsWhateverTheHostDoes)
{
    for (const auto &costs : CostsOf(GetParam())) {
        SCOPED_TRACE(costs.name);
        for (uint64_t seed = 1; seed <= 4 && !HasFailure(); ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed));
            auto setup = With(costs, seed);
            if (GetParam().load().plugin->ops().flags & MSFRS_MULTI_RESOURCE)
                setup.resources = 1 + static_cast<uint32_t>(seed % MSFRS_RESOURCES); // one resource must do, too
            Driver d(GetParam(), setup);
            live(d, costs.cost == Engine::Cost::Measured, seed, 400);
        }
    }
}

TEST_P(Scheduler, GetsThroughAClockThatStandsStill)
{
    // A plugin that paces by the clock must still state its next wake-up.
    for (const auto &costs : CostsOf(GetParam())) {
        Driver d(GetParam(), With(costs));
        d.clock.set(77 * Second);
        auto &c = d.addClass("c", 1);
        for (int n = 0; n < 50; ++n)
            d.arrive(c, std::to_string(n % 5), 1000);
        d.drain();
    }
}

TEST_P(Scheduler, ServesEverybodyInTheEnd)
{
    // No class or user waits for ever beside an endless backlog, however small its weight or greedy the others.
    for (const auto &costs : CostsOf(GetParam())) {
        SCOPED_TRACE(costs.name);
        Driver d(GetParam(), With(costs));
        auto &heavy = d.addClass("heavy", 100);
        auto &light = d.addClass("light", 1);
        for (int n = 0; n < 5; ++n)
            d.arrive(heavy, "greedy", Packet);
        auto *const modest = d.arrive(light, "modest", Packet);
        int picks = 0;
        for (;; ++picks) {
            ASSERT_LT(picks, 1000) << "starved";
            auto *const t = d.pickInTime();
            ASSERT_TRUE(t);
            if (t == modest)
                break;
            d.finish(*t);
            d.arrive(heavy, "greedy", Packet);
            d.clock.advance(Ms);
        }
        d.drain();
    }
}

/// Bytes of each class out of a fixed amount of service, with all classes always backlogged.
std::vector<double> SharesOf(const Variant &v, const Costs &costs)
{
    Driver d(v, With(costs));
    Random sizes(99);
    std::vector<msfrs_class *> classes;
    const double weights[] = {4, 2, 1};
    for (int n = 0; n < 3; ++n)
        classes.push_back(&d.addClass("c" + std::to_string(n), weights[n]));
    const auto arrive = [&](const size_t n) {
        for (int user = 0; user < 2; ++user)
            d.arrive(*classes[n], std::to_string(user), sizes.between(100, 2 * Packet));
    };
    for (size_t n = 0; n < 3; ++n) {
        for (int depth = 0; depth < 5; ++depth)
            arrive(n);
    }
    for (int served = 0; served < 3000; ++served) {
        auto *const t = d.pickInTime();
        if (!t)
            return {};
        const auto n = t->cls->index;
        d.finish(*t);
        if (classes[n]->backlog < 6)
            arrive(n);
        d.clock.advance(Ms);
    }
    std::vector<double> shares;
    double sum = 0;
    for (const auto *const c : classes) {
        shares.push_back(static_cast<double>(d.bytesOf(*c)));
        sum += shares.back();
    }
    for (auto &s : shares)
        s /= sum;
    return shares;
}

TEST_P(Scheduler, GivesTheSameSharesPrepaidAndPostpaid)
{
    if (NeedsCost(GetParam())) {
        Driver::Setup setup;
        EXPECT_THROW(Driver(GetParam(), setup), ConfigError) << "it says that it needs exact costs";
        return;
    }
    const auto prepaid = SharesOf(GetParam(), Prepaid);
    ASSERT_EQ(prepaid.size(), 3u);
    for (const auto &costs : {Postpaid, Learnt}) {
        const auto other = SharesOf(GetParam(), costs);
        ASSERT_EQ(other.size(), 3u);
        for (size_t n = 0; n < 3; ++n)
            EXPECT_NEAR(other[n], prepaid[n], 0.01) << "law 5, " << costs.name << ", class " << n;
    }
}

TEST_P(Scheduler, ForgetsIdleFlows)
{
    for (const auto &costs : CostsOf(GetParam())) {
        Driver d(GetParam(), With(costs));
        auto &c = d.addClass("c", 1);
        for (int n = 0; n < 300; ++n) {
            d.arrive(c, "user" + std::to_string(n), Packet);
            d.finish(*d.pickInTime());
            d.clock.advance(10 * Second);
        }
        d.engine().forgetIdleFlows(d.clock.now() - 60 * Second, d.clock.now() - 600 * Second);
        size_t flows = 0;
        d.engine().eachFlow(c, [&](const NamedFlow &) { ++flows; });
        EXPECT_LE(flows, 62u);
        d.audit("forgetIdleFlows");
    }
}

TEST_P(Scheduler, IsTheSameWithTheSameSeed)
{
    const auto order = [&] {
        Driver d(GetParam(), With(NeedsCost(GetParam()) ? Prepaid : Postpaid, 5));
        Random random(5);
        msfrs_class *classes[] = {&d.addClass("a", 3), &d.addClass("b", 1)};
        std::string names;
        for (int n = 0; n < 400; ++n) {
            d.arrive(*classes[random.below(2)], std::to_string(random.below(4)), random.between(1, 3000));
            if (n % 2) {
                auto *const t = d.pickInTime();
                names += t->name + " ";
                d.finish(*t);
            }
            d.clock.advance(Ms);
        }
        return names;
    };
    EXPECT_EQ(order(), order());
}

TEST_P(Scheduler, DescribesItself)
{
    const auto part = GetParam().load();
    const auto &p = part.plugin->ops();
    EXPECT_EQ(std::filesystem::path(GetParam().name).stem(), p.name) << "the file is called as the plugin";
    EXPECT_TRUE(*p.summary);
    EXPECT_TRUE(*p.paper) << "where the algorithm is from";
    for (uint32_t n = 0; n < p.n_params; ++n) {
        EXPECT_TRUE(p.params[n].name && *p.params[n].name);
        EXPECT_TRUE(p.params[n].help && *p.params[n].help) << p.params[n].name;
        EXPECT_TRUE(p.params[n].unit) << p.params[n].name;
    }
    for (uint32_t n = 0; n < p.n_gauges; ++n)
        EXPECT_TRUE(p.gauges[n].name && p.gauges[n].unit && p.gauges[n].help && *p.gauges[n].help);
}

INSTANTIATE_TEST_SUITE_P(Build, Scheduler, ::testing::ValuesIn(AllVariants(MSFRS_SCHED)), NameOf);

/// The suite itself: a plugin that breaks a law is caught.
TEST(Suite, CoversEveryPluginOfTheBuild)
{
    EXPECT_GE(AllVariants(MSFRS_SCHED).size(), 5u) << "msf in four modes, fifo";
    EXPECT_NE(PluginList().find("msf.la"), std::string::npos);
}

} // namespace
} // namespace msfrs::test
