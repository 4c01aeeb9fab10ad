// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The shared segment: its header, slots, users and report, and System V shared memory.
#include "ledger/hung_workers.h"
#include "ledger/mapping.h"
#include "ledger/report.h"
#include "ledger/users.h"
#include "support/host.h"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace msfrs::ledger {
namespace {

using test::Ms, test::Second;

class SegmentTest : public ::testing::Test {
protected:
    SegmentTest() { FormatSegment(segment.get()); }

    std::string refusal()
    {
        std::string why;
        return OpenSegment(segment.get(), sizeof(Segment), why) ? "accepted" : why;
    }
    std::unique_ptr<OwnSlot> take(const uint32_t n, const Kind kind = Kind::Worker)
    {
        auto slot = std::make_unique<OwnSlot>(*segment, n, kind, now);
        SetReal((*slot)->rate, 1e6);
        return slot;
    }
    uint32_t leader() { return Leader(*segment, now); }

    std::unique_ptr<Segment> segment = std::make_unique<Segment>();
    msfrs_time now = 1000 * Second;
};

TEST_F(SegmentTest, IsAsLargeAsItsDescriptionSays)
{
    EXPECT_EQ(sizeof(User), 128u);
    EXPECT_EQ(sizeof(Header), 64u);
    EXPECT_EQ(offsetof(Segment, slots), 64u);
    EXPECT_EQ(offsetof(Segment, users), 64 + 64 * sizeof(Slot));
    EXPECT_EQ(sizeof(AddressEntry), 64u);
    EXPECT_EQ(sizeof(Directory), 64u * 321 + 65536u * 64);
    EXPECT_EQ(sizeof(QuotaEntry), 192u);
    EXPECT_EQ(sizeof(QuotaTable), 64 + 8192 + 256 * sizeof(QuotaAccount) + 65536u * 192);
    EXPECT_LT(sizeof(Segment), (24u << 20) + (106u << 10));
    EXPECT_EQ(offsetof(Slot, received), 64u) << "what is read for each place is one cache line";
}

TEST_F(SegmentTest, AWorkerWithoutAHeartbeatHangsOnceEnoughLooksHaveSeenThat)
{
    const std::vector<pid_t> none, us = {getpid()};
    const auto silent = take(1), running = take(0), edge = take(20, Kind::Edge);
    HungWorkers hung;
    const auto after = [&](const int looks) {
        std::vector<pid_t> found;
        for (int n = 0; n < 10 * looks; ++n) {
            now += HungWorkers::LookEvery / 10;
            running->beat(now);
            const auto news = hung.look(*segment, now);
            found.insert(found.end(), news.begin(), news.end());
        }
        return found;
    };
    EXPECT_EQ(after(HungWorkers::Looks), none);
    now += 100 * Second;        // all of Squid was stopped
    silent->beat(now);
    EXPECT_EQ(after(HungWorkers::Looks), none);
    EXPECT_EQ(after(2), us);
    EXPECT_EQ(after(100), none) << "it is ended once";
    const auto next = take(1);  // the one in its place
    EXPECT_EQ(after(HungWorkers::Looks + 2), us);
}

TEST_F(SegmentTest, IsRefusedIfItIsAnother)
{
    EXPECT_EQ(refusal(), "accepted");
    segment->header.version = 7;
    EXPECT_EQ(refusal(), "it has version 7, and this program knows version 3");
    segment->header.version = Version;
    segment->header.size = 100;
    EXPECT_EQ(refusal(), "its header states 100 bytes, and it has " + std::to_string(sizeof(Segment)) +
                             ", where version 3 has " + std::to_string(sizeof(Segment)));
    segment->header.size = sizeof(Segment);
    segment->header.magic = 1;
    EXPECT_EQ(refusal(), "it is not a ledger of msfrs");
    std::string why;
    FormatSegment(segment.get());
    EXPECT_EQ(OpenSegment(segment.get(), 10, why), nullptr);
    EXPECT_EQ(why, "it has 10 bytes, less than its header");
    EXPECT_EQ(OpenSegment(segment.get(), sizeof(Segment) - 1, why), nullptr);
}

TEST_F(SegmentTest, KeysAreTheSameEverywhereAndTellClassFromUser)
{
    EXPECT_EQ(UserKey("gold", "10.0.0.1"), UserKey("gold", "10.0.0.1"));
    EXPECT_NE(UserKey("gold", "10.0.0.1"), UserKey("bronze", "10.0.0.1"));
    EXPECT_NE(UserKey("a", "bc"), UserKey("ab", "c"));
    EXPECT_NE(UserKey("gold", ""), ClassKey("gold"));
    EXPECT_EQ(ClassKey("gold"), 0x1f5429d1a61bbfbfu) << "another machine would find another user";
}

TEST_F(SegmentTest, ASlotLivesWhileItsHeartBeats)
{
    auto slot = take(3);
    EXPECT_TRUE(ReadSlot(segment->slots[3], now));
    EXPECT_TRUE(ReadSlot(segment->slots[3], now + DeadAfter - 1));
    EXPECT_FALSE(ReadSlot(segment->slots[3], now + DeadAfter));
    EXPECT_FALSE(ReadSlot(segment->slots[3], now - DeadAfter)) << "a heartbeat that is to come";
    EXPECT_TRUE(slot->beat(now + DeadAfter));
    EXPECT_TRUE(ReadSlot(segment->slots[3], now + DeadAfter));
    slot.reset();
    EXPECT_FALSE(ReadSlot(segment->slots[3], now + DeadAfter));
}

TEST_F(SegmentTest, WhoFindsAnotherEpochHasLostItsSlot)
{
    auto first = take(0);
    Set((*first)->places, 7);
    const auto entry = TakeUser(*segment, 99, 0, true, 0);
    auto second = take(0);
    EXPECT_FALSE(first->held());
    EXPECT_FALSE(first->beat(now + 1));
    EXPECT_EQ(ReadSlot(segment->slots[0], now)->places, 0u) << "a restarted party clears its slot";
    EXPECT_EQ(segment->users[entry].active, 0u) << "and its users";
    first.reset();
    EXPECT_TRUE(second->held()) << "the first leaves it alone";
    EXPECT_NE(ReadSlot(segment->slots[0], now)->epoch, 0u);
}

TEST_F(SegmentTest, NonsenseInASlotMakesItDead)
{
    const auto slot = take(5);
    const auto broken = [&] {
        bool found = false;
        const auto reading = ReadSlot(segment->slots[5], now, &found);
        EXPECT_EQ(reading.has_value(), !found);
        return found;
    };
    EXPECT_FALSE(broken());
    for (const double nonsense : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN(),
                                  std::numeric_limits<double>::infinity()}) {
        for (const auto field : {&Slot::tag, &Slot::demand}) {
            SetReal((**slot).*field, nonsense);
            EXPECT_TRUE(broken()) << nonsense;
            SetReal((**slot).*field, 0);
        }
        for (const auto field : {&Slot::limit, &Slot::rate, &Slot::utilisation}) {
            const auto before = ((**slot).*field).load();
            SetReal((**slot).*field, nonsense);
            EXPECT_FALSE(ReadFigures(segment->slots[5])) << nonsense;
            Set((**slot).*field, before);
        }
    }
    for (const auto field : {&Slot::places, &Slot::waiting, &Slot::queued}) {
        Set((**slot).*field, uint64_t(1) << 40);
        EXPECT_TRUE(broken());
        Set((**slot).*field, 0);
    }
    Set((**slot).floor, MostFloor);
    EXPECT_EQ(ReadFigures(segment->slots[5])->floor, MostFloor);
    Set((**slot).floor, MostFloor + 1);
    EXPECT_FALSE(ReadFigures(segment->slots[5]));
    segment->slots[5].life = segment->slots[5].life | 0x80;
    EXPECT_TRUE(broken()) << "a kind that does not exist";
}

