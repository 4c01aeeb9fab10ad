// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/segment_board.h"

#include "ledger/report.h"
#include "ledger/shared.h"
#include "ledger/users.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace ledger;
using share::SegmentBoard;
using share::Sums;

constexpr int64_t Ms = 1'000'000, S = 1000 * Ms;

/// A segment in the test's memory, with parties that write as Squid's workers do.
class ShareBoard : public testing::Test {
protected:
    ShareBoard(): memory_(std::aligned_alloc(64, sizeof(Segment)), std::free)
    {
        std::memset(memory_.get(), 0, sizeof(Segment));
        FormatSegment(memory_.get());
        std::string why;
        segment = OpenSegment(memory_.get(), sizeof(Segment), why);
        board.use(segment);
    }

    OwnSlot worker(const uint32_t number) { return OwnSlot(*segment, number, Kind::Worker, now); }

    static void Charge(OwnSlot &slot, const uint32_t n, const uint64_t key, const uint64_t bytes, const double demand)
    {
        auto &cls = slot->classes[n];
        Set(cls.key, key);
        Set(cls.served, cls.served.load() + bytes);
        SetReal(cls.demand, demand);
    }
    void charge(const OwnSlot &slot, const uint64_t key, const uint64_t bytes, const uint64_t waiting,
                const uint64_t items)
    {
        const auto entry = TakeUser(*segment, key, slot.number(), true, Living(*segment, now));
        ASSERT_NE(entry, NoEntry);
        auto &column = segment->users[entry].columns[slot.number()];
        Set(column, Column(ColumnBytes(column.load()) + bytes, waiting, items));
        SetActive(segment->users[entry], key, slot.number(), items > 0);
    }
    const share::UserSums *told(const Sums &sums, const uint64_t key)
    {
        for (const auto &user : sums.users) {
            if (user.key == key)
                return &user;
        }
        return nullptr;
    }

    std::unique_ptr<void, void (*)(void *)> memory_;
    Segment *segment = nullptr;
    int64_t now = 100 * S;
    SegmentBoard board{2};
};

TEST_F(ShareBoard, SumsOfTheLocalParties)
{
    auto first = worker(0), second = worker(1);
    OwnSlot remote(*segment, 9, Kind::Gateway, now);
    Set(remote->places, 50);
    for (auto *const slot : {&first, &second}) {
        Set((*slot)->places, 3);
        Set((*slot)->waiting, 2);
        Set((*slot)->queued, 4);
        SetReal((*slot)->demand, 1.5);
        SetReal((*slot)->limit, slot == &first ? 9 : 7);
        SetReal((*slot)->rate, 2e7);
        Set((*slot)->metered, 1);
        Set((*slot)->received, 1000);
        Charge(*slot, 0, 77, 100, 1.5);
    }
    board.local(now); // counters are tracked from here on
    for (auto *const slot : {&first, &second}) {
        Set((*slot)->received, 5000); // the interface's counter: the same for both
        Set((*slot)->own, 300);
        Charge(*slot, 0, 77, 1000, 1.5);
    }
    const auto sums = board.local(now);
    EXPECT_EQ(board.parties(), 2u);
    EXPECT_EQ(sums.places, 6u);
    EXPECT_EQ(sums.waiting, 4u);
    EXPECT_EQ(sums.queued, 8u);
    EXPECT_EQ(sums.demand, 3);
    EXPECT_EQ(sums.limit, 9);
    EXPECT_EQ(sums.rate, 2e7);
    EXPECT_EQ(sums.received, 4000u);
    EXPECT_EQ(sums.own, 600u);
    ASSERT_EQ(sums.classes.size(), 1u);
    EXPECT_EQ(sums.classes[0].served, 2000u);
    EXPECT_EQ(sums.classes[0].demand, 3);
}

/// Counters never decrease, even if a party ends, returns, or another one measures.
TEST_F(ShareBoard, CountsGrowWhoeverLives)
{
    auto second = worker(1);
    Set(second->metered, 1);
    {
        auto first = worker(0);
        Set(first->metered, 1);
        board.local(now);
        Set(first->received, 1000);
        Set(second->received, 1000);
        Charge(first, 0, 77, 500, 1);
        EXPECT_EQ(board.local(now).received, 1000u);
    }
    Set(second->received, 3000);
    EXPECT_EQ(board.local(now).received, 3000u);
    auto again = worker(0);
    Set(again->received, 1 << 20);
    Set(again->metered, 1);
    EXPECT_EQ(board.local(now).received, 3000u);
    Set(again->received, (1 << 20) + 100);
    Set(second->received, 3100);
    EXPECT_EQ(board.local(now).received, 3100u);
    now += 2 * S; // without any heartbeat
    const auto sums = board.local(now);
    EXPECT_EQ(board.parties(), 0u);
    EXPECT_EQ(sums.received, 3100u);
    EXPECT_EQ(sums.places, 0u);
}

