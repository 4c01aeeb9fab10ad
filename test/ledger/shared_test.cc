// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Parties of a segment without schedulers: turns, users, demand, and the leader.
#include "ledger/report.h"
#include "ledger/shared.h"
#include "ledger/users.h"
#include "support/host.h"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace msfrs {
namespace {

using test::Ms, test::Second;
using namespace ledger;

constexpr int64_t Quantum = 1000;
constexpr double Rate = 0.8e6; ///< 1000 bytes in 10 ms, so that the lead is three quanta

class SharedTest : public ::testing::Test {
protected:
    SharedTest() { FormatSegment(segment.get()); }

    SharedLedger &join(const uint32_t n)
    {
        parties.resize(std::max<size_t>(parties.size(), n + 1));
        const auto log = [this](int, const std::string &text) { logged += text + "\n"; };
        parties[n] = std::make_unique<SharedLedger>(*segment, PartyParams{Kind::Worker, n, 7}, log, now);
        return *parties[n];
    }
    /// Two parties with one user of the given weight each, after the window has been published.
    void two(const double first, const double second)
    {
        enter(join(0), "gold", "a", first);
        enter(join(1), "gold", "b", second);
        settle();
        settle();
    }
    Ledger::User enter(SharedLedger &party, const std::string &cls, const std::string &user, const double weight)
    {
        party.served(0, "gold", 0);
        party.served(1, "bronze", 0);
        const auto number = party.enter(cls, user, weight, 0, 1);
        users.push_back({&party, number, 0, 1});
        return number;
    }
    /// Advances the time; all but the silent one update their state.
    void settle()
    {
        now += Ledger::Every;
        for (auto &u : users) {
            if (u.party != silent)
                u.elsewhere += u.party->exchange(u.number, u.bytes, u.waiting, u.items);
        }
        for (const auto &p : parties) {
            if (!p || p.get() == silent)
                continue;
            p->measured({limit, Rate, 0.5}, {});
            EXPECT_TRUE(p->settle(now));
        }
        look();
    }
    void look()
    {
        now += Ms;
        for (const auto &p : parties) {
            if (p && p.get() != silent)
                p->look(now);
        }
    }
    /// The party has this many slots and waiting requests, and `served` bytes charged in total.
    void say(const uint32_t n, const uint32_t places, const uint64_t waiting, const int64_t served)
    {
        parties[n]->say({places, waiting, waiting, served, Quantum, places * Quantum}, now);
        look();
    }
    Slot &slot(const uint32_t n) { return segment->slots[n]; }

    struct Known {
        SharedLedger *party;
        Ledger::User number;
        uint64_t bytes;
        uint32_t items;
        uint32_t waiting = 0;
        int64_t elsewhere = 0;
    };

