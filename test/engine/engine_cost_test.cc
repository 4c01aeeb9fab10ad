// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The common contract of cost, of estimates and actual use; limits and AQMs; random lives.
#include "support/audit.h"
#include "support/engine_driver.h"

#include <gtest/gtest.h>
#include <map>

namespace msfrs {
namespace {

using namespace test;

/// A scheduler linked into the test that records its charges.
struct Ledgerman {
    static Ledgerman *&Current()
    {
        static Ledgerman *one = nullptr;
        return one;
    }
    Ledgerman() { Current() = this; }
    ~Ledgerman() { Current() = nullptr; }

    static const msfrs_plugin &Plugin()
    {
        static msfrs_sched_ops ops{};
        static msfrs_plugin p{};
        ops.enqueued = [](void *, msfrs_item *i, msfrs_time) { Current()->queue[i->seq] = i; };
        ops.pick = [](void *, msfrs_time, msfrs_pick, msfrs_time *) { return Current()->queue.begin()->second; };
        ops.picked = [](void *, msfrs_item *i, msfrs_time) {
            Current()->queue.erase(i->seq);
            for (uint32_t r = 0; r < MSFRS_RESOURCES; ++r)
                Current()->spent[r] += i->est[r];
        };
        ops.removed = [](void *, msfrs_item *i, msfrs_time, msfrs_reason) { Current()->queue.erase(i->seq); };
        ops.charged = [](void *, msfrs_flow *, msfrs_item *, uint32_t r, int64_t amount, msfrs_time) {
            Current()->spent[r] += amount;
            Current()->charges.push_back(amount);
        };
        p = {MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(msfrs_plugin), MSFRS_SCHED, 0, "ledgerman",
             "", "", 0, 0, 0, 0, nullptr, 0, nullptr, 0, &ops, nullptr, sizeof(ops)};
        return p;
    }

    std::map<uint64_t, msfrs_item *> queue;
    int64_t spent[MSFRS_RESOURCES] = {};
    std::vector<int64_t> charges;
};

class CostTest : public ::testing::Test {
protected:
    void start(const Engine::Cost cost, const uint32_t resources = 1)
    {
        engine = std::make_unique<Engine>(Engine::Part{WrapPlugin(Ledgerman::Plugin()), {}}, Engine::Part{}, cost,
                                          resources, 0, host.engine());
        flow = &engine->flow(*engine->addClass("c", 1), "a");
    }
    msfrs_item *serve(std::vector<int64_t> est)
    {
        est.resize(MSFRS_RESOURCES);
        msfrs_item *item;
        msfrs_time wake;
        engine->offer(*flow, est.data(), nullptr, 0, item);
        return engine->pick(0, MSFRS_PICK_ANY, wake);
    }

