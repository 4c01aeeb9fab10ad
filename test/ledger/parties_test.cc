// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Request schedulers that share a link by a ledger: weights, an idle share, death, return, and parties that stop.
#include "ledger/report.h"
#include "party_sim.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

/// Users' bytes follow the weights, within a tolerance of `most`.
void ExpectShares(const std::vector<double> &had, const std::vector<double> &weights, const double most)
{
    for (size_t n = 0; n < had.size(); ++n)
        EXPECT_NEAR(had[n] / had.back() / (weights[n] / weights.back()), 1, most) << "class " << n;
}

class PartiesTest : public ::testing::TestWithParam<uint32_t> {
protected:
    uint32_t count() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Workers, PartiesTest, ::testing::Values(2, 4));

TEST_P(PartiesTest, ShareByWeightAndFillTheLinkAsOneDoes)
{
    PartySim one(1), sim(count());
    one.everywhere({4, 4, 4});
    sim.everywhere({4, 4, 4});
    one.run(20 * Second);
    sim.run(20 * Second);
    one.measure(200 * Second);
    const auto had = sim.measure(200 * Second);
    ExpectShares(had, {4, 2, 1}, 0.05);
    EXPECT_NEAR(sim.utilisation, one.utilisation, 0.01);
    EXPECT_EQ(sim.logged(), "");
}

TEST_P(PartiesTest, ShareByWeightWhereClassesHaveDifferentUsers)
{
    PartySim sim(count(), 10e6);
    sim.everywhere({2, 9, 5}); // the two have two requests each at one of four parties: up to 10 % off
    sim.run(20 * Second);
    ExpectShares(sim.measure(200 * Second), {4, 2, 1}, count() == 2 ? 0.05 : 0.12);
}

TEST_P(PartiesTest, ShareByWeightWhereAClassSitsOnOneOfThem)
{
    PartySim sim(count());
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n / 4 % count()});
    sim.run(20 * Second);
    ExpectShares(sim.measure(200 * Second), {4, 2, 1}, 0.02);
}

TEST_P(PartiesTest, ShareByWeightInPhases)
{
    PartySim sim(count());
    sim.everywhere({4, 4, 4});
    sim.run(20 * Second);
    for (auto &u : sim.users)
        u.asks = u.cls != 0;
    sim.run(30 * Second);
    EXPECT_GT(sim.measure(20 * Second)[1], 0);
    EXPECT_GT(sim.utilisation, 0.97);
    for (auto &u : sim.users)
        u.asks = true;
    sim.run(5 * Second);
    ExpectShares(sim.measure(100 * Second), {4, 2, 1}, 0.06);
}

TEST_P(PartiesTest, TheSumOfPlacesStaysWithinTheWindow)
{
    PartySim sim(count());
    sim.everywhere({4, 4, 4});
    sim.run(30 * Second);
    for (int n = 0; n < 200; ++n) {
        sim.mostPlaces = 0;
        const double before = sim.scheduler(0).window().limit;
        sim.run(100 * Ms);
        const double limit = std::max(before, sim.scheduler(0).window().limit);
        EXPECT_LE(sim.mostPlaces, 1.5 * limit + count()) << "the reserve, and one of each by a race";
    }
    sim.run(Second / 2); // W+ is changed each second
    for (uint32_t n = 1; n < count(); ++n) {
        EXPECT_TRUE(sim.scheduler(n).window().follows);
        EXPECT_DOUBLE_EQ(sim.scheduler(n).window().limit, sim.scheduler(0).window().limit);
    }
    EXPECT_FALSE(sim.scheduler(0).window().follows);
}

