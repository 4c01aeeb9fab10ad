// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The laws (conformance_test.cc lists them) for every AQM with every scheduler, and an AQM's other duties: it marks
/// only items that can carry a mark, drops a queued victim only if its flags announce that, and states a reason if it
/// cannot work. Driver checks laws 1 to 4 and 6 and the marks after every call; shares (law 5) are the scheduler's.
#include "support/engine_driver.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <map>

namespace msfrs::test {
namespace {

constexpr int64_t Packet = 1500;

/// The build's AQMs, and one of the tests' own with predictable verdicts.
std::vector<Variant> Aqms()
{
    auto all = AllVariants(MSFRS_AQM);
    all.push_back(ParseVariant(TestModule("judge") + " every=4 verdict=both", MSFRS_AQM));
    all.push_back(ParseVariant(TestModule("judge") + " every=4 verdict=mark", MSFRS_AQM));
    for (const std::string verdict : {"drop", "mark"})
        all.push_back(ParseVariant(TestModule("judge") + " every=4 when=turn verdict=" + verdict, MSFRS_AQM));
    return all;
}

/// Whether it counts bytes, which a host cannot provide if it does not know them beforehand.
bool CountsBytes(const Variant &v)
{
    for (const auto &s : v.settings) {
        if (s.name == "mode" && s.value == "bytes")
            return true;
    }
    return false;
}

class Aqm : public ::testing::TestWithParam<Variant> {
protected:
    Driver::Setup with(const Engine::Cost cost, const uint64_t seed = 1, const uint32_t limit = 0)
    {
        Driver::Setup setup;
        setup.cost = cost;
        setup.aqm = GetParam();
        setup.seed = seed;
        setup.limit = limit;
        return setup;
    }

    /// Two leaves, and a tree: campus -> lab -> room, campus -> office, whose flows are one.
    static std::vector<msfrs_class *> addClasses(Driver &d)
    {
        auto &campus = d.addClass("campus", 5, MSFRS_INTERIOR);
        auto &lab = d.addClass("lab", 2, MSFRS_INTERIOR, &campus);
        return {&d.addClass("a", 3), &d.addClass("b", 1), &d.addClass("room", 1, 0, &lab),
                &d.addClass("office", 3, MSFRS_AGGREGATE, &campus)};
    }

    static int64_t size(Random &random)
    {
        switch (random.below(8)) {
        case 0: return 0;
        case 1: return 1;
        case 2: return int64_t(1) << random.between(17, 60); // more than any buffer holds
        default: return random.between(40, Packet);
        }
    }

