// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The promises of plugin/msfrs_plugin.h and docs/design/plugins.md about calls: which may be missing, which plugin
/// learns of a drop and with what reason, and how an instance ends.
#include "engine/engine.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

/// Calls of both plugins below, in order.
std::vector<std::string> &Calls()
{
    static std::vector<std::string> calls;
    return calls;
}

void Note(const std::string &call) { Calls().push_back(call); }

std::string Left(const char *const who, const msfrs_item &i, const msfrs_reason why, const msfrs_time now)
{
    return who + std::string(" removed ") + std::to_string(i.id) + " " + std::to_string(why) + " at " +
           std::to_string(now);
}

/// Picks nothing. `whole`: whether operations that may be NULL are set.
msfrs_plugin Scheduler(const bool whole)
{
    static msfrs_sched_ops all{}, least{};
    least.enqueued = [](void *, msfrs_item *i, msfrs_time) { Note("enqueued " + std::to_string(i->id)); };
    least.pick = [](void *, msfrs_time now, msfrs_pick, msfrs_time *wakeAt) -> msfrs_item * {
        *wakeAt = now + 1;
        return nullptr;
    };
    least.picked = [](void *, msfrs_item *, msfrs_time) {};
    least.removed = [](void *, msfrs_item *i, msfrs_time now, msfrs_reason why) { Note(Left("sched", *i, why, now)); };
    all = least;
    all.fini = [](void *) { Note("sched fini"); };
    all.class_removed = [](void *, msfrs_class *c) { Note(std::string("sched class_removed ") + c->name); };
    all.flow_removed = [](void *, msfrs_flow *f) { Note(std::string("sched flow_removed of ") + f->cls->name); };
    return {MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(msfrs_plugin), MSFRS_SCHED, 0, "noting", "",
            "", 0, 0, 0, 0, nullptr, 0, nullptr, 0, whole ? &all : &least, nullptr, sizeof(all)};
}

/// From the third item on, the first queued one is dropped together with the arriving one.
msfrs_plugin Aqm(const bool whole)
{
    static msfrs_aqm_ops all{}, least{};
    least.admit = [](void *, msfrs_item *i, const msfrs_queue_view *q, msfrs_time, msfrs_item **victim) {
        Note("admit " + std::to_string(i->id));
        if (q->length < 2)
            return MSFRS_ACCEPT;
        *victim = q->nth(q->ctx, 0);
        return MSFRS_DROP_BOTH;
    };
    all = least;
    all.fini = [](void *) { Note("aqm fini"); };
    all.class_removed = [](void *, msfrs_class *c) { Note(std::string("aqm class_removed ") + c->name); };
    all.flow_removed = [](void *, msfrs_flow *f) { Note(std::string("aqm flow_removed of ") + f->cls->name); };
    all.removed = [](void *, msfrs_item *i, const msfrs_queue_view *, msfrs_time now, msfrs_reason why) {
        Note(Left("aqm", *i, why, now));
    };
    return {MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(msfrs_plugin), MSFRS_AQM, MSFRS_DROPS_QUEUED,
            "judging", "", "", 0, 0, 0, 0, nullptr, 0, nullptr, 0, nullptr, whole ? &all : &least, sizeof(all)};
}

class Box {
public:
    explicit Box(const bool whole = true, const uint32_t limit = 0): sched_(Scheduler(whole)), aqm_(Aqm(whole))
    {
        Calls().clear();
        engine = std::make_unique<Engine>(Engine::Part{WrapPlugin(sched_), {}}, Engine::Part{WrapPlugin(aqm_), {}},
                                          Engine::Cost::Exact, 1, limit,
                                          EngineHost{[](int, const std::string &) {}, [] { return uint64_t(1); }});
    }
    Engine::Offer offer(msfrs_class &c, const msfrs_time now)
    {
        const int64_t est[MSFRS_RESOURCES] = {1};
        msfrs_item *item;
        return engine->offer(engine->flow(c, "f"), est, nullptr, now, item);
    }

private:
    msfrs_plugin sched_, aqm_;

public:
    std::unique_ptr<Engine> engine;
};

using Lines = std::vector<std::string>;

TEST(Calls, AVictimLeavesAsDroppedAfterAdmitAndOfTheArrivingItemNothingIsHeard)
{
    Box box;
    auto &c = *box.engine->addClass("c", 1);
    for (int n = 0; n < 3; ++n)
        box.offer(c, 10 + n);
    EXPECT_EQ(Calls(), (Lines{"admit 1", "enqueued 1", "admit 2", "enqueued 2", "admit 3", "sched removed 1 2 at 12",
                              "aqm removed 1 2 at 12"}));
    static_assert(MSFRS_DROPPED == 2);
}

TEST(Calls, AtTheHostsLimitTheAqmIsNotAsked)
{
    Box box(true, 1);
    auto &c = *box.engine->addClass("c", 1);
    EXPECT_EQ(box.offer(c, 1), Engine::Offer::Queued);
    EXPECT_EQ(box.offer(c, 2), Engine::Offer::Dropped);
    EXPECT_EQ(Calls(), (Lines{"admit 1", "enqueued 1"}));
}

TEST(Calls, TheEndIsInTheOrderThatTheHeaderSays)
{
    Box box;
    auto &first = *box.engine->addClass("first", 1), &second = *box.engine->addClass("second", 1);
    box.offer(second, 7);
    box.offer(first, 8);
    Calls().clear();
    box.engine.reset();
    EXPECT_EQ(Calls(), (Lines{
        "sched removed 2 4 at 8", "aqm removed 2 4 at 8", "sched removed 1 4 at 8", "aqm removed 1 4 at 8",
        "sched flow_removed of second", "aqm flow_removed of second", "sched class_removed second",
        "aqm class_removed second", "sched flow_removed of first", "aqm flow_removed of first",
        "sched class_removed first", "aqm class_removed first", "sched fini", "aqm fini"}));
    static_assert(MSFRS_SHUTDOWN == 4);
}

TEST(Calls, WhatMayBeMissingIsNotMissed)
{
    Box box(false);
    auto &c = *box.engine->addClass("c", 1);
    for (int n = 0; n < 4; ++n)
        box.offer(c, n);
    box.engine->setWeight(c, 2);
    msfrs_time wakeAt = 0;
    EXPECT_FALSE(box.engine->pick(5, MSFRS_PICK_ANY, wakeAt));
    auto &flow = box.engine->flow(c, "f");
    box.engine->chargeFlow(flow, 1, 5);
    auto *const item = flow.head;
    box.engine->pickThis(*item, 6);
    box.engine->done(*item, 7);
    while (flow.head)
        box.engine->remove(*flow.head, 7, MSFRS_GONE);
    EXPECT_TRUE(box.engine->gauges(nullptr).empty() && box.engine->aqmGauges(nullptr).empty());
    box.engine->forgetIdleFlows(100, 0);
    EXPECT_TRUE(box.engine->removeClass(c));
    box.engine.reset();
}

} // namespace
} // namespace msfrs::test