TEST_F(SegmentTest, TheLowestWorkerLeads)
{
    EXPECT_EQ(leader(), Slots);
    const auto edge = take(9, Kind::Edge);
    EXPECT_EQ(leader(), Slots) << "an edge has no window";
    const auto two = take(2);
    EXPECT_EQ(leader(), 2u);
    auto one = take(1);
    EXPECT_EQ(leader(), 1u);
    EXPECT_EQ(Leader(*segment, now, 1), 2u);
    auto gateway = take(8, Kind::Gateway);
    EXPECT_EQ(leader(), 1u);
    Set((*gateway)->rank, LeadsUs);
    EXPECT_EQ(leader(), 8u);
    gateway.reset();
    SetReal((*one)->rate, 0);
    EXPECT_EQ(leader(), 2u) << "who has not said its window yet does not lead";
    now += DeadAfter;
    EXPECT_EQ(leader(), Slots);
}

TEST_F(SegmentTest, OthersThanWorkersTakeWhatIsFree)
{
    EXPECT_EQ(OwnSlot::Free(*segment, now), Columns - 1);
    const auto edge = take(Columns - 1, Kind::Edge);
    EXPECT_EQ(OwnSlot::Free(*segment, now), Columns - 2);
    EXPECT_EQ(OwnSlot::Free(*segment, now + DeadAfter), Columns - 1) << "of who has died";
    std::vector<std::unique_ptr<OwnSlot>> all;
    for (uint32_t n = FirstShared; n < Columns - 1; ++n)
        all.push_back(take(n, Kind::Gateway));
    EXPECT_EQ(OwnSlot::Free(*segment, now), Slots - 1) << "one without a column";
    for (uint32_t n = Columns; n < Slots; ++n)
        all.push_back(take(n, Kind::Gateway));
    EXPECT_EQ(OwnSlot::Free(*segment, now), std::nullopt);
}

