// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Plugins with invalid answers (test/plugin/wrong.cc): the engine reports which and what, keeps its laws, and can be
/// freed; so can a request scheduler, whose host then continues without it.
#include "support/audit.h"
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

Variant Wrong(const std::string &module, const std::string &settings, const msfrs_kind kind)
{
    return ParseVariant(TestModule(module) + " " + settings, kind);
}

/// The engine's message while two items are served, one is queued again, and two more arrive and are picked.
std::string Said(const Variant &sched, const Engine::Part &aqm)
{
    Host host;
    Engine engine(sched.load(), aqm, Engine::Cost::Measured, 1, 0, host.engine());
    auto &flow = engine.flow(*engine.addClass("c", 1), "f");
    const int64_t est[MSFRS_RESOURCES] = {1};
    msfrs_item *items[4] = {};
    msfrs_time wakeAt = 0;
    std::string said = "nothing";
    try {
        for (int n = 0; n < 2; ++n) {
            engine.offer(flow, est, nullptr, 1, items[n]);
            engine.pick(2, MSFRS_PICK_ANY, wakeAt);
        }
        engine.charge(*items[0], 0, 10, 3);
        engine.requeue(*items[0], est, 3);
        engine.pick(4, MSFRS_PICK_FRESH, wakeAt);
        for (int n = 2; n < 4; ++n) {
            engine.offer(flow, est, nullptr, 5, items[n]);
            engine.pick(6, MSFRS_PICK_ANY, wakeAt);
        }
    } catch (const PluginError &error) {
        said = error.what();
    }
    EXPECT_EQ(AuditLaws(engine), "") << said;
    for (auto *const i : items) {
        if (i && !engine.isQueued(*i))
            engine.done(*i, 7);
    }
    EXPECT_EQ(engine.totals().inService.items, 0u) << said;
    return said;
}

std::string SaidOfSched(const std::string &settings)
{
    return Said(Wrong("wrong-sched", settings, MSFRS_SCHED), {});
}
std::string SaidOfAqm(const std::string &settings)
{
    return Said(ParseVariant("fifo"), Wrong("wrong-aqm", settings, MSFRS_AQM).load());
}

TEST(WrongPlugin, IsNamedWithItsAnswer)
{
    EXPECT_EQ(SaidOfSched("after=100 fault=served"), "nothing");
    EXPECT_EQ(SaidOfSched("after=2 fault=served"),
              "scheduler wrong-sched is wrong: pick named an item that is not queued");
    EXPECT_EQ(SaidOfSched("fault=continued"),
              "scheduler wrong-sched is wrong: pick named an item that has had service, asked for a fresh one");
    for (const std::string fault : {"silence", "past"}) {
        EXPECT_EQ(SaidOfSched("after=1 fault=" + fault),
                  "scheduler wrong-sched is wrong: pick named neither an item, of a backlog, nor a time to come");
    }
    EXPECT_EQ(SaidOfAqm("after=100 fault=turn"), "nothing");
    EXPECT_EQ(SaidOfAqm("after=2 fault=victim"), "AQM wrong-aqm is wrong: admit named a victim that is not queued");
    EXPECT_EQ(SaidOfAqm("after=2 fault=verdict"),
              "AQM wrong-aqm is wrong: admit answered with verdict 17; allowed are 0 (ACCEPT) to 3 (DROP_BOTH)");
    EXPECT_EQ(SaidOfAqm("after=2 fault=turn"), "AQM wrong-aqm is wrong: dequeued answered with verdict -1; allowed are 0 "
                                               "(ACCEPT), 1 (DROP) and 2 (MARK)");
    EXPECT_EQ(SaidOfAqm("after=1 fault=turn-both"), "AQM wrong-aqm is wrong: dequeued answered with verdict 3; allowed "
                                                    "are 0 (ACCEPT), 1 (DROP) and 2 (MARK)");
}

class NullOwner final : public RequestOwner {
    void granted() override {}
    void expired() override {}
};

TEST(WrongPlugin, ASchedulerOfRequestsThrowsAndCanBeFreed)
{
    struct {
        PluginChoice arbiter, admission;
    } const wrong[] = {
        {{TestModule("wrong-sched"), {{"after", "3"}, {"fault", "served"}}}, {"none", {}}},
        {{TestModule("wrong-sched"), {{"after", "3"}, {"fault", "silence"}}}, {"none", {}}},
        {{"fifo", {}}, {TestModule("wrong-aqm"), {{"after", "4"}, {"fault", "verdict"}}}},
        {{"fifo", {}}, {TestModule("wrong-aqm"), {{"after", "3"}, {"fault", "turn"}}}},
    };
    for (const auto &w : wrong) {
        Host host;
        NullOwner owner;
        RequestConfig config;
        config.rate = 8e6;
        config.pluginDir = PluginDir();
        config.classes = {{"c", 1}};
        config.arbiter = w.arbiter;
        config.admission = w.admission;
        auto scheduler = std::make_unique<RequestScheduler>(config, host.requests(), 1);
        FixWindow(*scheduler, 4, 1);
        Refusal why;
        for (int n = 0; n < 3; ++n)
            ASSERT_TRUE(scheduler->hold(owner, 0, "u", 2, why));
        EXPECT_THROW({
            for (int n = 0; n < 3; ++n)
                scheduler->hold(owner, 0, "u", 3, why);
        }, PluginError);
        scheduler.reset();
        EXPECT_EQ(host.logged(0), "");
    }
}

} // namespace
} // namespace msfrs::test
