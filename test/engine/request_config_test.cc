// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Refused configurations with their exact words, and reconfiguration with requests in every state.
#include "support/requests.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace msfrs {
namespace {

using namespace test;

class ConfigTest : public RequestTest {
protected:
    template <class Change>
    std::string refused(const Change &change)
    {
        auto c = config;
        change(c);
        return refusal(c);
    }
};

TEST_F(ConfigTest, TellsTheValueAndWhatIsAllowed)
{
    const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
    EXPECT_EQ(refusal(config), "accepted");
    EXPECT_EQ(refused([](auto &c) { c.rate = 0; }), "link rate 0 is not allowed: wanted is a rate above 0 bit/s");
    EXPECT_EQ(refused([](auto &c) { c.rate = -1; }), "link rate -1 is not allowed: wanted is a rate above 0 bit/s");
    EXPECT_EQ(refused([=](auto &c) { c.rate = nan; }), "link rate nan is not allowed: wanted is a rate above 0 bit/s");
    EXPECT_EQ(refused([=](auto &c) { c.rate = inf; }), "link rate inf is not allowed: wanted is a rate above 0 bit/s");
    EXPECT_EQ(refused([](auto &c) { c.overhead = 1.5; }),
              "link overhead 1.5 is not allowed: wanted is a share from 0 to 1");
    EXPECT_EQ(refused([](auto &c) { c.rtt = 0; }), "round trip time 0 is not allowed: wanted is a time above 0 ns");
    for (double target : {0.0, 1.0, nan}) {
        EXPECT_EQ(refused([=](auto &c) { c.window.target = target; }).find("window target "), 0u);
    }
    EXPECT_EQ(refused([](auto &c) { c.window.target = 98; }),
              "window target 98 is not allowed: wanted is a share above 0 and below 1");
    EXPECT_EQ(refused([](auto &c) { c.window.interval = 0; }),
              "window interval 0 is not allowed: wanted is a time above 0 ns");
    EXPECT_EQ(refused([](auto &c) { c.window.growth = 1; }), "window growth 1 is not allowed: wanted is a factor above 1");
    EXPECT_EQ(refused([](auto &c) { c.window.reserve = -0.1; }),
              "window reserve -0.1 is not allowed: wanted is a share of 0 or more");
    EXPECT_EQ(refused([](auto &c) { c.quantum = -1; }), "quantum -1 is not allowed: wanted is 0 (none) or more bytes");
    EXPECT_EQ(refused([](auto &c) { c.maxWait = 0; }), "longest wait 0 is not allowed: wanted is a time above 0 ns");
    EXPECT_EQ(refused([](auto &c) { c.maxPerUser = 0; }),
              "queued requests per user 0 is not allowed: wanted is 1 or more");
    EXPECT_EQ(refused([](auto &c) { c.maxQueued = 0; }), "queued requests in all 0 is not allowed: wanted is 1 or more");
}

TEST_F(ConfigTest, Classes)
{
    EXPECT_EQ(refused([](auto &c) { c.classes.clear(); }),
              "there is no class: wanted is at least one, and one of them the default");
    EXPECT_EQ(refused([](auto &c) { c.defaultClass = 2; }),
              "default class number 2 is not allowed: wanted is one of those that there are");
    EXPECT_EQ(refused([](auto &c) { c.classes[1].weight = 0; }),
              "class bronze weight 0 is not allowed: wanted is a number above 0");
    EXPECT_EQ(refused([](auto &c) { c.classes[0].weight = -2; }),
              "class gold weight -2 is not allowed: wanted is a number above 0");
    EXPECT_EQ(refused([](auto &c) { c.classes[1].name = "gold"; }), "class gold is there twice");
    EXPECT_EQ(refused([](auto &c) { c.classes[1].name = ""; }), "class number 2 has no name");
}

TEST_F(ConfigTest, Plugins)
{
    EXPECT_EQ(refused([](auto &c) { c.arbiter.settings = {{"wake", "later"}}; }),
              "msf parameter wake=later is not allowed: wanted is one of virtual paper");
    EXPECT_EQ(refused([](auto &c) { c.admission.settings = {{"limit", "5"}}; }),
              "admission none takes no parameters, found limit=5");
    EXPECT_EQ(refused([](auto &c) { c.arbiter.name = "wfq"; }).find("no scheduler 'wfq': "), 0u);
    EXPECT_EQ(refused([](auto &c) { c.admission.name = "red-ish"; }).find("no AQM 'red-ish': "), 0u);
    EXPECT_EQ(refused([](auto &c) { c.admission.name = PluginDir() + "/msf.so"; }),
              "plugin " + PluginDir() + "/msf.so is a scheduler, wanted is an AQM");
    EXPECT_EQ(refused([](auto &c) { c.arbiter.name = TestModule("checker-cost"); }).find("scheduler checker must know"), 0u);
}

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
    /// Everything is served to its end, whatever the order.
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
        config.arbiter = {"msf", {{"wake", wake}}};
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
    hold(0, "u", "c"); // a, paused, stands before c
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
    EXPECT_EQ(hold(0, "zoe", "z").refusal, Refusal::Total);
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

TEST_F(ReconfigureTest, TheWindowOpensWhenTheRateControllerIsToldTo)
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
    config.interface = "";
    config.overhead = 0;
    reconfigure();
    s->chargeExcess(0, "u", 500'000, clock.now());
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

/// Admission by an AQM.
class AdmissionTest : public RequestTest {
protected:
    void judge(const std::string &every, const std::string &verdict)
    {
        config.admission = {TestModule("judge"), {{"every", every}, {"verdict", verdict}}};
    }
    ~AdmissionTest() override { EXPECT_EQ(host.logged(0), ""); }
};

TEST_F(AdmissionTest, RefusesWhatTheAqmDrops)
{
    judge("2", "drop");
    start(1);
    hold(0, "u", "a");
    EXPECT_EQ(hold(0, "u", "b").refusal, Refusal::Admission) << "the second arrival";
    EXPECT_EQ(report("gold").refusedAdmission, 1u);
    EXPECT_STREQ(RefusalText(Refusal::Admission), "the admission control dropped the request");
    EXPECT_EQ(report("gold").users, 1u);
}

TEST_F(AdmissionTest, AVictimIsToldAndMayEndLater)
{
    judge("3", "both");
    start(1);
    hold(0, "u", "served");
    auto &victim = hold(1, "v", "victim");
    victim.onExpired = [] {};
    EXPECT_EQ(hold(1, "w", "x").refusal, Refusal::Admission);
    EXPECT_EQ(victim.expiries, 1) << "the only one that was queued";
    EXPECT_EQ(report("bronze").refusedAdmission, 2u);
    EXPECT_EQ(report("bronze").users, 0u);
    check();
    hold(1, "w", "y");
    done(victim);
    done(owners[0]);
    EXPECT_EQ(granted(), "served y");
}

TEST_F(AdmissionTest, AVictimMayEndAndHoldAgainAtOnce)
{
    judge("3", "both");
    start(1);
    hold(0, "u", "served");
    auto &victim = hold(1, "v", "victim");
    victim.onExpired = [this, &victim] {
        done(victim);
        hold(1, "v", "again");
    };
    hold(1, "w", "x");
    EXPECT_EQ(victim.expiries, 1);
    EXPECT_EQ(report("bronze").queued, 1u);
    check();
}

TEST_F(AdmissionTest, APausedResponseIsNoVictim)
{
    judge("3", "both");
    start(1);
    auto &a = hold(0, "u", "a");
    hold(1, "v", "b");
    EXPECT_FALSE(read(a, 5000));
    EXPECT_EQ(granted(), "a b");
    EXPECT_EQ(hold(1, "w", "x").refusal, Refusal::Admission);
    EXPECT_EQ(a.expiries, 0) << "half of it is in the client's hands";
    EXPECT_EQ(report("gold").paused, 1u);
    done(owners[1]);
    EXPECT_EQ(granted(), "a");
}

TEST_F(AdmissionTest, Storm)
{
    judge("4", "both");
    config.maxWait = 5 * Second;
    start(2);
    Random random(23);
    for (int n = 0; n < 3000 && !HasFailure(); ++n) {
        hold(static_cast<uint32_t>(random.below(2)), std::to_string(random.below(9)), "r");
        auto &o = owners[random.below(owners.size())];
        if (o.served)
            random.chance(0.6) ? static_cast<void>(read(o, random.between(0, 2500))) : done(o);
        clock.advance(random.between(0, 20 * Ms));
        if (random.chance(0.1))
            s->tick(clock.now());
        check();
    }
    int told = 0;
    for (const auto &o : owners)
        told += o.expiries;
    EXPECT_GT(told, 0);
}

} // namespace
} // namespace msfrs