TEST_F(SegmentTest, AWorkerTakesItsSlotFromAWorkerOnly)
{
    constexpr uint32_t Ninth = 8;
    const auto of = [this](const uint32_t n) { return OwnSlot::OfWorker(*segment, n, now); };
    const auto before = take(0);
    EXPECT_EQ(of(0), 0u) << "of the one that was killed a moment ago";
    const auto edge = take(Ninth, Kind::Edge);
    ASSERT_EQ(of(Ninth), Slots - 1);
    const auto worker = take(Slots - 1);
    EXPECT_TRUE(edge->held());
    EXPECT_EQ(of(Ninth + 1), Ninth + 1);
    now += DeadAfter;
    EXPECT_EQ(of(Ninth), Ninth) << "an edge that has died";
    std::vector<std::unique_ptr<OwnSlot>> all;
    for (uint32_t n = FirstShared; n < Slots; ++n)
        all.push_back(take(n, Kind::Gateway));
    EXPECT_EQ(of(Ninth), std::nullopt);
}

TEST_F(SegmentTest, AUserIsFoundByAll)
{
    const auto key = UserKey("gold", "a");
    EXPECT_EQ(Find(segment->users, key), NoEntry);
    const auto entry = TakeUser(*segment, key, 0, true, 3);
    ASSERT_NE(entry, NoEntry);
    EXPECT_EQ(TakeUser(*segment, key, 1, true, 3), entry);
    EXPECT_EQ(Find(segment->users, key), entry);
    EXPECT_EQ(segment->users[entry].active, 3u);
    EXPECT_TRUE(SetActive(segment->users[entry], key, 0, false));
    EXPECT_EQ(segment->users[entry].active, 2u);
    EXPECT_FALSE(SetActive(segment->users[entry], key + 1, 0, true));
    EXPECT_EQ(segment->users[entry].active, 2u) << "an entry of another";
}

