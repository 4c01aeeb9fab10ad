// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Moving work to another engine. conformance/moves_test.cc: a scheduler picks as if it had not moved;
/// request_reconfigure_test.cc: requests in every state.
#include "engine/migrate.h"
#include "support/audit.h"
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

/// Two engines, and a host that has an item in service and two queued in the first, of two classes.
class MigrateTest : public ::testing::Test {
protected:
    MigrateTest() { plan.moved = [this](msfrs_item &i) { now.push_back(&i); }; }
    ~MigrateTest() override
    {
        for (auto *const i : now) {
            if (to && !to->isQueued(*i))
                to->done(*i, 9);
        }
        for (auto *const i : plan.served) {
            if (from && now.empty())
                from->done(*i, 9);
        }
    }
    std::unique_ptr<Engine> make(const std::string &sched)
    {
        return std::make_unique<Engine>(ParseVariant(sched).load(), Engine::Part(), Engine::Cost::Measured, 1, 0,
                                        host.engine());
    }
    void fill(const std::string &sched)
    {
        offered = 0;
        from = make(sched);
        auto &a = *from->addClass("a", 1), &b = *from->addClass("b", 1);
        msfrs_time wake;
        offer(a, "u");
        plan.served = {from->pick(2, MSFRS_PICK_ANY, wake)};
        from->charge(*plan.served[0], 0, 300, 3);
        offer(a, "u");
        offer(b, "v");
    }
    void offer(msfrs_class &c, const char *const user)
    {
        const int64_t est[MSFRS_RESOURCES] = {1000};
        msfrs_item *item;
        from->offer(from->flow(c, user), est, &hosts[offered++], 1, item);
    }
    /// All to classes of the same name, or to the first.
    void migrate(const std::string &sched, const std::vector<std::string> &classes)
    {
        to = make(sched);
        for (const auto &c : classes)
            to->addClass(c, 1);
        plan.place = [this](const msfrs_item &i) {
            auto *c = to->classes()[0];
            for (auto *const other : to->classes())
                c = std::string(other->name) == i.flow->cls->name ? other : c;
            return MigrationPlan::Place{&to->flow(*c, static_cast<const NamedFlow &>(*i.flow).name()), {i.est[0]}};
        };
        Migrate(*from, *to, plan, 5);
    }
    std::string fault(const std::string &settings)
    {
        fill(TestModule("wrong-sched") + " " + settings);
        std::string said = "nothing";
        try {
            migrate(TestModule("wrong-sched") + " " + settings, {"a", "b"});
        } catch (const PluginError &error) {
            said = error.what();
            EXPECT_TRUE(now.empty()) << "the host was told before all was well";
            EXPECT_EQ(AuditLaws(*from), "");
            EXPECT_EQ(from->totals().inService.items, 1u) << "the first engine has lost what it had";
            EXPECT_EQ(from->totals().queued.items, 2u);
            EXPECT_EQ(to->totals().inService.items, 0u) << "the other cannot be freed";
        }
        for (auto *const i : now) {
            if (!to->isQueued(*i))
                to->done(*i, 9);
        }
        if (now.empty())
            from->done(*plan.served[0], 9);
        to.reset();
        from.reset();
        now.clear();
        plan.served.clear();
        return said;
    }

    Host host;
    std::unique_ptr<Engine> from, to;
    MigrationPlan plan;
    std::vector<msfrs_item *> now;
    int hosts[8] = {}, offered = 0;
};

TEST_F(MigrateTest, NothingIsLost)
{
    for (const char *const sched : Built({"msf", "drr", "msfq", "fq", "sfq", "diffserv", "fifo"})) {
        SCOPED_TRACE(sched);
        fill(sched);
        auto *const flow = from->knownFlow(*from->classes()[0], "u");
        const auto bytes = flow->bytes();
        flow->owed = 70;
        flow->lag.served = 50;
        migrate(sched, {"b", "a"});
        EXPECT_EQ(AuditLaws(*to), "");
        EXPECT_EQ(AuditLaws(*from), "");
        EXPECT_EQ(from->totals().inService.items, 0u);
        EXPECT_EQ(to->totals().inService.items, 1u);
        EXPECT_EQ(to->totals().queued.items, 2u);
        ASSERT_EQ(now.size(), 3u);
        for (size_t n = 0; n < 3; ++n)
            EXPECT_EQ(now[n]->host, &hosts[n]) << "in the order in which they came";
        EXPECT_EQ(now[0]->attained, 300);
        EXPECT_EQ(to->unused(*now[0]), 700) << "what was charged in advance";
        const auto &heir = *static_cast<NamedFlow *>(now[0]->flow);
        EXPECT_EQ(heir.bytes(), bytes);
        EXPECT_EQ(heir.owed, 70);
        EXPECT_EQ(heir.lag.served, 50) << "a user is not behind since it has moved";
        to->done(*now[0], 9);
        to.reset();
        from.reset();
        now.clear();
        plan.served.clear();
    }
    EXPECT_EQ(host.logged(0), "");
}

