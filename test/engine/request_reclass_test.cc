// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Requests that are moved to another class in any state. RequestTest audits every step.
#include "support/audit.h"
#include "support/requests.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class ReclassTest : public RequestTest {
protected:
    void reclass(TestOwner &o, const uint32_t cls)
    {
        s->reclass(*o.request, cls, clock.now());
        check();
    }
    std::string classOf(const TestOwner &o) { return s->trace(*o.request, clock.now()).className; }
    /// Serves everything to its end.
    void finish()
    {
        for (int rounds = 0; rounds < 2000; ++rounds) {
            for (auto &o : owners) {
                if (o.served || (o.resting && !o.ended))
                    done(o);
            }
        }
        for (auto &o : owners)
            EXPECT_TRUE(o.ended) << o.name << " starved";
        EXPECT_EQ(s->window().outstanding, 0);
        EXPECT_EQ(AuditLaws(*s), "");
    }
};

TEST_F(ReclassTest, AServedOneKeepsItsPlaceAndIsChargedWhereItIs)
{
    start(1);
    auto &a = hold(0, "ann", "a");
    hold(0, "ann", "waits");
    EXPECT_TRUE(read(a, 600));
    reclass(a, 1);
    EXPECT_EQ(classOf(a), "bronze");
    EXPECT_EQ(report("gold").inFlight, 0u);
    EXPECT_EQ(report("bronze").inFlight, 1u);
    EXPECT_EQ(s->window().outstanding, 1) << "its place is its own";
    EXPECT_EQ(granted(), "a") << "once";
    EXPECT_FALSE(read(a, 400)) << "the rest of its quantum, and no new one";
    EXPECT_EQ(report("gold").bytes, 600u);
    EXPECT_EQ(report("bronze").bytes, 400u);
    EXPECT_EQ(report("bronze").paused, 1u);
    EXPECT_EQ(s->trace(*a.request, clock.now()).bytes, 1000);
    EXPECT_EQ(granted(), "waits");
    finish();
}

TEST_F(ReclassTest, WhatWasChargedInAdvanceGoesAlong)
{
    start(1);
    auto &a = hold(0, "ann", "a");
    hold(1, "bob", "b");
    EXPECT_FALSE(read(a, 3000));
    done(owners[1]);
    EXPECT_EQ(granted(), "a b a") << "its second quantum: 1000 bytes were charged in advance";
    EXPECT_DOUBLE_EQ(report("gold").service, (3000 + 1000) / 2.0);
    const double bronze = report("bronze").service;
    EXPECT_TRUE(read(a, 300));
    reclass(a, 1);
    EXPECT_DOUBLE_EQ(report("gold").service, (3000 + 300) / 2.0) << "what it used";
    EXPECT_GE(report("bronze").service, bronze + 700) << "and what it has not used yet";
    const double before = report("bronze").service;
    EXPECT_TRUE(read(a, 600));
    EXPECT_DOUBLE_EQ(report("bronze").service, before) << "it had paid for that";
    done(a);
    EXPECT_DOUBLE_EQ(report("bronze").service, before - 100) << "given back where it was charged";
}

TEST_F(ReclassTest, EveryState)
{
    start(2);
    auto &resting = hold(0, "ann", "resting");
    rest(resting);
    auto &paused = hold(0, "ann", "paused");
    auto &served = hold(0, "ann", "served");
    hold(1, "bob", "bob's");
    auto &queued = hold(0, "ann", "queued");
    auto &refused = hold(0, "eve", "refused");
    refused.onExpired = [] {};
    EXPECT_FALSE(read(paused, 3000));
    EXPECT_EQ(granted(), "resting paused served bob's");
    clock.advance(10 * Second);
    for (auto *const o : {&resting, &paused, &served, &queued, &refused})
        reclass(*o, 1);
    const auto gold = report("gold"), bronze = report("bronze");
    EXPECT_EQ(gold.users + gold.queued + gold.paused + gold.inFlight + gold.resting, 0u);
    EXPECT_EQ(bronze.users, 3u) << "ann, bob, eve";
    EXPECT_EQ(bronze.queued, 2u);
    EXPECT_EQ(bronze.paused, 1u);
    EXPECT_EQ(bronze.inFlight, 2u);
    EXPECT_EQ(bronze.resting, 1u);
    EXPECT_EQ(gold.requests, 5u) << "where they came";
    EXPECT_EQ(s->trace(*queued.request, clock.now()).totalWait, 10 * Second) << "its wait goes on";
    const auto left = config.maxWait - 10 * Second;
    pass(left - Ms);
    EXPECT_EQ(refused.expiries, 0);
    pass(Ms);
    EXPECT_EQ(refused.expiries, 1) << "at its time";
    EXPECT_EQ(paused.grants, 2);
    reclass(refused, 0);
    EXPECT_EQ(classOf(refused), "gold") << "for the log alone";
    EXPECT_EQ(report("gold").users, 0u);
    done(refused);
    again(resting);
    EXPECT_EQ(report("bronze").exchanges, 1u) << "whose user is bronze's now";
    finish();
}

TEST_F(ReclassTest, ToItsOwnClassNothingHappens)
{
    start(1);
    auto &a = hold(0, "ann", "a");
    hold(0, "ann", "b");
    const auto before = report("gold").service;
    for (auto &o : owners)
        reclass(o, 0);
    EXPECT_EQ(report("gold").service, before);
    done(a);
    EXPECT_EQ(granted(), "a b");
    finish();
}