TEST_F(SegmentTest, EntriesOfUsersWithoutWorkGoToOthers)
{
    const uint64_t key = 5;
    std::vector<uint32_t> entries;
    for (uint32_t n = 0; n < Probes; ++n) // the same low bits: all need the same entries
        entries.push_back(TakeUser(*segment, key + n * uint64_t(Users), n % 2, true, 3));
    const auto late = key + Probes * uint64_t(Users);
    EXPECT_EQ(TakeUser(*segment, late, 0, true, 3), NoEntry) << "all are in use";
    EXPECT_EQ(TakeUser(*segment, late, 0, true, 1), entries[1]) << "of a party that has died";
    EXPECT_EQ(segment->users[entries[1]].active, 1u);
    EXPECT_EQ(Find(segment->users, key + Users), NoEntry) << "its entry was taken";
    EXPECT_EQ(TakeUser(*segment, late, 0, true, 3), entries[1]);
}

TEST_F(SegmentTest, ColumnsGrowModulo40Bits)
{
    const auto before = Column(MostBytes - 9, 3, 4), after = Column(MostBytes - 9 + 30, 70000, 70000);
    EXPECT_EQ(ColumnGrowth(before, after), 30u);
    EXPECT_EQ(ColumnWaiting(before), 3u);
    EXPECT_EQ(ColumnItems(before), 4u);
    EXPECT_EQ(ColumnWaiting(after), 4095u);
    EXPECT_EQ(ColumnItems(after), 4095u);
    User user{};
    user.columns[0] = before;
    user.columns[4] = Column(100, 1, 1);
    EXPECT_EQ(ElsewhereBytes(user, 0), 100u);
    EXPECT_EQ(ElsewhereBytes(user, 20) - MostBytes + 9, 100u);
}

TEST_F(SegmentTest, OneReportForAll)
{
    const auto one = take(0), two = take(1), idle = take(2);
    Set((*one)->places, 3);
    SetReal((*one)->demand, 6);
    SetReal((*one)->limit, 9);
    Set((*one)->classes[0].key, ClassKey("gold"));
    Set((*one)->classes[0].served, 1000);
    Set((*two)->waiting, 2);
    SetReal((*two)->demand, 2);
    SetReal((*idle)->demand, 5);
    const auto all = Parties(*segment, now);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_TRUE(all[0].leads);
    EXPECT_FALSE(all[1].leads);
    EXPECT_DOUBLE_EQ(all[0].share, 0.75);
    EXPECT_DOUBLE_EQ(all[1].share, 0.25);
    EXPECT_DOUBLE_EQ(all[2].share, 0) << "it has nothing to do";
    EXPECT_EQ(all[1].now.waiting, 2u);
    EXPECT_EQ(all[0].figures.limit, 9);
}

std::string OpenRefusal(const std::string &name)
{
    try {
        Mapping::Open(name);
    } catch (const MappingError &e) {
        return e.what();
    }
    return "accepted";
}

TEST(Mapping, IsTheSameMemoryForWhoOpensIt)
{
    const auto name = "/msfrs-test-" + std::to_string(getpid());
    EXPECT_EQ(OpenRefusal(name), "shared memory " + name +
                                     ": cannot be opened: No such file or directory; the program that creates it does "
                                     "not run");
    {
        const auto made = Mapping::Create(name, 0600);
        EXPECT_THROW(Mapping::Create(name, 0600), MappingError);
        const auto opened = Mapping::Open(name);
        {
            const OwnSlot slot(made.segment(), 4, Kind::Edge, 5);
            EXPECT_EQ(ReadSlot(opened.segment().slots[4], 5)->kind, Kind::Edge);
        }
        made.segment().header.version = 1;
        EXPECT_EQ(OpenRefusal(name),
                  "shared memory " + name + ": it has version 1, and this program knows version 3");
    }
    EXPECT_NE(OpenRefusal(name), "accepted") << "it goes with who made it";
}

