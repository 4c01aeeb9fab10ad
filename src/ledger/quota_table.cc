// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/quota_table.h"

#include "ledger/users.h"

#include <algorithm>
#include <new>
#include <sys/mman.h>

namespace msfrs::ledger {

namespace {

constexpr unsigned GenerationShift = 53, KindShift = 51, KeptShift = 52; ///< bits; generations have 11
constexpr uint64_t NumberMask = (uint64_t(1) << KindShift) - 1;

void SetUsed(QuotaTable &table, const uint32_t place)
{
    const auto bit = Bit(place % 64);
    if ((table.used[place / 64].load(Relaxed) & bit) == 0)
        table.used[place / 64].fetch_or(bit);
}

/// Null if the entry has no valid account.
template <class Table>
auto AccountIn(Table &table, const QuotaEntry &entry) -> decltype(&table.accounts[0])
{
    const auto number = entry.account.load(std::memory_order_acquire);
    return number >= 1 && number <= QuotaTable::Accounts ? &table.accounts[number - 1] : nullptr;
}

uint64_t GenerationOf(const QuotaAccount &account) { return PeriodWord::Of(account.period.load(Relaxed)).generation; }

/// Writes the fields that do not depend on the period, if they differ.
void Describe(QuotaEntry &entry, const uint32_t account, const uint64_t next, const std::string_view name)
{
    if (entry.next.load(Relaxed) != next)
        entry.next.store(next, Relaxed);
    if (entry.account.load(Relaxed) != account + 1)
        entry.account.store(account + 1, std::memory_order_release);
    if (entry.length.load(Relaxed) != 0)
        return;
    StoreText(entry.name, name);
    entry.length.store(std::min(name.size(), QuotaEntry::LongestName), std::memory_order_release);
}

/// Gives an entry to another user, whose count begins at 0.
bool TakeOver(QuotaEntry &entry, const uint64_t user)
{
    auto before = entry.key.load();
    entry.length.store(0);
    entry.account.store(0); // so that no party adds to it under this name
    entry.count.store(0);
    return entry.key.compare_exchange_strong(before, user);
}

/// Adds to a count of the current period. \returns it before and after, both 0 if `once` and that has been done
std::pair<uint64_t, uint64_t> Add(const QuotaAccount &account, QuotaEntry &entry, const int64_t bytes, const bool once)
{
    auto before = entry.count.load(Relaxed);
    for (;;) {
        auto count = CountWord::Of(before);
        const auto generation = GenerationOf(account);
        if (count.generation != generation)
            count = {generation, false, 0};
        if (once && count.kept)
            return {0, 0};
        const auto had = count.bytes;
        count.bytes += std::min(static_cast<uint64_t>(bytes), MostQuotaBytes - had);
        count.kept |= once;
        if (entry.count.compare_exchange_weak(before, count.word()))
            return {had, count.bytes};
    }
}

} // namespace

PeriodWord PeriodWord::Of(const uint64_t word)
{
    const auto number = static_cast<int64_t>(word << (64 - KindShift)) >> (64 - KindShift);
    return {word >> GenerationShift, word >> KindShift & 3, number};
}

uint64_t PeriodWord::word() const
{
    return generation << GenerationShift | kind << KindShift | (static_cast<uint64_t>(number) & NumberMask);
}

CountWord CountWord::Of(const uint64_t word)
{
    return {word >> GenerationShift, (word >> KeptShift & 1) != 0, word & MostQuotaBytes};
}

uint64_t CountWord::word() const
{
    return generation << GenerationShift | uint64_t(kept) << KeptShift | bytes;
}

uint32_t AccountOf(QuotaTable &table, const uint64_t cls)
{
    for (auto &account : table.accounts) {
        uint64_t before = 0;
        if (account.key.load() == cls || account.key.compare_exchange_strong(before, cls) || before == cls)
            return static_cast<uint32_t>(&account - table.accounts);
    }
    for (auto &account : table.accounts) { // that of a class that no longer has a quota
        auto before = account.key.load();
        if (account.limit.load() == 0 && account.key.compare_exchange_strong(before, cls)) {
            account.period.store(PeriodWord::Of(account.period.load()).next(0, 0).word());
            account.passed.store(0);
            return static_cast<uint32_t>(&account - table.accounts);
        }
    }
    return NoAccount;
}

uint32_t TakeCount(QuotaTable &table, const uint64_t user, const uint32_t account, const uint64_t next,
                   const std::string_view name)
{
    const auto taken = [&](const uint32_t place) {
        SetUsed(table, place); // first: no party looks further at an entry whose name is known
        Describe(table.entries[place], account, next, name);
        return place;
    };
    for (int attempt = 0; attempt < Attempts; ++attempt) {
        uint32_t least = Place(table.entries, user, 0);
        for (uint32_t n = 0; n < Probes; ++n) {
            const auto place = Place(table.entries, user, n);
            auto &entry = table.entries[place];
            uint64_t before = 0;
            if (entry.key.load() == user || entry.key.compare_exchange_strong(before, user) || before == user)
                return taken(place);
            if (BytesIn(table, entry) < BytesIn(table, table.entries[least]))
                least = place;
        }
        if (TakeOver(table.entries[least], user))
            return taken(least);
    }
    return NoEntry;
}

std::string NameOf(const QuotaEntry &entry)
{
    return LoadText(entry.name, entry.length.load(std::memory_order_acquire));
}

int64_t BytesIn(const QuotaTable &table, const QuotaEntry &entry)
{
    const auto account = AccountIn(table, entry);
    const auto count = CountWord::Of(entry.count.load(Relaxed));
    const bool runs = account && count.generation != 0 && count.generation == GenerationOf(*account);
    return runs ? static_cast<int64_t>(count.bytes) : 0;
}

bool AddBytes(QuotaTable &table, QuotaEntry &entry, const int64_t bytes)
{
    const auto account = AccountIn(table, entry);
    if (!account || bytes < 0)
        return false;
    const auto [before, after] = Add(*account, entry, bytes, false);
    if (table.changed.load(Relaxed) == 0)
        table.changed.store(1);
    const auto limit = account->limit.load(Relaxed);
    if (limit == 0 || before >= limit || after < limit)
        return false;
    account->passed.fetch_add(1);
    table.moves.fetch_add(1);
    return true;
}

void AddKept(QuotaTable &table, QuotaEntry &entry, const int64_t bytes)
{
    const auto account = AccountIn(table, entry);
    if (!account || bytes < 0)
        return;
    const auto [before, after] = Add(*account, entry, bytes, true);
    const auto limit = account->limit.load(Relaxed);
    if (before < limit && after >= limit) // by earlier bytes: this does not count as passing the quota now
        table.moves.fetch_add(1);
}

void CountBytes(QuotaTable &table, const uint64_t user, const int64_t bytes)
{
    if (table.limited.load(Relaxed) == 0)
        return;
    const auto place = Find(table.entries, user);
    if (place != NoEntry)
        AddBytes(table, table.entries[place], bytes);
}

Owner ServedAs(const QuotaTable &table, Owner owner)
{
    if (table.limited.load(Relaxed) == 0)
        return owner;
    for (uint32_t steps = 0; steps < QuotaTable::Accounts; ++steps) { // bounded, in case of an invalid cycle
        const auto place = Find(table.entries, owner.user);
        if (place == NoEntry)
            return owner;
        const auto &entry = table.entries[place];
        const auto account = AccountIn(table, entry);
        const auto limit = account ? account->limit.load(Relaxed) : 0;
        if (limit == 0 || static_cast<uint64_t>(BytesIn(table, entry)) < limit)
            return owner;
        const Owner next{account->over.load(Relaxed), entry.next.load(Relaxed)};
        if (next.cls == 0 || next.user == 0)
            return owner;
        owner = next;
    }
    return owner;
}

void Unmap::operator()(QuotaTable *const table) const { munmap(table, sizeof(*table)); }

OwnQuotaTable MakeQuotaTable()
{
    const auto memory = mmap(nullptr, sizeof(QuotaTable), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    return OwnQuotaTable(static_cast<QuotaTable *>(memory));
}

} // namespace msfrs::ledger
