// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The table of quotas in a segment: one count for each user of a class with a quota. All parties that serve the user
/// add to it: each worker of Squid the bytes it reads, msfrs-edge those that pass it. So counts survive each party, and
/// all see at once which users have passed a quota.
///
/// Lock-free. A new user takes the first free entry of its probes by one compare-and-swap. Entries are never freed, so
/// two parties that enter the same user meet at the same entry. If all its probes are in use, the user takes over the
/// entry with the lowest count. Bytes that are added meanwhile may be lost or go to the new user, at most one read
/// each. A party that finds a wrong field rewrites it, except for the key, the count and the account of an entry.
///
/// A count belongs to a *generation*: that of its class's period. At the end of a period the generation of the class
/// changes by one compare-and-swap, which makes all its counts 0.
#pragma once

#include "ledger/directory.h"
#include "ledger/segment.h"

#include <memory>
#include <string>

namespace msfrs::ledger {

constexpr uint64_t MostQuotaBytes = (uint64_t(1) << 52) - 1; ///< a count saturates there
constexpr uint64_t Generations = 2048;                       ///< 0: none

/// QuotaAccount::period.
struct PeriodWord {
    uint64_t generation = 0;    ///< < Generations
    uint64_t kind = 0;          ///< < 4
    int64_t number = 0;         ///< -2^50..2^50-1

    static PeriodWord Of(uint64_t word);
    uint64_t word() const;
    /// The period after this one.
    PeriodWord next(uint64_t ofKind, int64_t with) const { return {generation % (Generations - 1) + 1, ofKind, with}; }
};

/// QuotaEntry::count.
struct CountWord {
    uint64_t generation = 0;    ///< < Generations
    bool kept = false;          ///< the count saved over a restart has been added
    uint64_t bytes = 0;         ///< <= MostQuotaBytes

    static CountWord Of(uint64_t word);
    uint64_t word() const;
};

constexpr uint32_t NoAccount = UINT32_MAX;

/// \returns the index of the account of a class, created if there is none; NoAccount if all are in use
uint32_t AccountOf(QuotaTable &, uint64_t cls);

/// Finds the entry of a user, or takes one.
/// \param account index \param next UserKey() of the same user in the class `over` of the account
/// \returns NoEntry if other parties were faster at every attempt
uint32_t TakeCount(QuotaTable &, uint64_t user, uint32_t account, uint64_t next, std::string_view name);

/// \returns the name of the user of an entry; empty: not known, or no user
std::string NameOf(const QuotaEntry &);

/// \returns the bytes of an entry's user in the current period, 0..MostQuotaBytes
int64_t BytesIn(const QuotaTable &, const QuotaEntry &);

/// Adds bytes charged to a user.
/// \returns whether these bytes passed the quota of its account; `moves` has grown then
bool AddBytes(QuotaTable &, QuotaEntry &, int64_t bytes);

/// Adds the count saved over a restart; does nothing if that has been done in this period.
void AddKept(QuotaTable &, QuotaEntry &, int64_t bytes);

/// The same as AddBytes() for callers that know users by their keys alone. A user who is not in the table has no class
/// with a quota, or Squid has not entered it yet.
void CountBytes(QuotaTable &, uint64_t user, int64_t bytes);

/// \returns the class and user as which a user is served, after any quotas it has used up
Owner ServedAs(const QuotaTable &, Owner);

/// Calls visit(place, entry) for all entries that have a key.
template <class Table, class Visit>
void EachCount(Table &table, const Visit &visit)
{
    for (uint32_t n = 0; n < QuotaTable::Entries / 64; ++n) {
        EachBit(table.used[n].load(Relaxed), [&](const uint32_t bit) {
            if (auto &entry = table.entries[n * 64 + bit]; entry.key.load(std::memory_order_acquire) != 0)
                visit(n * 64 + bit, entry);
        });
    }
}

/// An empty table private to this process. Unused pages take no memory.
struct Unmap {
    void operator()(QuotaTable *) const;
};
using OwnQuotaTable = std::unique_ptr<QuotaTable, Unmap>;
/// \throws std::bad_alloc
OwnQuotaTable MakeQuotaTable();

} // namespace msfrs::ledger
