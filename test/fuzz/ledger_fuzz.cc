// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A shared ledger with arbitrary memory contents. It is refused with a message, or read within its ranges: a party
/// that joins it gets figures that its scheduler can use, a report adds up, and a list of classes is a possible one.
#include "ledger/directory.h"
#include "ledger/quota_table.h"
#include "ledger/report.h"
#include "ledger/shared.h"
#include "ledger/users.h"
#include "require.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

using namespace msfrs;
using namespace msfrs::ledger;

namespace {

/// Fills memory with repetitions of the input.
void Fill(void *const memory, const size_t length, const uint8_t *const data, const size_t size)
{
    for (size_t n = 0; n < length; n += size)
        std::memcpy(static_cast<char *>(memory) + n, data, std::min(size, length - n));
}

void Join(Segment &segment, const uint32_t number, const msfrs_time now)
{
    SharedLedger party(segment, {Kind::Worker, number, 1}, [](int, const std::string &) {}, now);
    party.served(0, "gold", 1);
    const auto user = party.enter("gold", "a", 4, 7, 1);
    msfrs_time then = now;
    for (int n = 0; n < 4; ++n) {
        const auto &others = party.look(then);
        Require(others.places <= Slots * MostPlaces && others.received >= 0 && std::isfinite(others.received) &&
                others.own >= 0 && std::isfinite(others.own));
        for (const auto &queue : others.queues)
            Require(queue.trips <= MostTrips && queue.queue >= 0 && queue.base >= 0);
        party.say({1, 1, 1, 1000 * n, 16384, 16384}, then);
        party.turn(true);
        Require(party.lookAt() >= 0 && party.lookAt() < then + Ledger::Every);
        Require(party.exchange(user, 7 + 1000u * static_cast<uint64_t>(n), 1, n != 2 ? 3 : 0) >= 0);
        Require(party.waitingElsewhere(user) <= Columns * MostCount);
        party.measured({2, 1e6, 0.5}, {1e5 * n, 1e5 * n, n > 1});
        Require(party.settle(then));
        if (const auto window = party.follow())
            Require(window->limit >= 1 && window->limit <= MostPlaces && window->rate > 0 && window->utilisation >= 0);
        const auto own = ReadSlot(segment.slots[number], then);
        Require(own && std::isfinite(own->tag) && own->demand >= 0 && own->demand <= 4);
        then += Ledger::Every;
    }
    party.leave(user);
    double shares = 0;
    for (const auto &p : Parties(segment, then - Ledger::Every)) {
        Require(p.share >= 0 && std::isfinite(p.share));
        shares += p.share;
    }
    Require(shares < 1 + 1e-9);
    segment.slots[number].life = 0; // as if another party had taken it: nothing is cleaned up, which would be slow
}

/// Squid's entries, with nonsense among them, one party that asks and one that answers.
void Look(Directory &directory, const uint8_t *const data, const size_t size, const msfrs_time now)
{
    const auto classes = offsetof(Directory, classes);
    if (data[0] & 32)
        TellClasses(directory, {{"gold", 4}, {"silver", 2}}, data[1] & 1);
    else
        Fill(&directory, classes + 4 * sizeof(ClassEntry), data, size);
    if (const auto list = ReadClasses(directory)) {
        Require(!list->classes.empty() && list->classes.size() <= Directory::Classes);
        Require(list->other < list->classes.size());
        for (const auto &cls : list->classes)
            Require(cls.name.size() <= 32 && cls.weight > 0 && std::isfinite(cls.weight));
    }
    const auto address = IpBits4(0x0a000000u + data[2]);
    OwnerOf(directory, address, now);
    if (const auto place = FindAddress(directory, address); place != NoEntry) {
        auto &entry = directory.addresses[place];
        Fill(&entry.seen, 5 * sizeof(Word), data, size);
        Requested(directory, address, {5, 6}, now);
        if (const auto owner = OwnerOf(directory, address, now))
            Require(owner->cls == 5 && owner->user == 6);
    }
}

/// Counts of quotas, likewise.
void Count(QuotaTable &table, const uint8_t *const data, const size_t size)
{
    const auto gold = UserKey("gold", "a"), bulk = UserKey("bulk", "a");
    Fill(&table, offsetof(QuotaTable, used), data, size);
    Fill(&table.accounts, 3 * sizeof(QuotaAccount), data, size);
    table.accounts[data[1] % 4].key = ClassKey("gold");
    for (const auto user : {gold, bulk}) {
        for (uint32_t n = 0; n < Probes; ++n) {
            const auto place = (user + n) % QuotaTable::Entries;
            Fill(&table.entries[place], sizeof(QuotaEntry), data + n % size, size - n % size);
            table.used[place / 64] = ~uint64_t(0);
        }
        if (data[0] & 64)
            table.entries[(user + data[2] % Probes) % QuotaTable::Entries].key = user;
    }
    const auto account = AccountOf(table, ClassKey("gold"));
    Require(account < QuotaTable::Accounts);
    ServedAs(table, {1, gold});
    const auto place = TakeCount(table, gold, account, bulk, "a");
    Require(place < QuotaTable::Entries && table.entries[place].key == gold);
    CountBytes(table, gold, data[3]);
    AddBytes(table, table.entries[place], int64_t{1} << 62);
    AddKept(table, table.entries[place], 5);
    EachCount(table, [&](uint32_t, const QuotaEntry &entry) {
        const auto bytes = BytesIn(table, entry);
        Require(bytes >= 0 && bytes <= static_cast<int64_t>(MostQuotaBytes));
        Require(NameOf(entry).size() <= QuotaEntry::LongestName);
    });
    ServedAs(table, {1, gold});
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
    static const auto segment = std::make_unique<Segment>();
    if (size < 4)
        return 0;
    const msfrs_time now = 1'000'000'000'000;
    const auto key = UserKey("gold", "a");
    Fill(&segment->slots, sizeof(segment->slots), data, size);
    for (uint32_t n = 0; n < Probes; ++n)
        Fill(&segment->users[(key + n) % Users], sizeof(User), data + n % size, size - n % size);
    if (data[0] & 1)
        FormatSegment(segment.get());
    else
        Fill(&segment->header, sizeof(Header), data + 1, size - 1);
    if (data[0] & 2)
        segment->users[(key + data[1] % Probes) % Users].key = key;
    for (uint32_t n = 0; n < Slots; ++n) { // many are live, so that they are read
        if (data[n % size] & 4)
            segment->slots[n].heartbeat = static_cast<uint64_t>(now);
        if (data[n % size] & 8)
            segment->slots[n].life = uint64_t(n) << 8 | data[n % size] >> 4;
    }
    std::string why;
    const auto opened = OpenSegment(segment.get(), data[0] & 16 ? sizeof(Segment) : size, why);
    if (!opened) {
        Require(!why.empty() && why.size() < 300);
        return 0;
    }
    OwnSlot::Free(*opened, now);
    const uint32_t number = data[2] % Slots;
    opened->slots[number].heartbeat = 0; // never used: the whole table is not searched for its users
    Join(*opened, number, now);
    Look(opened->directory, data, size, now);
    Count(opened->quotas, data, size);
    return 0;
}