    std::unique_ptr<Segment> segment = std::make_unique<Segment>();
    std::vector<std::unique_ptr<SharedLedger>> parties;
    std::vector<Known> users;
    std::vector<std::unique_ptr<OwnSlot>> taken;
    const SharedLedger *silent = nullptr;
    std::string logged;
    msfrs_time now = 1000 * Second;
    double limit = 5;
};

TEST_F(SharedTest, TellsWhatAClassHadAndWantsEverywhere)
{
    two(4, 2);
    EXPECT_EQ(parties[0]->elsewhere(0).demand, 6);
    EXPECT_EQ(parties[0]->elsewhere(0).here, 4);
    EXPECT_EQ(parties[0]->elsewhere(1).demand, 0);
    parties[1]->served(0, "gold", 5000);
    settle();
    EXPECT_EQ(parties[0]->elsewhere(0).bytes, 5000);
    EXPECT_EQ(parties[1]->elsewhere(0).bytes, 0) << "what it had itself";
    settle();
    EXPECT_EQ(parties[0]->elsewhere(0).bytes, 0);

    auto &third = join(2); // has its classes in another order
    third.served(0, "bronze", 0);
    third.served(1, "gold", 0);
    settle();
    settle();
    third.served(1, "gold", 700);
    settle();
    EXPECT_EQ(parties[0]->elsewhere(0).bytes, 700);
    EXPECT_EQ(parties[0]->elsewhere(1).bytes, 0);
    EXPECT_EQ(parties[0]->elsewhere(99).bytes, 0);
}

TEST_F(SharedTest, OthersAddUp)
{
    two(1, 1);
    join(2);
    say(1, 3, 2, 0);
    say(2, 4, 0, 0);
    settle();
    const auto &others = parties[0]->look(now);
    EXPECT_EQ(others.places, 7u);
    EXPECT_EQ(others.waiting, 2u);
    EXPECT_EQ(others.workers, 2u);
    EXPECT_EQ(parties[2]->look(now).places, 3u);
    EXPECT_EQ(parties[1]->look(now).waiting, 0u) << "not its own";
}

TEST_F(SharedTest, WhoIsAheadByMoreThanTheLeadLetsTheOtherGo)
{
    two(1, 1);
    say(1, 0, 1, 0);
    say(0, 0, 1, 3000);
    EXPECT_TRUE(parties[0]->turn(false)) << "by the lead";
    EXPECT_TRUE(parties[1]->turn(false));
    say(0, 0, 1, 3001);
    EXPECT_FALSE(parties[0]->turn(false));
    EXPECT_TRUE(parties[0]->turn(true)) << "the reserve";
    say(0, 0, 1, 11001);
    EXPECT_FALSE(parties[0]->turn(true));
    say(1, 0, 0, 0);
    EXPECT_TRUE(parties[0]->turn(false)) << "nobody waits";
}

TEST_F(SharedTest, PlacesCountAsQuanta)
{
    two(1, 1);
    say(1, 0, 1, 0);
    say(0, 3, 1, 0);
    EXPECT_TRUE(parties[0]->turn(false));
    say(0, 4, 1, 0);
    EXPECT_FALSE(parties[0]->turn(false));
}

TEST_F(SharedTest, BytesCountByDemand)
{
    two(4, 1);
    say(1, 0, 1, 0);
    say(0, 0, 1, 0);
    int64_t served[2] = {0, 0};
    for (int n = 0; n < 1000; ++n) { // each turn goes to a party that may take one, alternating if both may
        const uint32_t who = parties[0]->turn(false) && (n % 2 || !parties[1]->turn(false)) ? 0 : 1;
        ASSERT_TRUE(parties[who]->turn(false)) << "somebody may always go";
        say(who, 0, 1, served[who] += Quantum);
    }
    EXPECT_NEAR(static_cast<double>(served[0]) / static_cast<double>(served[1]), 4, 0.1);
}

TEST_F(SharedTest, WhatWasIdleIsNotHeldAgainstAnybody)
{
    two(1, 1);
    say(0, 1, 0, 1'000'000); // while nobody waited
    say(0, 1, 1, 1'000'000);
    say(1, 0, 1, 0);
    EXPECT_TRUE(parties[1]->turn(false));
    EXPECT_TRUE(parties[0]->turn(false)) << "no more than the lead is made up for";
    say(0, 2, 1, 1'000'000);
    EXPECT_FALSE(parties[0]->turn(false));
}

TEST_F(SharedTest, WhoDoesNotLookIsNotWaitedFor)
{
    two(1, 1);
    say(1, 0, 1, 0);
    say(0, 0, 1, 9000);
    EXPECT_FALSE(parties[0]->turn(false));
    now += 51 * Ms;
    parties[0]->look(now);
    EXPECT_TRUE(parties[0]->turn(false));
    EXPECT_EQ(parties[0]->look(now).waiting, 0u);
}

TEST_F(SharedTest, PollsWhileSomebodyWaits)
{
    join(0);
    EXPECT_EQ(parties[0]->lookAt(), 0) << "nobody else is there";
    two(1, 1);
    EXPECT_EQ(parties[0]->lookAt(), 0);
    say(1, 0, 1, 0);
    EXPECT_EQ(parties[1]->lookAt(), now + 5 * Ms);
    EXPECT_EQ(parties[0]->lookAt(), now + 20 * Ms) << "the leader measures how long others wait";
    say(1, 0, 0, 0);
    EXPECT_EQ(parties[1]->lookAt(), 0);
}

TEST_F(SharedTest, AUserOfTwoPartiesIsCountedByItsRequestsAndChargedWhatItHadElsewhere)
{
    two(4, 4);
    enter(*parties[1], "gold", "a", 4);
    settle();
    settle();
    EXPECT_EQ(Real(slot(0).demand), 2) << "a, half of whom is at the other";
    EXPECT_EQ(Real(slot(1).demand), 6);
    EXPECT_EQ(Real(slot(1).classes[0].demand), 6);
    EXPECT_EQ(Real(slot(1).classes[1].demand), 0);
    users[2].items = 3;
    settle();
    settle();
    EXPECT_EQ(Real(slot(0).demand), 1) << "one of four requests";
    EXPECT_EQ(Real(slot(1).demand), 7);
    users[0].bytes = 500;
    users[0].waiting = 3;
    settle();
    settle();
    EXPECT_EQ(users[2].elsewhere, 500);
    EXPECT_TRUE(parties[1]->busyElsewhere(users[2].number));
    EXPECT_FALSE(parties[1]->busyElsewhere(users[1].number)) << "another user";
    EXPECT_EQ(parties[1]->waitingElsewhere(users[2].number), 3u);
    EXPECT_EQ(users[0].elsewhere, 0);
    EXPECT_EQ(users[1].elsewhere, 0) << "another user";
    users[0].items = 0;
    settle();
    settle();
    EXPECT_EQ(Real(slot(0).demand), 0);
    EXPECT_EQ(Real(slot(1).demand), 8);
    EXPECT_FALSE(parties[1]->busyElsewhere(users[2].number));
}

TEST_F(SharedTest, ExcessThatAnotherPartySawCountsForWhoHasTheUsersRequests)
{
    two(1, 1);
    users.push_back({parties[1].get(), parties[1]->enter("gold", "a", 1, 0, 0), 0, 0});
    say(0, 0, 1, 0);
    say(1, 0, 1, 0);
    users.back().bytes = 5000;
    settle();
    settle();
    EXPECT_EQ(users[0].elsewhere, 5000);
    say(1, 0, 1, 0);
    say(0, 0, 1, 0);
    EXPECT_FALSE(parties[0]->turn(false)) << "ahead by more than the lead";
    EXPECT_TRUE(parties[1]->turn(false));
}

TEST_F(SharedTest, UsersBeyondTheTableAreScheduledAlone)
{
    join(0);
    join(1);
    for (uint32_t n = 0; n < 64; ++n) { // all entries of user "x" are in use
        auto &user = segment->users[(static_cast<uint32_t>(UserKey("gold", "x")) + n) % Users];
        user.key = 1000 + n;
        user.active = 2;
    }
    settle();
    enter(*parties[0], "gold", "x", 4);
    settle();
    EXPECT_EQ(Real(slot(0).demand), 4);
    users[0].bytes = 100;
    settle();
    EXPECT_EQ(users[0].elsewhere, 0);
    EXPECT_NE(logged.find("more users than the shared ledger has room for (65536)"), std::string::npos);
    settle();
    EXPECT_EQ(logged.find("more users", logged.find("more users") + 1), std::string::npos) << "said once";
}

TEST_F(SharedTest, TheLowestLeadsAndTheNextGoesOn)
{
    two(1, 1);
    EXPECT_FALSE(parties[0]->follow());
    limit = 9;
    settle();
    settle();
    ASSERT_TRUE(parties[1]->follow());
    EXPECT_EQ(parties[1]->follow()->limit, 9);
    silent = parties[0].get();
    for (int n = 0; n < 11; ++n)
        settle();
    EXPECT_FALSE(parties[1]->follow()) << "the first has died";
    EXPECT_EQ(parties[1]->look(now).places, 0u);
    EXPECT_EQ(parties[1]->look(now).workers, 0u);
}

TEST_F(SharedTest, WhoComesBackTakesOverWhatWasComputedMeanwhile)
{
    two(1, 1);
    say(0, 1, 1, 0);
    silent = parties[0].get();
    for (int n = 0; n < 100; ++n) {
        limit = 20;
        say(1, 1, 1, n * 10000);
        settle();
    }
    silent = nullptr;
    users[0].elsewhere = 0;
    parties[0]->look(now);
    parties[0]->measured({limit = 5, Rate, 0}, {});
    EXPECT_TRUE(parties[0]->settle(now));
    ASSERT_TRUE(parties[0]->follow());
    EXPECT_EQ(parties[0]->follow()->limit, 20);
    say(0, 1, 1, 0);
    EXPECT_TRUE(parties[1]->turn(false)) << "what the other missed is gone, but for the lead";
    EXPECT_TRUE(parties[0]->turn(false));
    limit = 20;
    settle();
    settle();
    EXPECT_FALSE(parties[0]->follow()) << "and then it leads again";
}

TEST_F(SharedTest, ARestartedPartyBeginsWithWhatTheOthersHave)
{
    limit = 33;
    two(1, 1);
    parties[0] = nullptr; // a regular end
    users.erase(users.begin());
    settle();
    EXPECT_FALSE(parties[1]->follow());
    join(0);
    ASSERT_TRUE(parties[0]->follow());
    EXPECT_EQ(parties[0]->follow()->limit, 33);
}

TEST_F(SharedTest, WhoHasLostItsSlotWritesNoMoreThereAndTakesAnother)
{
    two(1, 1);
    const auto old = std::move(parties[0]);
    join(0);
    old->say({9, 9, 9, 9, Quantum, 9 * Quantum}, now);
    old->served(0, "gold", 77);
    old->exchange(users[0].number, 55, 0, 1);
    EXPECT_TRUE(old->settle(now));
    old->say({9, 9, 9, 9, Quantum, 9 * Quantum}, now);
    EXPECT_EQ(slot(0).places, 0u);
    EXPECT_EQ(slot(0).classes[0].served, 0u);
    EXPECT_EQ(slot(Columns - 1).places, 9u);
    EXPECT_EQ(logged, "another process has written slot 0 of the shared ledger; this one continues in slot 13\n");
}

TEST_F(SharedTest, WhoseSlotWasOverwrittenTakesItAgain)
{
    two(1, 1);
    say(0, 3, 2, 5000);
    for (int time = 0; time < 2; ++time) {
        auto &words = reinterpret_cast<Word(&)[sizeof(Slot) / 8]>(slot(0));
        for (auto &word : words)
            word = time == 0 ? UINT64_MAX : 0;
        users[0].bytes += 500;
        settle();
        say(0, 3, 2, 5000);
        EXPECT_EQ(parties[1]->look(now).places, 3u);
        users[0].bytes += 1000;
        users[1].bytes += 100;
        settle();
        settle();
        const auto known = Find(segment->users, UserKey("gold", "a"));
        EXPECT_EQ(segment->users[known].active.load(), 1u);
        EXPECT_EQ(Real(slot(0).demand.load()), 1);
        EXPECT_EQ(slot(0).config, 7u);
    }
    EXPECT_EQ(logged, "another process has written slot 0 of the shared ledger; this one continues in slot 0\n")
        << "once a minute";
    EXPECT_EQ(users[0].elsewhere, 0);
}

TEST_F(SharedTest, WhoFindsNoOtherSlotGoesOnAndTakesOneThatIsFree)
{
    two(1, 1);
    const auto old = std::move(parties[0]);
    join(0);
    for (uint32_t n = FirstShared; n < Slots; ++n)
        taken.push_back(std::make_unique<OwnSlot>(*segment, n, Kind::Gateway, now));
    EXPECT_FALSE(old->settle(now));
    taken.pop_back();
    EXPECT_TRUE(old->settle(now));
    EXPECT_EQ(slot(Slots - 1).life.load() & 0xff, static_cast<uint64_t>(Kind::Worker));
}

TEST_F(SharedTest, TheFirstWorkerOfAMachineReadsItsInterface)
{
    two(1, 1);
    for (const auto &p : parties)
        p->measured({5, Rate, 0}, {0, 0, true});
    for (const auto &p : parties)
        EXPECT_TRUE(p->settle(now));
    EXPECT_TRUE(parties[0]->measures());
    EXPECT_FALSE(parties[1]->measures());
    parties[0]->measured({5, Rate, 0}, {0, 0, false});
    EXPECT_TRUE(parties[1]->settle(now));
    EXPECT_TRUE(parties[1]->measures()) << "the first has no counter";
    parties[0]->measured({5, Rate, 0}, {0, 0, true});
    now += DeadAfter + Ledger::Every;
    EXPECT_TRUE(parties[1]->settle(now));
    EXPECT_TRUE(parties[1]->measures()) << "the first is dead";
}

TEST_F(SharedTest, NonsenseOfAnotherIsLeftOutAndSaidOnce)
{
    two(1, 1);
    slot(7).life = 0x101;
    slot(7).heartbeat = static_cast<uint64_t>(now);
    slot(7).places = UINT64_MAX;
    settle();
    settle();
    EXPECT_EQ(parties[0]->look(now).places, 0u);
    EXPECT_EQ(logged, "the shared ledger has invalid values in slot 7, which is ignored\n"
                      "the shared ledger has invalid values in slot 7, which is ignored\n") << "by each party";
}

TEST_F(SharedTest, WhatOthersMeasureCountsWhereWeHaveNoCounter)
{
    two(1, 1);
    parties[1]->measured({5, Rate, 0}, {1000, 600, false});
    parties[0]->settle(now);
    parties[1]->measured({5, Rate, 0}, {1700, 900, false});
    parties[0]->settle(now);
    EXPECT_EQ(parties[0]->look(now).received, 1700);
    EXPECT_EQ(parties[0]->look(now).own, 900);
    parties[0]->measured({5, Rate, 0}, {0, 0, true});
    parties[1]->measured({5, Rate, 0}, {2000, 1000, true});
    parties[0]->settle(now);
    EXPECT_EQ(parties[0]->look(now).received, 1700) << "the interface is the same";
    EXPECT_EQ(parties[0]->look(now).own, 1000);
    parties[1]->measured({5, Rate, 0}, {1e17, 1e17, false});
    parties[0]->measured({5, Rate, 0}, {0, 0, false});
    parties[0]->settle(now);
    EXPECT_EQ(parties[0]->look(now).received, 1700) << "no link carries so much";
}

TEST_F(SharedTest, WhatOthersSeeOfTheWayToServersIsTold)
{
    two(1, 1);
    for (const uint64_t packets : {1000, 1500}) {
        parties[1]->measured({5, Rate, 0}, {0, 0, true, {{12, 70 * Ms, 40 * Ms}, packets, packets / 50}});
        parties[0]->settle(now);
    }
    const auto &others = parties[0]->look(now);
    ASSERT_EQ(others.queues.size(), 1u);
    EXPECT_EQ(others.queues[0].trips, 12u);
    EXPECT_EQ(others.queues[0].queue, 70 * Ms);
    EXPECT_EQ(others.queues[0].base, 40 * Ms);
    EXPECT_EQ(others.packets, 1500u);
    EXPECT_EQ(others.outOfOrder, 30u);
    for (const auto field : {&Slot::trips, &Slot::queue, &Slot::base}) {
        const auto before = (slot(1).*field).exchange(UINT64_MAX);
        parties[0]->settle(now);
        EXPECT_TRUE(others.queues.empty()) << "nonsense";
        slot(1).*field = before;
    }
    slot(1).packets = 0;
    parties[0]->settle(now);
    EXPECT_EQ(others.packets, 1500u) << "nobody can have had so many";
    now += DeadAfter + Ledger::Every;
    parties[0]->settle(now);
    EXPECT_TRUE(others.queues.empty()) << "the other is dead";
}

} // namespace
} // namespace msfrs