TEST_P(PartiesTest, WhatIsIdleElsewhereIsTakenWithinASecond)
{
    PartySim sim(count(), 10e6);
    sim.everywhere({0, 4, 0});
    for (uint32_t n = 0; n < 4; ++n)
        sim.user(0, "g" + std::to_string(n), {0}, 8);
    sim.run(30 * Second);
    EXPECT_GT(sim.measure(10 * Second)[1], 0);
    for (auto &u : sim.users)
        u.asks = u.cls == 0;
    for (int n = 0; n < 1000 && std::any_of(sim.users.begin(), sim.users.end(),
                                            [](const auto &u) { return u.cls != 0 && u.open > 0; }); ++n)
        sim.run(10 * Ms);
    sim.run(Second);
    sim.measure(2 * Second);
    EXPECT_GT(sim.utilisation, 0.95) << "the remaining party uses all of the link";
}

TEST_P(PartiesTest, AKilledPartyLosesNoPlaceAndItsShareIsUsed)
{
    PartySim sim(count(), 10e6);
    sim.everywhere({4, 4, 4});
    sim.run(30 * Second);
    sim.kill(0);
    sim.run(2 * Second);
    ExpectShares(sim.measure(60 * Second), {4, 2, 1}, 0.07);
    EXPECT_GT(sim.utilisation, 0.95);
    EXPECT_FALSE(sim.scheduler(1).window().follows) << "the next one leads";
    sim.run(Second / 2); // W+ is changed each second
    const double limit = sim.scheduler(1).window().limit;
    sim.start(0);
    EXPECT_DOUBLE_EQ(sim.scheduler(0).window().limit, limit) << "it goes on with the window that there was";
    sim.run(2 * Second);
    ExpectShares(sim.measure(60 * Second), {4, 2, 1}, 0.07);
    EXPECT_GT(sim.utilisation, 0.95);
    for (auto &u : sim.users)
        u.asks = false;
    sim.run(30 * Second);
    EXPECT_EQ(sim.places(), 0u);
    const auto parties = ledger::Parties(sim.segmentOf(0), sim.now);
    EXPECT_EQ(parties.size(), count());
    for (const auto &p : parties) {
        EXPECT_EQ(p.now.places, 0u) << "W at rest";
        EXPECT_EQ(p.now.waiting, 0u);
    }
}

TEST_P(PartiesTest, AKilledPartyLosesNoPlaceHoweverOften)
{
    PartySim sim(count(), 10e6);
    sim.everywhere({2, 2, 2});
    sim.run(5 * Second);
    for (uint32_t n = 0; n < 20; ++n) {
        sim.kill(n % count());
        sim.run(100 * Ms * (n % 7));
        sim.start(n % count());
        sim.run(Second);
    }
    for (auto &u : sim.users)
        u.asks = false;
    sim.run(30 * Second);
    for (const auto &p : ledger::Parties(sim.segmentOf(0), sim.now))
        EXPECT_EQ(p.now.places, 0u);
    for (const auto &user : sim.segmentOf(0).users)
        ASSERT_EQ(user.active, 0u) << "nobody has work anywhere";
    EXPECT_EQ(sim.logged(), "");
}

TEST_P(PartiesTest, APartyThatWasStoppedForTenSecondsComesBack)
{
    PartySim sim(count(), 10e6);
    sim.everywhere({4, 4, 4});
    sim.run(30 * Second);
    sim.stop(0, true);
    sim.run(2 * Second);
    sim.measure(8 * Second);
    EXPECT_GT(sim.utilisation, 0.95) << "the others have what it had";
    const double limit = sim.scheduler(1).window().limit;
    sim.stop(0, false);
    sim.run(200 * Ms);
    EXPECT_NEAR(sim.scheduler(0).window().limit, limit, limit / 2) << "not the window of ten seconds ago";
    sim.run(2 * Second);
    ExpectShares(sim.measure(60 * Second), {4, 2, 1}, 0.07);
    EXPECT_GT(sim.utilisation, 0.95);
}