TEST_F(ShareBoard, UsersThatHadSomethingAreToldOf)
{
    auto first = worker(0), second = worker(1);
    charge(first, 1001, 1 << 30, 1, 1);
    board.local(now);
    charge(first, 1001, 500, 3, 5);
    charge(second, 1001, 700, 1, 2);
    charge(first, 1002, 0, 0, 1);
    auto sums = board.local(now);
    ASSERT_TRUE(told(sums, 1001));
    EXPECT_EQ(told(sums, 1001)->bytes, 1200u); // since it was first seen
    EXPECT_EQ(told(sums, 1001)->waiting, 4u);
    EXPECT_EQ(told(sums, 1001)->items, 7u);
    ASSERT_TRUE(told(sums, 1002));
    charge(first, 1002, 900, 0, 0); // it has work for less than an interval
    sums = board.local(now);
    ASSERT_TRUE(told(sums, 1002));
    EXPECT_EQ(told(sums, 1002)->bytes, 900u);
    EXPECT_EQ(told(sums, 1002)->items, 0u);
    now += SegmentBoard::Lately;
    first.beat(now);
    EXPECT_FALSE(told(board.local(now), 1002));
    charge(first, 1002, 50, 0, 1);
    EXPECT_EQ(told(board.local(now), 1002)->bytes, 950u); // the count continues
}

TEST_F(ShareBoard, OfManyUsersThoseWithMost)
{
    auto first = worker(0);
    constexpr uint64_t Many = 2000;
    for (uint64_t n = 0; n < Many; ++n)
        charge(first, 5000 + n, 0, 0, 1);
    board.local(now);
    for (uint64_t n = 0; n < Many; ++n)
        charge(first, 5000 + n, n, 0, 1);
    const auto sums = board.local(now);
    ASSERT_EQ(sums.users.size(), share::MostUsers);
    EXPECT_EQ(sums.users[0].key, 5000 + Many - 1);
    for (const auto &user : sums.users)
        EXPECT_GE(user.bytes, Many - share::MostUsers);
}