    Host host;
    Ledgerman man;
    std::unique_ptr<Engine> engine;
    NamedFlow *flow = nullptr;
};

TEST_F(CostTest, APacketsEstimateIsItsCostAndNothingIsChargedAfterwards)
{
    start(Engine::Cost::Exact);
    auto *const packet = serve({1500});
    EXPECT_EQ(man.spent[0], 1500);
    engine->done(*packet, 1);
    EXPECT_EQ(man.spent[0], 1500);
    EXPECT_TRUE(man.charges.empty());
}

TEST_F(CostTest, ARequestIsChargedAsItsBytesArrive)
{
    start(Engine::Cost::Measured);
    auto *const request = serve({0});
    engine->charge(*request, 0, 700, 0);
    engine->charge(*request, 0, 0, 0);
    engine->charge(*request, 0, 300, 0);
    engine->done(*request, 1);
    EXPECT_EQ(man.charges, (std::vector<int64_t>{700, 300})) << "nothing is no charge";
}

TEST_F(CostTest, OnlyWhatExceedsALearntEstimateIsCharged)
{
    start(Engine::Cost::Measured);
    auto *const request = serve({1000});
    engine->charge(*request, 0, 600, 0); // covered
    EXPECT_EQ(man.spent[0], 1000);
    engine->charge(*request, 0, 600, 0); // 400 covered, 200 above
    EXPECT_EQ(man.spent[0], 1200);
    engine->charge(*request, 0, 5, 0);
    EXPECT_EQ(man.spent[0], 1205);
    engine->done(*request, 1);
    EXPECT_EQ(man.spent[0], 1205);
    EXPECT_EQ(man.charges, (std::vector<int64_t>{200, 5}));
}

TEST_F(CostTest, WhatAnEstimateHadTooMuchIsGivenBackAtTheEnd)
{
    start(Engine::Cost::Measured);
    auto *const request = serve({1000});
    engine->charge(*request, 0, 300, 0);
    EXPECT_EQ(man.spent[0], 1000);
    engine->done(*request, 1);
    EXPECT_EQ(man.spent[0], 300);
    EXPECT_EQ(man.charges, (std::vector<int64_t>{-700}));
}

TEST_F(CostTest, EveryQuantumHasItsOwnEstimate)
{
    start(Engine::Cost::Measured);
    auto *const request = serve({1000});
    engine->charge(*request, 0, 400, 0);
    const int64_t next[] = {500, 0, 0, 0};
    engine->requeue(*request, next, 1);
    EXPECT_EQ(man.spent[0], 400) << "what the first quantum had too much is given back";
    EXPECT_EQ(flow->backlog_cost, 500);
    EXPECT_EQ(AuditLaws(*engine), "");
    msfrs_time wake;
    ASSERT_EQ(engine->pick(1, MSFRS_PICK_ANY, wake), request);
    EXPECT_EQ(man.spent[0], 900);
    engine->charge(*request, 0, 700, 1);
    EXPECT_EQ(man.spent[0], 1100);
    EXPECT_EQ(request->attained, 1100);
    engine->done(*request, 1);
    EXPECT_EQ(man.spent[0], 1100);
    EXPECT_EQ(AuditLaws(*engine), "");
}

TEST_F(CostTest, WhatIsStillToComeOfATurnStaysChargedWhileTheItemQueues)
{
    start(Engine::Cost::Measured);
    auto *const request = serve({1000});
    engine->charge(*request, 0, 600, 0);
    const int64_t next[] = {500, 0, 0, 0};
    engine->requeue(*request, next, 1, 300);
    EXPECT_EQ(man.spent[0], 900) << "nobody expects the last 100 any more";
    EXPECT_EQ(request->attained, 900);
    engine->chargeQueued(*request, 200, 1);
    EXPECT_EQ(man.spent[0], 900);
    msfrs_time wake;
    ASSERT_EQ(engine->pick(1, MSFRS_PICK_ANY, wake), request);
    EXPECT_EQ(man.spent[0], 1400);
    engine->charge(*request, 0, 600, 1); // 100 of the first turn, 500 of this one
    EXPECT_EQ(man.spent[0], 1400);
    engine->charge(*request, 0, 7, 1);
    EXPECT_EQ(man.spent[0], 1407);
    EXPECT_EQ(flow->bytes(), 1407u);
    EXPECT_EQ(AuditLaws(*engine), "");

    engine->requeue(*request, next, 2, 40);
    EXPECT_EQ(man.spent[0], 1447) << "the estimate is used up";
    engine->chargeQueued(*request, 40, 2);
    EXPECT_EQ(man.spent[0], 1447);
    ASSERT_EQ(engine->pick(2, MSFRS_PICK_ANY, wake), request);
    engine->charge(*request, 0, 100, 2);
    engine->requeue(*request, next, 3, 400);
    engine->chargeQueued(*request, 150, 3);
    engine->remove(*request, 3, MSFRS_GONE);
    EXPECT_EQ(man.spent[0], 1697) << "what does not come is given back";
    EXPECT_EQ(AuditLaws(*engine), "");
}

TEST_F(CostTest, ResourcesAreCountedApart)
{
    start(Engine::Cost::Measured, 3);
    auto *const request = serve({100, 50, 10});
    engine->charge(*request, 1, 80, 0);
    engine->charge(*request, 2, 10, 0);
    engine->done(*request, 1);
    EXPECT_EQ(man.spent[0], 0);
    EXPECT_EQ(man.spent[1], 80);
    EXPECT_EQ(man.spent[2], 10);
    EXPECT_EQ(flow->bytes(), 0u) << "only resource 0 is bytes";
}

TEST_F(CostTest, AnItemRemovedWhileQueuedCostsNothing)
{
    start(Engine::Cost::Measured);
    msfrs_item *item;
    const int64_t est[MSFRS_RESOURCES] = {1000};
    engine->offer(*flow, est, nullptr, 0, item);
    EXPECT_EQ(flow->cls->backlog_cost, 1000);
    engine->remove(*item, 0, MSFRS_GONE);
    EXPECT_EQ(flow->cls->backlog_cost, 0);
    EXPECT_EQ(man.spent[0], 0);
    EXPECT_TRUE(man.charges.empty());
    EXPECT_EQ(engine->totals().dropped.cost, 1000);
}

Driver::Setup Judged(const std::string &settings, const uint32_t limit = 0)
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    setup.limit = limit;
    setup.aqm = ParseVariant(TestModule("judge") + " " + settings, MSFRS_AQM);
    return setup;
}

TEST(EngineAqm, Verdicts)
{
    Driver drop(ParseVariant("fifo"), Judged("every=2 verdict=drop"));
    auto &c = drop.addClass("c", 1);
    EXPECT_TRUE(drop.arrive(c, "a", 10));
    EXPECT_FALSE(drop.arrive(c, "a", 10));
    EXPECT_TRUE(drop.arrive(c, "a", 10));
    EXPECT_EQ(drop.engine().totals().dropped.cost, 10);
    EXPECT_EQ(drop.host.logged(0), "");

    Driver mark(ParseVariant("fifo"), Judged("every=1 verdict=mark rash=on"));
    auto &f = mark.engine().flow(mark.addClass("c", 1), "a");
    msfrs_item *item;
    const int64_t est[MSFRS_RESOURCES] = {10};
    EXPECT_EQ(mark.engine().offer(f, est, nullptr, 0, item, {}, MSFRS_ECN_CAPABLE), Engine::Offer::Marked);
    EXPECT_EQ(item->flags, uint32_t(MSFRS_ECN_CAPABLE));
    mark.engine().remove(*item, 0, MSFRS_GONE);
    EXPECT_EQ(mark.engine().offer(f, est, nullptr, 0, item), Engine::Offer::Dropped) << "nobody would see the mark";
    EXPECT_EQ(AuditLaws(mark.engine()), "");
    EXPECT_EQ(mark.host.logged(0), "");
}

TEST(EngineAqm, JudgesAsTheTurnComes)
{
    // The scheduler learns of dropped items as items that left unserved, and picks another at once.
    Driver drop(ParseVariant(TestModule("checker")), Judged("every=2 verdict=drop when=turn"));
    auto &c = drop.addClass("c", 1);
    std::vector<Tracked *> all;
    for (int n = 0; n < 4; ++n)
        all.push_back(drop.arrive(c, "a", 10));
    EXPECT_EQ(drop.pick(), all[0]);
    EXPECT_EQ(drop.pick(), all[2]) << "the second turn is not taken";
    EXPECT_EQ(drop.pick(), nullptr) << "and the last was the fourth";
    EXPECT_EQ(drop.lost(), 2u);
    EXPECT_EQ(drop.engine().totals().dropped.cost, 20);
    EXPECT_EQ(c.users, 1u);
    drop.drain();
    EXPECT_EQ(drop.host.logged(0), "");

    Driver mark(ParseVariant("fifo"), Judged("every=1 verdict=mark when=turn rash=on"));
    auto &m = mark.addClass("m", 1);
    mark.itemFlags = MSFRS_ECN_CAPABLE;
    auto *const marked = mark.arrive(m, "a", 10);
    mark.itemFlags = 0;
    mark.arrive(m, "a", 10);
    EXPECT_FALSE(marked->marked);
    EXPECT_EQ(mark.pick(), marked);
    EXPECT_TRUE(marked->marked);
    EXPECT_EQ(mark.pick(), nullptr) << "nobody would see the mark";
    EXPECT_EQ(mark.lost(), 1u);
    EXPECT_EQ(mark.host.logged(0), "");
}

TEST(EngineAqm, WhatIsTakenOutOfTurnGoesWhateverItSays)
{
    Driver d(ParseVariant(TestModule("checker")), Judged("every=1 verdict=drop when=turn"));
    auto *const t = d.arrive(d.addClass("c", 1), "a", 10);
    d.engine().pickThis(*t->item, 0);
    EXPECT_EQ(d.engine().totals().inService.items, 1u);
    d.engine().done(*t->item, 0);
    EXPECT_EQ(d.host.logged(0), "");
}

TEST(EngineAqm, ContinuationsAndWhatWasAdoptedAreNotJudgedAsTheirTurnComes)
{
    Driver d(ParseVariant("fifo"), [] {
        auto setup = Judged("every=2 verdict=drop when=turn");
        setup.cost = Engine::Cost::Measured;
        return setup;
    }());
    auto &c = d.addClass("c", 1);
    auto *const t = d.arrive(c, "a", 10);
    for (int n = 0; n < 5; ++n) {
        ASSERT_EQ(d.pick(), t) << n;
        d.requeue(*t);
    }
    EXPECT_EQ(d.lost(), 0u);
}

TEST(Engine, TimeNeverGoesBackToAPlugin)
{
    // The checker and the judge log every decrease of time. Outer calls continue with their own time after inner ones.
    auto d = std::make_unique<Driver>(ParseVariant(TestModule("checker")), Judged("every=0"));
    auto &c = d->addClass("c", 1);
    d->clock.set(50);
    for (int n = 0; n < 4; ++n)
        d->arrive(c, "a", 10);
    d->clock.set(40);
    d->finish(*d->pick());
    d->remove(*d->queued().front());
    d->engine().chargeFlow(d->engine().flow(c, "a"), 5, 30);
    EXPECT_EQ(d->engine().latest(), 50);
    auto &engine = d->engine();
    while (engine.totals().queued.items)
        engine.remove(*engine.flow(c, "a").head, 0, MSFRS_GONE);
    EXPECT_EQ(d->host.logged(0), "");
}

TEST(EngineAqm, DropsAVictimAndTheArrivingItem)
{
    Driver d(ParseVariant(TestModule("checker")), Judged("every=3 verdict=both"));
    auto &c = d.addClass("c", 1);
    d.arrive(c, "a", 10);
    d.arrive(c, "b", 10);
    EXPECT_FALSE(d.arrive(c, "c", 10));
    EXPECT_EQ(d.victims(), 1u);
    EXPECT_EQ(d.queued().size(), 1u);
    EXPECT_EQ(c.users, 1u) << "the victim's user went with it";
    EXPECT_EQ(d.engine().totals().dropped.items, 2u);
    d.drain();
    EXPECT_EQ(d.host.logged(0), "");
}

TEST(EngineAqm, AVictimThatTheHostCannotLoseStays)
{
    Driver d(ParseVariant("fifo"), Judged("every=2 verdict=both"));
    auto &c = d.addClass("c", 1);
    auto *const kept = d.arrive(c, "a", 10);
    msfrs_item *item;
    const int64_t est[MSFRS_RESOURCES] = {10};
    int asked = 0;
    const auto verdict = d.engine().offer(d.engine().flow(c, "b"), est, nullptr, 0, item, [&](msfrs_item &i) {
        ++asked;
        EXPECT_EQ(&i, kept->item);
        return false;
    });
    EXPECT_EQ(verdict, Engine::Offer::Dropped);
    EXPECT_EQ(asked, 1);
    EXPECT_TRUE(d.engine().isQueued(*kept->item));
    EXPECT_EQ(AuditLaws(d.engine()), "");
    EXPECT_EQ(d.engine().totals().dropped.items, 1u);
}

TEST(EngineAqm, TheHardLimitComesBeforeTheAqm)
{
    Driver d(ParseVariant("fifo"), Judged("every=0", 3));
    auto &c = d.addClass("c", 1);
    for (int n = 0; n < 3; ++n)
        EXPECT_TRUE(d.arrive(c, "a", 10));
    EXPECT_FALSE(d.arrive(c, "b", 10));
    EXPECT_EQ(c.users, 1u);
    d.pick();
    EXPECT_TRUE(d.arrive(c, "b", 10)) << "room comes back when an item leaves";
    d.drain();
}

/// Thousands of random calls; the laws are audited after every one, the checker and the judge watch the contract.
class RandomLife : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomLife, KeepsTheLaws)
{
    const uint64_t seed = GetParam();
    Driver::Setup setup;
    setup.seed = seed;
    setup.limit = 60;
    setup.cost = seed % 2 ? Engine::Cost::Measured : Engine::Cost::Exact;
    if (seed % 2)
        setup.estimate = [](int64_t size) { return size / 2; };
    setup.aqm = ParseVariant(TestModule("judge") + " every=5 verdict=both", MSFRS_AQM);
    Driver d(ParseVariant(TestModule("checker") + (seed % 3 ? "" : " pace=50000")), setup);
    Random random(seed);
    std::vector<msfrs_class *> classes;
    for (int n = 0; n < 4; ++n)
        classes.push_back(&d.addClass("c" + std::to_string(n), 1 + n));