TEST_P(PartiesTest, LimitsOfTheQueueHoldOverAll)
{
    PartySim sim(count());
    sim.config.maxPerUser = 10;
    for (uint32_t n = 0; n < count(); ++n)
        sim.start(n);
    sim.everywhere({1, 0, 0});
    auto &u = sim.users.front();
    sim.run(Second);
    u.inFlight = 200; // each party takes requests up to the limit in the same tenth of a second
    uint64_t refused = 0;
    sim.run(30 * Second);
    for (uint32_t n = 0; n < count(); ++n) {
        uint32_t queued = 0;
        for (const auto &cls : sim.scheduler(n).classes(sim.now)) {
            queued += cls.queued;
            refused += cls.refusedPerUser;
        }
        EXPECT_LE(queued, 10u);
    }
    EXPECT_GT(refused, 0u);
    uint64_t seen = 0;
    for (const auto &p : ledger::Parties(sim.segmentOf(0), sim.now))
        seen += p.now.queued;
    EXPECT_LE(seen, 10u + 4 * count()) << "as of the last tenth of a second";
}

TEST_P(PartiesTest, FindWhatTheLinkCarriesByWhatAnyOfThemSees)
{
    PartySim sim(count(), 4e6);
    sim.config.bounds = {0.5e6, 50e6};
    sim.config.window.law = WindowLaw::Bytes;
    for (uint32_t n = 0; n < count(); ++n)
        sim.start(n);
    for (uint32_t n = 0; n < 12; ++n) // none at the leader
        sim.user(n / 4, "u" + std::to_string(n), {count() - 1});
    const auto expectRate = [&](const uint32_t from, const double rate) {
        for (auto n = from; n < count(); ++n)
            EXPECT_NEAR(sim.scheduler(n).config().rate, rate, 0.3 * rate) << "of party " << n;
    };
    sim.sees = {7, 40 * Ms, 40 * Ms};
    sim.run(20 * Second);
    expectRate(0, 4e6);
    sim.config.rate = 1e6;
    sim.sees.rtt = 540 * Ms; // including the queue that this causes
    sim.run(2 * Second);
    expectRate(0, 1e6);
    EXPECT_EQ(sim.scheduler(0).window().capacity->changes.back().why, CapacityReason::Queue);
    EXPECT_EQ(sim.scheduler(count() - 1).window().capacity->changes.back().why, CapacityReason::Followed);
    sim.sees.rtt = 40 * Ms;
    sim.kill(0);
    sim.run(5 * Second);
    expectRate(1, 1e6);
    sim.config.rate = 4e6;
    sim.run(5 * Second);
    expectRate(1, 4e6);
    sim.start(0);
    sim.run(Ms);
    expectRate(0, 4e6); // it starts with the known rate
    sim.run(5 * Second);
    expectRate(0, 4e6);
    EXPECT_EQ(sim.logged(), "");
}

TEST_P(PartiesTest, GoOnSharingAfterSlotsWereOverwritten)
{
    PartySim sim(count());
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n / 4 % count()});
    sim.run(20 * Second);
    for (uint32_t n = 0; n < count(); ++n) {
        auto &words = reinterpret_cast<ledger::Word(&)[sizeof(ledger::Slot) / 8]>(sim.segmentOf(0).slots[n]);
        for (auto &word : words)
            word = n % 2 ? 0 : UINT64_MAX;
    }
    sim.run(Second);
    EXPECT_EQ(sim.scheduler(0).window().outstanding, sim.places()) << "W is of all";
    ExpectShares(sim.measure(200 * Second), {4, 2, 1}, 0.02);
}

TEST_P(PartiesTest, ReadTheInterfaceOftenAtTheFirstAlone)
{
    PartySim sim(count());
    sim.everywhere({4, 4, 4});
    sim.run(20 * Second);
    const auto before = sim.reads();
    sim.run(20 * Second);
    EXPECT_LT((sim.reads() - before) / 20, 12 + 2 * static_cast<int>(count())) << "a second";
}

} // namespace
} // namespace msfrs::test
