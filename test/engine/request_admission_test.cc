// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Admission of requests by an AQM.
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class AdmissionTest : public RequestTest {
protected:
    void judge(const std::string &every, const std::string &verdict)
    {
        config.admission = {TestModule("judge"), {{"every", every}, {"verdict", verdict}}};
    }
    void judgeTurns(const std::string &every)
    {
        judge(every, "drop");
        config.admission.settings.push_back({"when", "turn"});
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

TEST_F(AdmissionTest, WhoIsDroppedAsItsTurnComesIsToldAndTheNextGoes)
{
    judgeTurns("2");
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(0, "u", "b");
    hold(0, "u", "c");
    done(a);
    EXPECT_EQ(b.expiries, 1);
    EXPECT_TRUE(b.ended);
    EXPECT_EQ(granted(), "a c");
    EXPECT_EQ(report("gold").refusedAdmission, 1u);
    EXPECT_EQ(report("gold").queued, 0u);
    check();
}

TEST_F(AdmissionTest, WhoIsDroppedAsItsTurnComesMayHoldAgainAtOnce)
{
    judgeTurns("2");
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(0, "u", "b");
    b.onExpired = [this, &b] {
        done(b);
        hold(0, "u", "again");
    };
    done(a);
    EXPECT_EQ(granted(), "a again");
    check();
}

TEST_F(AdmissionTest, WhoseTurnComesAtOnceAndIsDroppedIsRefused)
{
    judgeTurns("2");
    start(3);
    hold(0, "u", "a");
    auto &b = hold(0, "u", "b");
    EXPECT_EQ(b.refusal, Refusal::Admission) << "its owner has nothing yet that could be taken back";
    EXPECT_EQ(b.expiries, 0);
    EXPECT_EQ(report("gold").refusedAdmission, 1u);
    hold(0, "u", "c");
    EXPECT_EQ(granted(), "a c");
    check();
}

class AdmissionStorm : public AdmissionTest, public ::testing::WithParamInterface<bool> {};

TEST_P(AdmissionStorm, KeepsTheBooks)
{
    GetParam() ? judgeTurns("4") : judge("4", "both");
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

INSTANTIATE_TEST_SUITE_P(, AdmissionStorm, ::testing::Bool(),
                         [](const auto &test) { return test.param ? "AsTurnsCome" : "AsTheyCome"; });

} // namespace
} // namespace msfrs