/// \returns how a process that does this ends; 0: normally
template <class Work>
int InAnotherProcess(const Work &work)
{
    const auto child = fork();
    if (child == 0) {
        for (const auto signal : {SIGBUS, SIGSEGV})
            std::signal(signal, SIG_DFL); // a sanitizer's handler would report it
        try {
            work();
        } catch (const std::exception &e) {
            std::fprintf(stderr, "%s\n", e.what());
            _exit(2);
        }
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

void TouchAll(Segment &segment)
{
    constexpr size_t Page = 4096;
    const auto words = reinterpret_cast<Word *>(&segment);
    for (size_t n = Page / sizeof(Word); n < sizeof(Segment) / sizeof(Word); n += Page / sizeof(Word))
        words[n].fetch_add(1);
}

/// The memory of a new segment is allocated completely, however full /dev/shm is.
TEST(Mapping, AFullFileSystemEndsNobody)
{
    const auto name = "/msfrs-test-full-" + std::to_string(getpid());
    const auto status = InAnotherProcess([&] {
        if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("msfrs", "/dev/shm", "tmpfs", 0, "size=64k") != 0)
            _exit(3);
        const auto made = Mapping::Create(name, 0600);
        TouchAll(made.segment());
        TouchAll(Mapping::Open(name).segment());
    });
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        GTEST_SKIP() << "needs the right to mount";
    EXPECT_EQ(status, 0);
}

/// A process that may write to it cannot truncate it, by any name.
TEST(Mapping, CannotBeTruncated)
{
    const auto name = "/msfrs-test-cut-" + std::to_string(getpid());
    EXPECT_EQ(InAnotherProcess([&] {
        const auto made = Mapping::Create(name, 0600);
        if (truncate(("/dev/shm" + name).c_str(), 0) == 0)
            std::fprintf(stderr, "it is a file\n");
        TouchAll(made.segment());
    }), 0);
}

TEST(Mapping, SaysWhatToDoWhereTheKernelAllowsNoMore)
{
    const auto status = InAnotherProcess([] {
        if (unshare(CLONE_NEWIPC) != 0)
            _exit(3);
        std::ofstream("/proc/sys/kernel/shmmni") << 0;
        try {
            Mapping::Create("/msfrs-test", 0600);
            _exit(4);
        } catch (const MappingError &e) {
            EXPECT_EQ(std::string(e.what()), "shared memory /msfrs-test: cannot be created: No space left on device; "
                                             "kernel.shmmax, shmall or shmmni (sysctl) allow no more: raise them, or "
                                             "remove unused segments (ipcs -m)");
            _exit(testing::Test::HasFailure() ? 5 : 0);
        }
    });
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        GTEST_SKIP() << "needs the right to have an IPC namespace";
    EXPECT_EQ(status, 0);
}

TEST(Mapping, RemovesWhatWasLeftAndNothingElse)
{
    const auto name = "/msfrs-test-left-" + std::to_string(getpid());
    EXPECT_EQ(InAnotherProcess([&] {
        Mapping::Create(name, 0600).segment();
        new Mapping(Mapping::Create(name, 0600)); // as if it were killed
    }), 0);
    const auto left = Mapping::Open(name);
    EXPECT_THROW(Mapping::Create(name, 0600), MappingError);
    left.segment().header.magic = 1;
    Mapping::Remove(name);
    EXPECT_EQ(Mapping::Find(name), left.id()) << "no ledger";
    left.segment().header.magic = Magic;
    Mapping::Remove(name);
    EXPECT_EQ(Mapping::Find(name), -1);
    const auto made = Mapping::Create(name, 0600);
    EXPECT_NE(made.id(), left.id());
}

} // namespace
} // namespace msfrs::ledger
