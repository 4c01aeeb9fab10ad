// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reconfiguration with requests in every state.
#include "support/requests.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

namespace msfrs {
namespace {

using namespace test;

/// One request in each state, of two users in each of two classes.
class ReconfigureTest : public RequestTest {
protected:
    void fill()
    {
        start(2);
        paused = &hold(1, "bob", "paused");
        served = &hold(0, "ann", "served");
        hold(0, "eve", "next");
        queued = &hold(1, "cid", "queued");
        more = &hold(0, "ann", "more");
        EXPECT_FALSE(read(*paused, 3000));
        EXPECT_TRUE(read(*served, 600));
        EXPECT_EQ(granted(), "paused served next");
    }
    /// Serves everything to its end, in any order.
    void finish()
    {
        for (int rounds = 0; rounds < 50; ++rounds) {
            for (auto &o : owners) {
                if (o.served)
                    done(o);
            }
        }
        for (auto &o : owners)
            EXPECT_TRUE(o.ended) << o.name << " was lost";
        check();
    }
    void reconfigure()
    {
        s->reconfigure(config, clock.now());
        check();
    }

    TestOwner *paused = nullptr, *served = nullptr, *queued = nullptr, *more = nullptr;
};

TEST_F(ReconfigureTest, Weights)
{
    fill();
    config = s->config();
    config.classes[0].weight = 20;
    reconfigure();
    EXPECT_EQ(report("gold").weight, 20);
    const double before = report("gold").service;
    s->charge(*served->request, 4000, clock.now());
    EXPECT_DOUBLE_EQ(report("gold").service, before + 4000 / (20.0 * 2)) << "ann and eve";
    finish();
}

TEST_F(ReconfigureTest, AClassIsAddedAndTheOrderChanges)
{
    fill();
    config = s->config();
    config.classes = {{"silver", 3}, {"bronze", 1}, {"gold", 2}};
    config.defaultClass = 1;
    reconfigure();
    EXPECT_EQ(s->classIndex("silver"), 0u);
    EXPECT_EQ(s->classIndex("gold"), 2u);
    EXPECT_EQ(report("gold").inFlight, 2u);
    EXPECT_EQ(report("gold").bytes, 600u);
    EXPECT_EQ(report("bronze").paused, 1u);
    hold(0, "new", "silver's");
    EXPECT_EQ(report("silver").queued, 1u);
    EXPECT_EQ(report("silver").requests, 1u);
    EXPECT_EQ(s->trace(*owners.back().request, clock.now()).className, "silver");
    finish();
}

TEST_F(ReconfigureTest, APluginWhoseFileIsGoneStays)
{
    namespace fs = std::filesystem;
    const fs::path place = ::testing::TempDir() + "msfrs-reconfigure-" + std::to_string(getpid());
    fs::create_directory(place);
    for (const auto *const name : {"msf.so", "fifo.so", "drr.so", "droptail.so"})
        fs::copy_file(fs::path(PluginDir()) / name, place / name);
    config.pluginDir = place;
    config.admission = {"droptail", {{"limit", "50"}}};
    fill();
    fs::remove_all(place);
    config = s->config();
    config.classes = {{"bronze", 1}}; // requires a new engine
    config.defaultClass = 0;
    config.arbiter.settings = {{"ahead", "100"}};
    reconfigure();
    EXPECT_EQ(s->classes(clock.now()).size(), 1u);
    config.arbiter.name = "drr";
    config.arbiter.settings.clear();
    EXPECT_NE(refusal(config).find("no scheduler 'drr'"), std::string::npos);
    EXPECT_THROW(s->reconfigure(config, clock.now()), ConfigError);
    EXPECT_EQ(s->config().arbiter.name, "msf");
    finish();
}

/// msfrsctl doctor compares these with the rate. It once advised "set rate 6.01Mbit" on a link of 5 Mbit/s because of
/// counts from a wrong interface, for minutes after the interface had been corrected.
TEST_F(ReconfigureTest, WhatWasMeasuredBeforeIsNotReported)
{
    fill();
    config = s->config();
    const auto interval = [&] {
        clock.advance(config.window.interval);
        s->tick(clock.now());
        return s->window().history.size();
    };
    EXPECT_EQ(interval(), 1u);
    EXPECT_EQ(interval(), 2u);
    config.rate *= 2;
    reconfigure();
    EXPECT_EQ(s->window().history.size(), 0u);
    EXPECT_EQ(interval(), 1u);
    finish();
}

TEST_F(ReconfigureTest, AClassIsRemovedWithRequestsInEveryState)
{
    fill();
    hold(0, "ann", "one more of gold");
    config = s->config();
    config.classes = {{"bronze", 1}};
    config.defaultClass = 0;
    reconfigure();
    const auto bronze = report("bronze");
    EXPECT_EQ(bronze.inFlight, 2u) << "gold's two that were served";
    EXPECT_EQ(bronze.paused, 1u);
    EXPECT_EQ(bronze.queued, 3u);
    EXPECT_EQ(bronze.users, 4u) << "ann, eve, bob, cid";
    EXPECT_EQ(s->trace(*served->request, clock.now()).className, "bronze");
    EXPECT_EQ(s->trace(*served->request, clock.now()).bytes, 600);
    EXPECT_EQ(s->classIndex("gold"), UINT32_MAX);
    EXPECT_TRUE(read(*served, 100)) << "what was served goes on being served";
    finish();
}

TEST_F(ReconfigureTest, CountersSurviveARemovedClass)
{
    config.classes = {{"gold", 2}, {"silver", 1}, {"bronze", 1}, {"idle", 1}};
    for (const char *wake : {"virtual", "paper"}) {
        config.arbiter = {"msf", {{"wake", wake}, {"favour", "0"}}};
        start(2);
        auto &g = hold(0, "g", "g");
        auto &b = hold(2, "b", "b");
        hold(0, "g", "g waits");
        hold(2, "b", "b waits");
        s->charge(*g.request, 20'000, clock.now());
        s->charge(*b.request, 3'000, clock.now());
        const double gold = report("gold").service, bronze = report("bronze").service;
        EXPECT_EQ(gold, 10'000);
        EXPECT_EQ(bronze, 3'000);
        auto next = s->config();
        next.classes = {{"gold", 2}, {"bronze", 1}, {"idle", 1}};
        next.defaultClass = 1;
        s->reconfigure(next, clock.now());
        EXPECT_EQ(report("gold").service, gold) << wake;
        EXPECT_EQ(report("bronze").service, bronze) << wake;
        auto &woken = hold(2, "i", "woken");
        EXPECT_EQ(report("idle").service, wake == std::string("paper") ? bronze : 0) << "V was 0 at the latest pick";
        done(woken);
        done(g);
        EXPECT_EQ(granted(), "g b b waits") << wake << ": bronze is behind, and goes first as it would have";
        for (auto &o : owners) {
            if (!o.ended)
                done(o);
        }
        granted();
        owners.clear();
    }
}

TEST_F(ReconfigureTest, ANewClassStartsAtTheVirtualTime)
{
    fill();
    s->charge(*served->request, 1'000'000, clock.now());
    config = s->config();
    config.classes = {{"bronze", 1}, {"new", 1}};
    config.defaultClass = 0;
    reconfigure();
    EXPECT_LE(report("new").service, 3000) << "not ahead of those who wait";
    finish();
}

TEST_F(ReconfigureTest, TheArbiterChanges)
{
    fill();
    for (const auto &arbiter : {PluginChoice{"fifo", {}}, PluginChoice{TestModule("checker"), {}},
                                PluginChoice{"msf", {{"users", "fifo"}, {"wake", "paper"}}}}) {
        config = s->config();
        config.arbiter = arbiter;
        reconfigure();
        EXPECT_EQ(report("gold").inFlight, 2u);
        EXPECT_EQ(report("bronze").paused, 1u);
        EXPECT_EQ(report("gold").queued + report("bronze").queued, 2u);
    }
    finish();
    EXPECT_EQ(host.logged(0), "");
}

TEST_F(ReconfigureTest, UnderAnArbiterThatGoesByArrivalTheOrderOfArrivalStays)
{
    config.arbiter = {"fifo", {}};
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    EXPECT_FALSE(read(a, 1000));
    EXPECT_EQ(granted(), "a b");
    hold(0, "u", "c"); // a, paused, is queued before c
    config = s->config();
    config.classes.push_back({"extra", 1});
    config.arbiter = {TestModule("checker"), {}};
    reconfigure();
    done(b);
    EXPECT_EQ(granted(), "a") << "whoever came first among the waiting and the paused";
}

TEST_F(ReconfigureTest, TheQuantumChanges)
{
    fill();
    config = s->config();
    config.quantum = 0;
    reconfigure();
    EXPECT_TRUE(read(*served, 1'000'000)) << "none";
    config.quantum = 500;
    reconfigure();
    EXPECT_FALSE(read(*served, 500));
    config.quantum = 1'000'000;
    reconfigure();
    finish();
}

TEST_F(ReconfigureTest, LimitsChangeAndLoseNobody)
{
    fill();
    config = s->config();
    config.maxQueued = 1;
    config.maxPerUser = 1;
    reconfigure();
    EXPECT_EQ(hold(1, "zoe", "z").refusal, Refusal::Total) << "cid has no more for its weight";
    finish();
}

TEST_F(ReconfigureTest, AShorterLongestWaitIsKeptFromTheNextTickOn)
{
    fill();
    clock.advance(20 * Second);
    config = s->config();
    config.maxWait = 10 * Second;
    reconfigure();
    s->tick(clock.now());
    EXPECT_EQ(queued->expiries, 1);
    EXPECT_EQ(more->expiries, 1);
    EXPECT_EQ(paused->grants, 2) << "a paused response is granted instead";
    finish();
}

TEST_F(ReconfigureTest, TheWindowOpensAsItsParametersSay)
{
    start(1);
    hold(0, "u", "a");
    hold(0, "v", "b");
    config = s->config();
    config.window.reserve = 1;
    reconfigure();
    EXPECT_EQ(granted(), "a b") << "reconfigure() releases what may go";
    finish();
}

TEST_F(ReconfigureTest, TheInterfaceChanges)
{
    FakeInterface eth0("eth0"), eth1("eth1");
    eth0.bytes = 1'000'000;
    eth1.bytes = 5'000'000'000;
    config.interface = "eth0";
    config.window.interval = Second;
    start(0);
    pass(Second);
    EXPECT_TRUE(s->window().metered);
    config.interface = "eth1";
    reconfigure();
    eth1.bytes = *eth1.bytes + 250'000;
    clock.advance(Second);
    s->tick(clock.now());
    EXPECT_TRUE(s->window().metered);
    EXPECT_NEAR(s->window().utilisation, 0.25, 1e-6) << "no jump from one counter to the other";
    config.packetOverhead = 100;
    reconfigure();
    eth1.bytes = *eth1.bytes + 250'000;
    eth1.packets += 1000;
    clock.advance(Second);
    s->tick(clock.now());
    EXPECT_NEAR(s->window().utilisation, 0.35, 1e-6);
    config.packetOverhead = 0;
    config.interface = "";
    config.overhead = 0;
    reconfigure();
    s->countExcess(500'000);
    clock.advance(Second);
    s->tick(clock.now());
    EXPECT_FALSE(s->window().metered);
    EXPECT_NEAR(s->window().utilisation, 0.5, 1e-6);
    EXPECT_EQ(host.logged(0), "");
}

TEST_F(ReconfigureTest, AnInterfaceThatIsMissingIsSaidOnceAndPayloadCounts)
{
    config.interface = "eth7";
    config.overhead = 0;
    config.window.interval = Second;
    start(0);
    for (int n = 0; n < 3; ++n) {
        s->chargeExcess(0, "u", 100'000, clock.now());
        clock.advance(Second);
        s->tick(clock.now());
        EXPECT_NEAR(s->window().utilisation, 0.1, 1e-6);
    }
    EXPECT_EQ(host.logged(0), "interface eth7 has no receive counter; utilisation is taken from payload bytes\n");
}

TEST_F(ReconfigureTest, WhatIsInvalidChangesNothing)
{
    fill();
    const auto before = s->config();
    const auto service = report("gold").service;
    const auto tries = std::vector<std::function<void(RequestConfig &)>>{
        [](auto &c) { c.rate = 0; },
        [](auto &c) { c.classes = {}; },
        [](auto &c) { c.classes = {{"other", 1}}; c.defaultClass = 0; c.arbiter.name = "wfq"; },
        [](auto &c) { c.arbiter.settings = {{"ahead", "-1"}}; },
        [](auto &c) { c.classes[0].weight = 9; c.admission.name = "not-there"; },
        [](auto &c) { c.quantum = 5; c.arbiter = {TestModule("checker"), {{"refuse", "loudly"}}}; },
    };
    for (const auto &change : tries) {
        auto c = before;
        change(c);
        EXPECT_THROW(s->reconfigure(c, clock.now()), ConfigError);
        EXPECT_EQ(s->config().rate, before.rate);
        EXPECT_EQ(s->config().quantum, before.quantum);
        EXPECT_EQ(s->config().arbiter.name, "msf");
        EXPECT_EQ(report("gold").weight, 2);
        EXPECT_EQ(report("gold").service, service);
        EXPECT_EQ(report("gold").inFlight, 2u);
        check();
    }
    EXPECT_EQ(granted(), "");
    finish();
}

TEST_F(ReconfigureTest, AgainAndAgainUnderLoad)
{
    Random random(17);
    start(3);
    for (int n = 0; n < 2000 && !HasFailure(); ++n) {
        const auto classes = static_cast<uint64_t>(s->config().classes.size());
        hold(static_cast<uint32_t>(random.below(classes)), std::to_string(random.below(7)), "r");
        auto &o = owners[random.below(owners.size())];
        if (o.served)
            random.chance(0.5) ? static_cast<void>(read(o, random.between(0, 2500))) : done(o);
        else if (!o.ended && random.chance(0.3))
            done(o);
        if (random.chance(0.1)) {
            config = s->config();
            config.classes.clear();
            for (const char *name : {"gold", "silver", "bronze", "iron"}) {
                if (random.chance(0.7))
                    config.classes.push_back({name, static_cast<double>(random.between(1, 8))});
            }
            if (config.classes.empty())
                config.classes = {{"only", 1}};
            config.defaultClass = static_cast<uint32_t>(random.below(config.classes.size()));
            config.quantum = random.between(0, 2) * 700;
            const PluginChoice arbiters[] = {{"msf", {}}, {"fifo", {}}, {TestModule("checker"), {}}};
            config.arbiter = arbiters[random.below(3)];
            s->reconfigure(config, clock.now());
        }
        check();
    }
    finish();
    EXPECT_EQ(host.logged(0), "");
}

} // namespace
} // namespace msfrs