Sums Other()
{
    Sums s;
    s.places = 4;
    s.waiting = 2;
    s.queued = 3;
    s.demand = 2;
    s.received = 1000;
    s.own = 800;
    s.limit = 9;
    s.rate = 1e7;
    s.utilisation = 0.9;
    s.classes = {{77, 5000, 2}};
    s.users = {{2001, 10'000, 7, 9}, {2002, 500, 0, 0}};
    return s;
}

TEST_F(ShareBoard, AnotherGatewayIsAPartyLikeOthers)
{
    auto first = worker(0);
    SetReal(first->rate, 1e7);
    board.show(1, Other(), true, now);
    const auto parties = Parties(*segment, now);
    ASSERT_EQ(parties.size(), 2u);
    const auto &p = parties[1];
    EXPECT_GE(p.slot, FirstShared);
    EXPECT_LT(p.slot, Columns);
    EXPECT_EQ(p.now.kind, Kind::Gateway);
    EXPECT_TRUE(p.leads);
    EXPECT_EQ(p.now.places, 4u);
    EXPECT_EQ(p.now.waiting, 2u);
    EXPECT_EQ(p.now.demand, 2);
    EXPECT_EQ(p.figures.received, 1000u);
    EXPECT_EQ(p.figures.limit, 9);

    board.show(1, Other(), false, now);
    EXPECT_TRUE(Parties(*segment, now)[0].leads);
    board.hide(1);
    EXPECT_EQ(Parties(*segment, now).size(), 1u);
}

/// A gateway is shown with its fair share of slots: it is behind nobody, and it has not looked for more than 50 ms.
TEST_F(ShareBoard, NoPartyWaitsForTheTurnOfAnotherGateway)
{
    SharedLedger party(*segment, PartyParams(), [](int, const std::string &) {}, now);
    party.measured({8, 1e7, 0.9}, {});
    party.say({1, 5, 5, 0, 16384, 16384}, now);
    party.say({1, 5, 5, 100'000'000, 16384, 16384}, now); // it has had much service
    board.show(0, Other(), false, now);
    party.settle(now);
    now += 90 * Ms;
    const auto &others = party.look(now);
    EXPECT_EQ(others.places, 4u);
    EXPECT_EQ(others.waiting, 2u);
    EXPECT_TRUE(party.turn(false));
}

/// Others use only the growth of the counter, whatever its initial value.
TEST_F(ShareBoard, UsersOfAnotherGateway)
{
    auto sums = Other();
    board.show(0, sums, true, now);
    const auto number = Parties(*segment, now)[0].slot;
    const auto entry = Find(segment->users, 2001);
    ASSERT_NE(entry, NoEntry);
    EXPECT_EQ(Find(segment->users, 2002), NoEntry); // it has no work, and is unknown here
    auto &user = segment->users[entry];
    EXPECT_EQ(user.active.load(), uint64_t{1} << number);
    EXPECT_EQ(ColumnWaiting(user.columns[number].load()), 7u);
    EXPECT_EQ(ColumnItems(user.columns[number].load()), 9u);
    EXPECT_EQ(ColumnBytes(user.columns[number].load()), 0u);
    const auto before = user.columns[number].load();
    sums.users[0].bytes += 300;
    board.show(0, sums, true, now += 100 * Ms);
    board.show(0, sums, true, now += 100 * Ms); // the same report again
    EXPECT_EQ(ColumnGrowth(before, user.columns[number].load()), 300u);
    sums.users[0].bytes = 5; // its gateway was restarted
    board.show(0, sums, true, now += 100 * Ms);
    EXPECT_EQ(ColumnGrowth(before, user.columns[number].load()), 300u);
    sums.users[0].items = 0;
    sums.users[0].bytes = 105;
    board.show(0, sums, true, now += 100 * Ms);
    EXPECT_EQ(user.active.load(), 0u);
    EXPECT_EQ(ColumnGrowth(before, user.columns[number].load()), 400u);
    sums.users[0].items = 1;
    board.show(0, sums, true, now += 100 * Ms);
    EXPECT_NE(user.active.load(), 0u);
    sums.users.clear();
    board.show(0, sums, true, now += 100 * Ms);
    EXPECT_EQ(user.active.load(), 0u);
}

TEST_F(ShareBoard, ASlotThatWasTakenIsLeftAlone)
{
    board.show(0, Other(), false, now);
    const auto number = Parties(*segment, now)[0].slot;
    now += 10 * S; // we were stopped
    OwnSlot thief(*segment, number, Kind::Edge, now);
    Set(thief->places, 1);
    board.show(0, Other(), false, now);
    EXPECT_TRUE(thief.held());
    EXPECT_EQ(thief->places.load(), 1u);
    EXPECT_EQ(Parties(*segment, now).size(), 2u);
}

TEST_F(ShareBoard, WithoutASegmentOrRoom)
{
    board.use(nullptr);
    EXPECT_EQ(board.local(now).places, 0u);
    board.show(0, Other(), false, now);
    board.hide(0);
    board.use(segment);
    std::vector<std::unique_ptr<OwnSlot>> edges;
    for (uint32_t n = FirstShared; n < Columns; ++n)
        edges.push_back(std::make_unique<OwnSlot>(*segment, n, Kind::Edge, now));
    board.show(0, Other(), false, now);
    EXPECT_EQ(board.crowded(), 1u);
    EXPECT_EQ(Parties(*segment, now).size(), edges.size());
}

TEST_F(ShareBoard, NonsenseInTheSegmentGivesAMessageWithinItsRanges)
{
    unsigned random = 1;
    auto *const words = reinterpret_cast<Word *>(segment);
    for (int round = 0; round < 20; ++round) {
        for (size_t n = sizeof(Header) / 8; n < sizeof(Segment) / 8; ++n) {
            random = random * 1664525 + 1013904223;
            words[n].store(round % 2 ? uint64_t{random} << 32 | random : random >> 20);
        }
        for (uint32_t n = 0; n < Slots; ++n) {
            Set(segment->slots[n].life, uint64_t{5} << 8 | (n % 5));
            Set(segment->slots[n].heartbeat, static_cast<uint64_t>(now));
        }
        std::string why;
        EXPECT_TRUE(share::DecodeMessage(share::EncodeMessage(board.local(now)), why)) << why;
        board.show(0, Other(), true, now);
        now += 100 * Ms;
    }
    board.use(nullptr);
}

} // namespace
} // namespace msfrs::test
