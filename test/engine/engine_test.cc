// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Each call of the engine, with fifo or the checker, which logs nothing as long as the engine keeps the contract.
#include "engine/engine.h"

#include "support/audit.h"
#include "support/engine_driver.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class EngineTest : public ::testing::Test {
protected:
    explicit EngineTest(Driver::Setup setup = {}): d({TestModule("checker"), {}}, std::move(setup)) {}
    ~EngineTest() override { EXPECT_EQ(d.host.logged(0), "") << "the engine broke its contract with the plugins"; }

    Driver d;
};

TEST_F(EngineTest, OfferPickChargeDone)
{
    auto &gold = d.addClass("gold", 4);
    EXPECT_STREQ(gold.name, "gold");
    EXPECT_EQ(gold.index, 0u);
    auto *const t = d.arrive(gold, "alice", 1000);
    ASSERT_TRUE(t);
    EXPECT_EQ(gold.backlog, 1u);
    EXPECT_EQ(gold.fresh, 1u);
    EXPECT_EQ(gold.users, 1u);
    EXPECT_EQ(t->item->id, 1u);
    EXPECT_TRUE(d.engine().isQueued(*t->item));

    ASSERT_EQ(d.pick(), t);
    EXPECT_EQ(gold.backlog, 0u);
    EXPECT_EQ(gold.in_service, 1u);
    EXPECT_EQ(gold.users, 1u) << "a user with a response outstanding is active";
    EXPECT_FALSE(d.engine().isQueued(*t->item));
    d.charge(*t, 600);
    d.charge(*t, 400);
    EXPECT_EQ(t->item->attained, 1000);
    EXPECT_EQ(d.engine().flow(gold, "alice").bytes(), 1000u);
    d.done(*t);
    EXPECT_EQ(gold.users, 0u);
    EXPECT_EQ(d.pick(), nullptr);
}

TEST_F(EngineTest, UsersAreCountedOnceHoweverManyItemsTheyHave)
{
    auto &c = d.addClass("c", 1);
    auto *const a1 = d.arrive(c, "a", 1);
    auto *const a2 = d.arrive(c, "a", 1);
    auto *const b1 = d.arrive(c, "b", 1);
    EXPECT_EQ(c.users, 2u);
    EXPECT_EQ(d.pick(), a1);
    EXPECT_EQ(c.users, 2u);
    d.done(*a1);
    EXPECT_EQ(c.users, 2u) << "a still has one queued";
    d.remove(*a2);
    EXPECT_EQ(c.users, 1u) << "a client that goes away while queued takes its user along";
    EXPECT_EQ(d.pick(), b1);
    d.requeue(*b1);
    EXPECT_EQ(c.users, 1u);
    d.remove(*b1);
    EXPECT_EQ(c.users, 0u);
}

TEST_F(EngineTest, OneNameInTwoClassesIsTwoUsers)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    EXPECT_NE(&d.engine().flow(a, "x"), &d.engine().flow(b, "x"));
    EXPECT_EQ(&d.engine().flow(a, "x"), &d.engine().flow(a, "x"));
    EXPECT_EQ(d.engine().flow(a, "x").key, d.engine().flow(b, "x").key) << "keys may collide, and here they do";
    d.arrive(a, "x", 1);
    EXPECT_EQ(a.users, 1u);
    EXPECT_EQ(b.users, 0u);
}