TEST_F(ReclassTest, ThoseOfAUserKeepTheirOrder)
{
    for (const char *const arbiter : Built({"msf", "drr", "fq", "msfq"})) {
        config.arbiter = {arbiter, {}};
        owners.clear();
        start(1);
        auto &first = hold(1, "bob", "first");
        for (const auto *const name : {"a", "b", "c", "d"})
            hold(0, "ann", name);
        for (auto &o : owners) {
            if (&o != &first)
                reclass(o, 1);
        }
        for (auto &o : owners)
            done(o); // each is granted when its predecessor ends
        EXPECT_EQ(granted(), "first a b c d") << arbiter;
    }
}

/// The purpose: a user gets another share during a download, and takes neither lag nor debt along.
TEST_F(ReclassTest, TheShareIsThatOfTheOtherClassFromThenOn)
{
    config.classes = {{"gold", 8}, {"bronze", 1}};
    config.arbiter = {"msf", {{"favour", "0"}, {"lag", "0"}, {"ahead", "0"}, {"order", "attained"}}};
    start(1);
    auto &a = hold(0, "ann", "a"), &b = hold(1, "bob", "b"), &c = hold(0, "cid", "c");
    const auto share = [&] { // of ann and bob, over 900 turns
        int64_t had[3] = {};
        for (int turn = 0; turn < 900; ++turn) {
            TestOwner *const all[] = {&a, &b, &c};
            for (size_t n = 0; n < 3; ++n) {
                if (!all[n]->served)
                    continue;
                had[n] += 1000;
                read(*all[n], 1000);
                break;
            }
            clock.advance(Ms);
        }
        return std::vector<double>{static_cast<double>(had[0]) / 900e3, static_cast<double>(had[1]) / 900e3};
    };
    share();
    auto now = share();
    EXPECT_NEAR(now[0], 8.0 / 17, 0.03);
    EXPECT_NEAR(now[1], 1.0 / 17, 0.03);
    reclass(a, 1);
    now = share();
    EXPECT_NEAR(now[0], 1.0 / 10, 0.03) << "ann is one of bronze's";
    EXPECT_NEAR(now[1], 1.0 / 10, 0.03) << "bob is not starved by who came";
    reclass(a, 0);
    now = share();
    EXPECT_NEAR(now[0], 8.0 / 17, 0.05);
    EXPECT_NEAR(now[1], 1.0 / 17, 0.03);
    finish();
}

TEST_F(ReclassTest, FromInsideGrantedToo)
{
    start(1);
    auto &a = hold(0, "ann", "a");
    auto &b = hold(0, "ann", "b");
    auto &c = hold(0, "ann", "c");
    b.onGranted = [&] {
        s->reclass(*b.request, 1, clock.now());
        s->reclass(*c.request, 1, clock.now());
    };
    done(a);
    EXPECT_EQ(granted(), "a b");
    EXPECT_EQ(report("bronze").inFlight, 1u);
    EXPECT_EQ(report("bronze").queued, 1u);
    finish();
}

/// For every arbiter: nothing is lost, nothing starves, and every count is right after every step.
TEST_F(ReclassTest, AgainAndAgainUnderLoad)
{
    config.classes = {{"gold", 4}, {"silver", 2}, {"bronze", 1}};
    for (const auto &arbiter : {PluginChoice{"msf", {}}, PluginChoice{"msf", {{"wake", "paper"}, {"users", "fifo"}}},
                                PluginChoice{"msf", {{"order", "attained"}}}, PluginChoice{"fifo", {}},
                                PluginChoice{"drr", {}}, PluginChoice{"fq", {}}, PluginChoice{"sfq", {}},
                                PluginChoice{"msfq", {}}, PluginChoice{TestModule("checker"), {}}}) {
        SCOPED_TRACE(arbiter.name + " " + PrintSettings(arbiter.settings));
        if (arbiter.name[0] != '/' && !IsBuilt(arbiter.name))
            continue;
        config.arbiter = arbiter;
        for (uint64_t seed = 1; seed <= 3 && !HasFailure(); ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed));
            Random random(seed);
            owners.clear();
            start(3);
            std::vector<TestOwner *> live;
            for (int n = 0; n < 1500 && !HasFailure(); ++n) {
                clock.advance(random.between(0, 5 * Ms));
                if (live.size() < 40 || random.chance(0.2))
                    live.push_back(&hold(static_cast<uint32_t>(random.below(3)), std::to_string(random.below(7)), "r"));
                auto &o = *live[random.below(live.size())];
                if (random.chance(0.3) && !o.ended)
                    s->reclass(*o.request, static_cast<uint32_t>(random.below(3)), clock.now());
                else if (o.resting)
                    again(o);
                else if (o.served && random.chance(0.1))
                    rest(o);
                else if (o.served)
                    random.chance(0.7) ? static_cast<void>(read(o, random.between(0, 2500))) : done(o);
                else if (!o.ended && random.chance(0.1))
                    done(o);
                live.erase(std::remove_if(live.begin(), live.end(), [](const TestOwner *x) { return x->ended; }),
                           live.end());
                check();
            }
            finish();
        }
    }
    EXPECT_EQ(host.logged(0), "");
}

} // namespace
} // namespace msfrs