    for (int step = 0; step < 1500 && !::testing::Test::HasFailure(); ++step) {
        d.clock.advance(random.between(0, 100'000));
        const auto any = [&](const std::vector<Tracked *> &list) { return list[random.below(list.size())]; };
        switch (random.below(9)) {
        case 0: case 1: case 2:
            d.arrive(*classes[random.below(classes.size())], std::to_string(random.below(5)), random.between(0, 5000));
            break;
        case 3: case 4:
            if (!d.queued().empty())
                d.pick();
            break;
        case 5:
            if (!d.served().empty())
                d.finish(*any(d.served()));
            break;
        case 6:
            if (!d.served().empty()) {
                auto &t = *any(d.served());
                d.charge(t, random.between(0, std::max<int64_t>(t.size - t.charged, 0)));
                if (random.chance(0.5))
                    d.requeue(t);
            }
            break;
        case 7:
            if (!d.queued().empty())
                d.remove(*any(d.queued()), random.chance(0.5) ? MSFRS_GONE : MSFRS_EXPIRED);
            break;
        case 8:
            d.engine().setWeight(*classes[random.below(classes.size())], static_cast<double>(random.between(1, 9)));
            if (random.chance(0.1))
                d.engine().forgetIdleFlows(d.clock.now(), 0);
            d.engine().chargeFlow(d.engine().flow(*classes[0], "excess"), random.between(0, 1000), d.clock.now());
            break;
        }
    }
    d.drain();
    for (auto *const c : classes)
        EXPECT_TRUE(d.engine().removeClass(*c));
    EXPECT_EQ(d.host.logged(0), "");
    EXPECT_GT(d.victims(), 0u) << "the test was meant to see victims";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLife, ::testing::Range(uint64_t(1), uint64_t(9)));

} // namespace
} // namespace msfrs
