// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The table of quotas in a segment: one count for each user of a class that has a quota, to which all add that serve
/// the user: each worker of Squid what it reads, msfrs-edge what passes it. So nobody owns a count, nothing is added up
/// or handed over when one of them dies, and all see at once who has had a quota.
///
/// Lock-free. A new user takes the first free entry of its probes by one compare-and-swap; there is no freeing, so two
/// who enter the same user meet at the same entry. Only if all its probes are in use, it takes the entry of who has had
/// least there. Bytes that are added at that moment may be lost or be the new user's, a read each at most. All but the
/// key, the count and the account of an entry is written again by whoever finds it wrong.
///
/// A count belongs to a *generation*: that of its class's period. When a period ends, the generation of the class
/// changes by one compare-and-swap, and all counts of it are 0.
#ifndef MSFRS_LEDGER_QUOTA_TABLE_H
#define MSFRS_LEDGER_QUOTA_TABLE_H

#include "ledger/directory.h"
#include "ledger/segment.h"

#include <memory>
#include <string>

namespace msfrs::ledger {

constexpr uint64_t MostQuotaBytes = (uint64_t(1) << 52) - 1; ///< a count stays there
constexpr uint64_t Generations = 2048;                       ///< 0 is that of nothing

/// QuotaAccount::period.
struct PeriodWord {
    uint64_t generation = 0;    ///< < Generations
    uint64_t kind = 0;          ///< < 4
    int64_t number = 0;         ///< -2^50..2^50-1

    static PeriodWord Of(uint64_t word);
    uint64_t word() const;
    /// What follows this one.
    PeriodWord next(uint64_t ofKind, int64_t with) const { return {generation % (Generations - 1) + 1, ofKind, with}; }
};

/// QuotaEntry::count.
struct CountWord {
    uint64_t generation = 0;    ///< < Generations
    bool kept = false;          ///< it has what was kept over a restart
    uint64_t bytes = 0;         ///< <= MostQuotaBytes

    static CountWord Of(uint64_t word);
    uint64_t word() const;
};

constexpr uint32_t NoCount = UINT32_MAX, NoAccount = UINT32_MAX;

/// \returns the index of the account of a class, made if there is none; NoAccount if all are in use
uint32_t AccountOf(QuotaTable &, uint64_t cls);

/// \returns the place of a user in QuotaTable::entries, or NoCount
uint32_t FindCount(const QuotaTable &, uint64_t user);

/// Finds the entry of a user, or takes one.
/// \param account index \param next UserKey() of the same user in the class `over` of the account
/// \returns NoCount if others were faster, again and again
uint32_t TakeCount(QuotaTable &, uint64_t user, uint32_t account, uint64_t next, std::string_view name);

/// \returns the name of the user of an entry; empty: it is not known, or is none
std::string NameOf(const QuotaEntry &);

/// \returns what the user of an entry had in the period that runs, 0..MostQuotaBytes
int64_t BytesIn(const QuotaTable &, const QuotaEntry &);

/// Adds what a user was charged.
/// \returns whether these bytes were the ones that passed the quota of its account, which `moves` says, too
bool AddBytes(QuotaTable &, QuotaEntry &, int64_t bytes);

/// Adds what was kept over a restart; does nothing if that has been done in this period.
void AddKept(QuotaTable &, QuotaEntry &, int64_t bytes);

/// The same as AddBytes() for who knows users by their keys alone. A user who is not in the table is in no class with a
/// quota, or Squid has not told of it yet.
void CountBytes(QuotaTable &, uint64_t user, int64_t bytes);

/// As whom a user is to be served, who may have had its quota.
Owner ServedAs(const QuotaTable &, Owner);

/// Calls visit(place, entry) for all entries that have a key.
template <class Table, class Visit>
void EachCount(Table &table, const Visit &visit)
{
    for (uint32_t n = 0; n < QuotaTable::Entries / 64; ++n) {
        for (auto bits = table.used[n].load(std::memory_order_relaxed); bits; bits &= bits - 1) {
            const auto place = n * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
            if (auto &entry = table.entries[place]; entry.key.load(std::memory_order_acquire) != 0)
                visit(place, entry);
        }
    }
}

/// Empty, for a process that shares it with nobody. Pages that are not used take no memory.
struct Unmap {
    void operator()(QuotaTable *) const;
};
using OwnQuotaTable = std::unique_ptr<QuotaTable, Unmap>;
/// \throws std::bad_alloc
OwnQuotaTable MakeQuotaTable();

} // namespace msfrs::ledger

#endif