    /// Random calls: any call that a host may make, in any order.
    static void live(Driver &d, const uint64_t seed, const int steps)
    {
        Random random(seed);
        auto classes = addClasses(d);
        const auto any = [&](const std::vector<Tracked *> &list) -> Tracked & {
            return *list[random.below(list.size())];
        };
        for (int step = 0; step < steps && !HasFailure(); ++step) {
            if (random.chance(0.02))
                d.clock.advance(random.between(0, 3600 * Second)); // the host was suspended
            else if (random.chance(0.5))                           // otherwise the clock stands still
                d.clock.advance(random.between(0, 2 * Ms));
            switch (random.below(12)) {
            default: {
                auto &c = *classes[random.below(classes.size())];
                auto &f = d.engine().flow(c, std::to_string(random.below(8)),
                                          static_cast<double>(random.between(1, 3)));
                f.key = random.below(2); // keys collide
                d.itemFlags = random.chance(0.5) ? MSFRS_ECN_CAPABLE : 0;
                d.arrive(c, f.name(), size(random));
                break;
            }
            case 6: case 7: case 8:
                d.pick();
                break;
            case 9:
                if (!d.served().empty())
                    random.chance(0.3) ? d.requeue(any(d.served())) : d.finish(any(d.served()));
                break;
            case 10:
                if (!d.queued().empty())
                    d.remove(any(d.queued()), static_cast<msfrs_reason>(random.between(MSFRS_GONE, MSFRS_EXPIRED)));
                break;
            case 11: {
                auto *&c = classes[random.below(2)];
                if (random.chance(0.2)) {
                    const bool empty = c->backlog == 0 && c->in_service == 0;
                    EXPECT_EQ(d.engine().removeClass(*c), empty) << "law 4";
                    if (empty)
                        c = &d.addClass("new", 2);
                } else if (random.chance(0.3)) {
                    d.engine().forgetIdleFlows(d.clock.now(), d.clock.now() - Second);
                } else {
                    auto &all = d.engine().classes();
                    d.engine().setWeight(*all[random.below(all.size())],
                                         std::exp2(static_cast<double>(random.between(-10, 10))));
                }
                d.audit("a change of a class");
                break;
            }
            }
            for (const auto *const c : d.engine().classes()) {
                for (const double g : d.engine().aqmGauges(c))
                    ASSERT_TRUE(std::isfinite(g)) << "gauge of " << c->name;
            }
            for (const double g : d.engine().aqmGauges(nullptr))
                ASSERT_TRUE(std::isfinite(g)) << "gauge";
        }
        d.drain();
        EXPECT_EQ(d.host.logged(0), "");
        EXPECT_GT(d.engine().totals().done.items, 0u) << "it let nothing pass";
    }
};

/// Every scheduler of the build in one of its modes; which one depends on n.
std::vector<Variant> SomeModeOfEach(const size_t n)
{
    std::map<std::string, std::vector<Variant>> modes;
    for (const auto &variant : AllVariants(MSFRS_SCHED))
        modes[variant.name].push_back(variant);
    std::vector<Variant> some;
    for (const auto &scheduler : modes)
        some.push_back(scheduler.second[n % scheduler.second.size()]);
    return some;
}

TEST_P(Aqm, KeepsTheLawsBesideEveryScheduler)
{
    const size_t hash = std::hash<std::string>()(GetParam().text());
    uint64_t seed = 0;
    for (const auto &sched : SomeModeOfEach(hash)) {
        ++seed;
        SCOPED_TRACE(sched.text() + ", seed " + std::to_string(seed));
        Driver d(sched, with(Engine::Cost::Exact, seed, 40));
        live(d, seed, 400);
    }
}

TEST_P(Aqm, KeepsTheLawsWithALimitOfItsOwn)
{
    for (uint64_t seed = 1; seed <= 4 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Driver d(ParseVariant("fifo"), with(Engine::Cost::Exact, seed));
        live(d, seed, 500);
    }
}

TEST_P(Aqm, WorksWithEverySchedulerOrSaysWhyNot)
{
    // All combinations that cannot work: with packets none; with requests, whose cost is known afterwards, any plugin
    // that must know it before.
    for (const auto &sched : AllVariants(MSFRS_SCHED)) {
        EXPECT_NO_THROW(Driver(sched, with(Engine::Cost::Exact))) << sched.text();
        std::string reason;
        try {
            Driver d(sched, with(Engine::Cost::Measured));
        } catch (const ConfigError &error) {
            reason = error.what();
        }
        const auto plugin = sched.load().plugin;
        std::string wanted;
        if (plugin->ops().flags & MSFRS_NEEDS_COST)
            wanted = std::string("scheduler ") + plugin->ops().name + " must know the cost of an item before it is "
                     "served, which is unknown for a request; it can schedule packets";
        else if (CountsBytes(GetParam()))
            wanted = std::string(GetParam().load().plugin->ops().name) + ": mode=bytes needs the size of an item when "
                     "it arrives, which is unknown for a request; allowed here is mode=packets";
        EXPECT_EQ(reason, wanted) << sched.text();
    }
}

TEST_P(Aqm, JudgesRequestsWhereItCan)
{
    if (CountsBytes(GetParam()))
        return; // WorksWithEverySchedulerOrSaysWhyNot has seen it refused
    for (uint64_t seed = 1; seed <= 2; ++seed) {
        Driver d(ParseVariant("msf"), with(Engine::Cost::Measured, seed));
        live(d, seed, 400);
    }
}

TEST_P(Aqm, KeepsWhatItPromisesInItsFlags)
{
    // A queue that is served too slowly: all of its reactions to a full queue occur here.
    const auto flags = GetParam().load().plugin->ops().flags;
    Driver d(ParseVariant("fifo"), with(Engine::Cost::Exact, 1, 60));
    auto &c = d.addClass("c", 1);
    Random random(3);
    uint64_t marked = 0;
    for (int n = 0; n < 4000; ++n) {
        d.clock.advance(Ms);
        d.itemFlags = n % 2 ? MSFRS_ECN_CAPABLE : 0;
        const auto *const t = d.arrive(c, std::to_string(n % 3), Packet);
        marked += t && t->marked;
        if (!d.queued().empty() && random.chance(0.4)) {
            if (auto *const served = d.pick()) {
                marked += served->marked;
                d.finish(*served);
            }
        }
    }
    EXPECT_TRUE((flags & MSFRS_MAY_MARK) || marked == 0);
    EXPECT_TRUE((flags & MSFRS_DROPS_QUEUED) || d.victims() == 0);
    EXPECT_GT(d.engine().totals().dropped.items, 0u);
    EXPECT_GT(d.engine().totals().done.items, 0u);
}

TEST_P(Aqm, DropsNothingWhileTheLinkKeepsUp)
{
    if (GetParam().name.find("judge") != std::string::npos)
        return; // drops by count
    Driver d(ParseVariant("fifo"), with(Engine::Cost::Exact));
    auto &c = d.addClass("c", 1);
    for (int n = 0; n < 2000; ++n) {
        d.clock.advance(Ms);
        ASSERT_TRUE(d.arrive(c, std::to_string(n % 7), Packet)) << "arrival " << n << " at an empty queue";
        d.finish(*d.pickInTime());
    }
}

TEST_P(Aqm, IsTheSameWithTheSameSeed)
{
    const auto verdicts = [&] {
        Driver d(ParseVariant("fifo"), with(Engine::Cost::Exact, 7, 60));
        Random random(7);
        auto &c = d.addClass("c", 1);
        std::string all;
        for (int n = 0; n < 2000; ++n) {
            d.clock.advance(Ms);
            d.itemFlags = random.chance(0.5) ? MSFRS_ECN_CAPABLE : 0;
            const auto victims = d.victims();
            const auto *const t = d.arrive(c, std::to_string(random.below(5)), random.between(40, Packet));
            all += t ? t->marked ? '*' : '+' : d.victims() > victims ? 'x' : '-';
            const auto lost = d.lost();
            if (random.chance(0.6)) {
                auto *const served = d.pick();
                all += std::string(d.lost() - lost, '!') + (served && served->marked ? "m" : "");
                if (served)
                    d.finish(*served);
            }
        }
        return all;
    };
    EXPECT_EQ(verdicts(), verdicts());
}

TEST_P(Aqm, DescribesItself)
{
    const auto part = GetParam().load();
    const auto &p = part.plugin->ops();
    EXPECT_EQ(std::filesystem::path(GetParam().name).stem(), p.name) << "the file is called as the plugin";
    EXPECT_TRUE(*p.summary && *p.paper);
    for (uint32_t n = 0; n < p.n_params; ++n) {
        EXPECT_TRUE(*p.params[n].name && *p.params[n].help) << p.params[n].name;
        EXPECT_TRUE(p.params[n].unit) << p.params[n].name;
    }
    for (uint32_t n = 0; n < p.n_gauges; ++n)
        EXPECT_TRUE(p.gauges[n].name && p.gauges[n].unit && *p.gauges[n].help);
}

INSTANTIATE_TEST_SUITE_P(Build, Aqm, ::testing::ValuesIn(Aqms()),
                         [](const auto &test) { return test.param.testName(); });

TEST(AqmRefusal, ALimitTheHostNeverReaches)
{
    for (const auto *const name : Built({"droptail", "red", "choke", "fred", "sfed", "faba"})) {
        Driver::Setup setup;
        setup.cost = Engine::Cost::Exact;
        setup.limit = 500;
        setup.aqm = ParseVariant(std::string(name) + " limit=501", MSFRS_AQM);
        try {
            Driver d(ParseVariant("fifo"), setup);
            ADD_FAILURE() << name << ": accepted";
        } catch (const ConfigError &error) {
            EXPECT_EQ(error.what(), std::string(name) + ": limit=501 would never be reached: the host queues 500 "
                                                        "packets at most; allowed are 1 to 500");
        }
        setup.aqm = ParseVariant(std::string(name) + " limit=500", MSFRS_AQM);
        EXPECT_NO_THROW(Driver(ParseVariant("fifo"), setup));
    }
}

TEST(AqmRefusal, ThresholdsInTheWrongOrder)
{
    const auto refusal = [](const std::string &text) {
        Driver::Setup setup;
        setup.aqm = ParseVariant(text, MSFRS_AQM);
        try {
            Driver d(ParseVariant("fifo"), setup);
        } catch (const ConfigError &error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_EQ(refusal("codel target=100"), "codel: target=100 must be less than interval=100");
    NEEDS_PLUGIN("red");
    for (const auto *const name : {"red", "choke", "fred"})
        EXPECT_EQ(refusal(std::string(name) + " min=50"), std::string(name) + ": min=50 must be less than max=50");
    for (const auto *const name : {"sfed", "faba"}) {
        EXPECT_EQ(refusal(std::string(name) + " lambda1=0.2"),
                  std::string(name) + ": lambda1=0.2 must be greater than lambda2=0.25");
    }
    EXPECT_EQ(refusal("red maxp=101"), "red parameter maxp=101 is not allowed: expected a number from 0 to 100 %");
    EXPECT_EQ(refusal("faba buckets=class"),
              "faba has no parameter 'buckets'; it has mode, limit, packet, bucket, alpha, lambda1, lambda2, maxp, "
              "ecn");
}

} // namespace
} // namespace msfrs::test