TEST_F(MigrateTest, CountersGoOnWhereTheSchedulerIsTheSame)
{
    fill("msf lag=0");
    migrate("msf lag=7", {"b", "a"});
    EXPECT_EQ(*to->classes()[0]->service, 1000) << "b came when a had been charged so much in advance";
    EXPECT_EQ(*to->classes()[1]->service, 1000) << "a";
    to->done(*now[0], 9);
    now[0] = now[1];
    EXPECT_EQ(*to->classes()[1]->service, 300) << "and is given back what it did not use";
    EXPECT_EQ(BeginsAnew(from->scheduler(), to->scheduler()), "");
}

TEST_F(MigrateTest, AnotherSchedulerBeginsAnew)
{
    fill("drr");
    migrate("msf", {"a", "b"});
    EXPECT_EQ(BeginsAnew(from->scheduler(), to->scheduler()),
              "scheduler msf starts from zero: past service of classes and users does not count");
    EXPECT_EQ(*to->classes()[0]->service, 700) << "what is in service and not used yet, since that may come back";
}

/// The class that the user joins is as far ahead as before, shared now by two users.
TEST_F(MigrateTest, WhoComesToAnotherClassIsNeitherAheadNorBehind)
{
    const char *const msf = "msf lag=0 order=attained";
    from = make(msf);
    auto &a = *from->addClass("a", 1), &b = *from->addClass("b", 1);
    msfrs_time wake;
    for (int n = 0; n < 3; ++n)
        offer(b, "v");
    for (int n = 0; n < 2; ++n) { // of b's users the least served one is at 100,000, and then at 200,000
        auto *const i = from->pick(2, MSFRS_PICK_ANY, wake);
        from->charge(*i, 0, 100'000, 3);
        from->done(*i, 3);
    }
    offer(a, "u");
    const double before = *b.service;
    migrate(msf, {"b"});
    EXPECT_EQ(before, 200'000);
    EXPECT_EQ(*to->classes()[0]->service, 150'000) << "V is 100,000";
    EXPECT_EQ(to->classes()[0]->users, 2u);
    auto *const u = to->pick(6, MSFRS_PICK_ANY, wake);
    EXPECT_EQ(u->host, &hosts[3]) << "who comes is where the one who was served last began";
    to->charge(*u, 0, 150'000, 7);
    to->requeue(*u, u->est, 7);
    auto *const v = to->pick(8, MSFRS_PICK_ANY, wake);
    EXPECT_EQ(v->host, &hosts[2]) << "from zero, u would have gone on";
    to->requeue(*v, v->est, 9); // so that the engine can be freed
}

TEST_F(MigrateTest, AFlowThatOthersJoinKeepsItsOrder)
{
    fill("drr");
    auto &b = *from->classes()[1];
    offer(b, "u"); // after a's of the same name
    migrate("drr", {"b"});
    const auto *const flow = to->knownFlow(*to->classes()[0], "u");
    ASSERT_TRUE(flow && flow->head && flow->head->next);
    EXPECT_EQ(flow->head->host, &hosts[1]) << "a's came first";
    EXPECT_EQ(flow->head->next->host, &hosts[3]);
}

TEST_F(MigrateTest, FlowsThatAreCalledOtherwiseBeginAnew)
{
    fill("msf lag=0");
    plan.sameFlows = false;
    migrate("msf lag=0", {"a", "b"});
    EXPECT_EQ(now[0]->flow->cls->users, 1u);
    EXPECT_EQ(static_cast<NamedFlow *>(now[0]->flow)->bytes(), 0u);
    EXPECT_EQ(*to->classes()[0]->service, 1000 + 700) << "the class goes on, and what came is charged";
}

TEST_F(MigrateTest, WrongFiguresAreNamed)
{
    const std::string wrong = "scheduler wrong-sched is wrong: ";
    EXPECT_EQ(fault("after=100 fault=many"), "nothing");
    EXPECT_EQ(fault("fault=many"), wrong + "save gave 17 figures of the instance; allowed are 1 to 16");
    EXPECT_EQ(fault("fault=none"), wrong + "save gave 0 figures of the instance; allowed are 1 to 16");
    EXPECT_EQ(fault("fault=nan"), wrong + "save gave figure 0 of the instance, which is not finite");
    EXPECT_EQ(fault("fault=stranger"), wrong + "save gave figures of a flow that does not exist");
    EXPECT_EQ(fault("fault=two"), wrong + "save gave figures of 2 owners at once");
    EXPECT_EQ(fault("fault=flood"), wrong + "save gave figures of more owners than exist");
    EXPECT_EQ(fault("fault=refuse"), wrong + "restore refuses the figures that save gave for the instance");
    EXPECT_EQ(fault("fault=refuse-item"), wrong + "restore refuses the figures that save gave for an item");
}

using ReconfigureWrong = RequestTest;

TEST_F(ReconfigureWrong, ASchedulerOfRequestsThrowsAndCanBeFreed)
{
    for (const char *const kind : {"nan", "refuse"}) {
        config.arbiter = {TestModule("wrong-sched"), {{"fault", kind}}};
        start(1);
        hold(0, "u", "served");
        hold(1, "v", "queued");
        auto next = s->config();
        next.arbiter.settings.push_back({"after", "0"}); // another text takes a new engine
        EXPECT_THROW(s->reconfigure(next, clock.now()), PluginError) << kind;
        check();
        s.reset();
        owners.clear();
        EXPECT_EQ(host.logged(0), "");
    }
}

} // namespace
} // namespace msfrs::test