TEST_F(EngineTest, FlowNamesMayHoldAnything)
{
    auto &c = d.addClass("c", 1);
    const std::string names[] = {"", std::string("a\0b", 3), std::string("a\0c", 3), "a", std::string(100'000, 'x')};
    for (const auto &name : names)
        d.arrive(c, name, 1);
    EXPECT_EQ(c.users, 5u);
    size_t seen = 0;
    d.engine().eachFlow(c, [&](const NamedFlow &f) { seen += std::count(std::begin(names), std::end(names), f.name()); });
    EXPECT_EQ(seen, 5u);
    d.drain();
}

TEST_F(EngineTest, RequeueMakesAContinuation)
{
    auto &c = d.addClass("c", 1);
    auto *const a = d.arrive(c, "a", 100);
    auto *const b = d.arrive(c, "b", 100);
    ASSERT_EQ(d.pick(), a);
    d.charge(*a, 60);
    const auto id = a->item->id, seq = a->item->seq;
    d.clock.advance(5 * Ms);
    d.requeue(*a);
    EXPECT_EQ(a->item->id, id) << "the order of first arrival stays";
    EXPECT_GT(a->item->seq, seq);
    EXPECT_EQ(a->item->enqueued, d.clock.now());
    EXPECT_EQ(a->item->attained, 60);
    EXPECT_EQ(c.backlog, 2u);
    EXPECT_EQ(c.fresh, 1u) << "it is not fresh any more";
    ASSERT_EQ(d.pick(), b);
    ASSERT_EQ(d.pick(), a);
    d.charge(*a, 40);
    d.done(*a);
    EXPECT_EQ(d.bytesOf(c), 100);
}

TEST_F(EngineTest, ExcessIsTheFlowsAndNoItems)
{
    auto &c = d.addClass("c", 1);
    auto &f = d.engine().flow(c, "a");
    d.engine().chargeFlow(f, 5000, d.clock.now());
    d.audit("chargeFlow");
    EXPECT_EQ(f.bytes(), 5000u);
    EXPECT_EQ(c.users, 0u);
}

TEST_F(EngineTest, WhatAnotherPartyServedCountsInTheOrderAlone)
{
    Driver msf({"msf", {}}, {});
    auto &c = msf.addClass("c", 1);
    auto &f = msf.engine().flow(c, "a");
    const double before = *c.service;
    msf.engine().chargeElsewhere(f, 5000, msf.clock.now());
    msf.audit("chargeElsewhere");
    EXPECT_EQ(f.bytes(), 0u);
    EXPECT_GT(*c.service, before);
    EXPECT_EQ(f.elsewhere, 0) << "traffic that nobody holds back";
    msf.clock.advance(Second);
    msf.engine().chargeElsewhere(f, 5000, msf.clock.now(), true);
    EXPECT_EQ(f.elsewhere, msf.clock.now());
}

TEST_F(EngineTest, AClassWithItemsCannotBeRemoved)
{
    auto &c = d.addClass("c", 1);
    auto *const t = d.arrive(c, "a", 1);
    EXPECT_FALSE(d.engine().removeClass(c)) << "queued";
    d.audit("removeClass");
    EXPECT_EQ(d.pick(), t);
    EXPECT_FALSE(d.engine().removeClass(c)) << "in service (law 4)";
    d.done(*t);
    EXPECT_TRUE(d.engine().removeClass(c));
    d.audit("removeClass");
    EXPECT_TRUE(d.engine().classes().empty());
}

TEST_F(EngineTest, AnInteriorClassCountsWhatIsBelowIt)
{
    auto *const staff = &d.addClass("staff", 3, MSFRS_INTERIOR);
    auto *const lab = &d.addClass("lab", 2, MSFRS_INTERIOR, staff);
    auto *const office = &d.addClass("office", 1, MSFRS_AGGREGATE, staff);
    auto *const room = &d.addClass("room", 1, 0, lab);
    EXPECT_EQ(room->parent, lab);
    EXPECT_EQ(office->flags, uint32_t(MSFRS_AGGREGATE));
    EXPECT_FALSE(staff->state) << "a scheduler that does not ask is not told of interior classes";
    auto *const a = d.arrive(*room, "a", 10);
    d.arrive(*room, "b", 20);
    d.arrive(*office, "a", 30);
    EXPECT_EQ(lab->users, 2u);
    EXPECT_EQ(staff->users, 3u);
    EXPECT_EQ(staff->backlog, 3u);
    ASSERT_EQ(d.pick(), a);
    EXPECT_EQ(lab->in_service, 1u);
    EXPECT_EQ(staff->in_service, 1u);
    EXPECT_FALSE(d.engine().removeClass(*lab)) << "there is a class below it";
    d.drain();
    EXPECT_EQ(staff->users, 0u);
    EXPECT_EQ(staff->in_service, 0u);
    EXPECT_FALSE(d.engine().removeClass(*staff));
    EXPECT_TRUE(d.engine().removeClass(*room));
    EXPECT_TRUE(d.engine().removeClass(*lab));
    d.engine().setWeight(*staff, 5);
    d.audit("removeClass");
}

TEST_F(EngineTest, AClassWithFlowsTakesNoClasses)
{
    auto &leaf = d.addClass("leaf", 1);
    try {
        d.engine().addClass("room", 1, 0, &leaf);
        FAIL() << "accepted";
    } catch (const ConfigError &error) {
        EXPECT_STREQ(error.what(), "class 'room' cannot be part of class 'leaf', which has flows of its own; "
                                   "allowed is an interior class");
    }
    EXPECT_EQ(d.engine().classes().size(), 1u);
}

TEST_F(EngineTest, AnIndexIsUsedAgainAndOthersStayWhereTheyAre)
{
    d.addClass("a", 1);
    auto *const b = &d.addClass("b", 1);
    d.addClass("c", 1);
    d.arrive(*b, "x", 1);
    d.engine().removeClass(*d.engine().classes()[0]);
    EXPECT_EQ(b->index, 1u);
    auto &again = d.addClass("d", 2);
    EXPECT_EQ(again.index, 0u);
    EXPECT_EQ(d.engine().classes().size(), 3u);
    d.drain();
}

TEST_F(EngineTest, WeightsChange)
{
    auto &c = d.addClass("c", 1);
    d.arrive(c, "a", 1);
    d.engine().setWeight(c, 7.5);
    EXPECT_EQ(c.weight, 7.5);
    EXPECT_EQ(d.engine().gauges(&c), (std::vector<double>{1, 7.5}));
    EXPECT_EQ(d.engine().gauges(nullptr), (std::vector<double>{1, -1}));
    d.drain();
}

TEST_F(EngineTest, AdoptedItemsAreNotJudgedAndMayBeInServiceAtOnce)
{
    auto &c = d.addClass("c", 1);
    const int64_t est[] = {0};
    auto *const served = d.engine().adopt(d.engine().flow(c, "a"), est, nullptr, 3, 500, true);
    EXPECT_FALSE(d.engine().isQueued(*served));
    EXPECT_EQ(served->attained, 500);
    auto *const queued = d.engine().adopt(d.engine().flow(c, "a"), est, nullptr, 3, 500, false);
    EXPECT_TRUE(d.engine().isQueued(*queued));
    EXPECT_EQ(c.fresh, 0u);
    EXPECT_EQ(AuditLaws(d.engine()), "");
    d.engine().done(*served, 4);
    d.engine().remove(*queued, 4, MSFRS_GONE);
    EXPECT_EQ(AuditLaws(d.engine()), "");
}

TEST_F(EngineTest, PicksACertainItem)
{
    auto &c = d.addClass("c", 1);
    d.arrive(c, "a", 1);
    auto *const second = d.arrive(c, "a", 1)->item;
    d.engine().pickThis(*second, 0);
    EXPECT_FALSE(d.engine().isQueued(*second));
    EXPECT_EQ(AuditLaws(d.engine()), "");
    d.engine().done(*second, 0);
}

TEST_F(EngineTest, EndsInAnOrderlyWayWithMuchQueued)
{
    auto &c = d.addClass("c", 1);
    for (int n = 0; n < 100; ++n)
        d.arrive(c, std::to_string(n % 7), 10);
    for (int n = 0; n < 5; ++n)
        d.pick();
} // ~Driver: items in service end, the engine frees the rest; the checker logs any that are left

TEST_F(EngineTest, APickWithoutABacklogDoesNotAskThePlugin)
{
    msfrs_time wakeAt = 77;
    EXPECT_EQ(d.engine().pick(0, MSFRS_PICK_ANY, wakeAt), nullptr);
    EXPECT_EQ(wakeAt, 77);
    auto &c = d.addClass("c", 1);
    d.arrive(c, "a", 1);
    EXPECT_EQ(d.pick(MSFRS_PICK_FRESH), nullptr) << "the checker has no reserve";
}

TEST(EngineForget, FreesFlowsThatHaveBeenIdleAndKeepsTheOthers)
{
    Driver d({"fifo", {}});
    auto &c = d.addClass("c", 1);
    const auto flows = [&] {
        std::string names;
        d.engine().eachFlow(c, [&](const NamedFlow &f) { names += f.name(); });
        std::sort(names.begin(), names.end());
        return names;
    };
    d.clock.set(100 * Second);
    d.finish(*(d.arrive(c, "a", 1), d.pick()));
    d.clock.set(150 * Second);
    d.finish(*(d.arrive(c, "b", 1), d.pick()));
    d.arrive(c, "c", 1); // stays queued
    d.clock.set(160 * Second);
    EXPECT_EQ(flows(), "abc");
    d.engine().forgetIdleFlows(100 * Second, 0);
    EXPECT_EQ(flows(), "abc") << "a has been idle since then, not since before";
    d.engine().forgetIdleFlows(101 * Second, 0);
    d.audit("forgetIdleFlows");
    EXPECT_EQ(flows(), "bc");
    d.engine().forgetIdleFlows(1000 * Second, 0);
    EXPECT_EQ(flows(), "c") << "a flow with an item is never idle";
    d.clock.set(200 * Second);
    d.engine().chargeFlow(d.engine().flow(c, "x"), 10, d.clock.now());
    d.engine().forgetIdleFlows(190 * Second, 0);
    EXPECT_EQ(flows(), "cx") << "traffic that no item caused is traffic";
    d.drain();
}

TEST(EngineRefusal, NamesThePluginAndItsReason)
{
    const auto refusal = [](const std::string &text, const Engine::Cost cost, const std::string &aqm = "") {
        Driver::Setup setup;
        setup.cost = cost;
        if (!aqm.empty())
            setup.aqm = ParseVariant(aqm, MSFRS_AQM);
        try {
            Driver d(ParseVariant(text), setup);
        } catch (const ConfigError &error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    const auto checker = TestModule("checker");
    EXPECT_EQ(refusal(checker + " refuse=loudly", Engine::Cost::Measured), "checker: this is one of those days");
    EXPECT_EQ(refusal(checker + " refuse=silently", Engine::Cost::Measured),
              "checker: refuses to start without a reason");
    EXPECT_EQ(refusal(TestModule("checker-cost"), Engine::Cost::Measured),
              "scheduler checker must know the cost of an item before it is served, which is unknown for a request; "
              "it can schedule packets");
    EXPECT_EQ(refusal(TestModule("checker-cost"), Engine::Cost::Exact), "accepted");
    // The scheduler has been started when the AQM refuses, and must be ended (checked by the sanitizers).
    EXPECT_EQ(refusal(checker, Engine::Cost::Measured, TestModule("judge") + " refuse=on"),
              "judge: refuses to start without a reason");
}

TEST(EnginePace, APluginThatWaitsSaysUntilWhen)
{
    Driver d(ParseVariant(TestModule("checker") + " pace=1000"));
    auto &c = d.addClass("c", 1);
    d.clock.set(Second);
    d.arrive(c, "a", 1);
    d.arrive(c, "a", 1);
    EXPECT_TRUE(d.pick());
    EXPECT_EQ(d.pick(), nullptr);
    EXPECT_EQ(d.wakeAt(), Second + 1000);
    d.clock.set(d.wakeAt());
    EXPECT_TRUE(d.pick());
    EXPECT_EQ(d.host.logged(0), "");
}

} // namespace
} // namespace msfrs
