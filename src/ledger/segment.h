// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The memory that the parties of one link share. Each party (a worker of Squid, msfrs-edge, another gateway by
/// msfrs-share) publishes its service and its demand here.
///
/// The layout, version 3:
///   - A header, 64 slots, a table of 65,536 users, a directory of as many addresses (directory.h), and the quota
///     counts of as many users (quota_table.h); 24 MiB and 104 KiB in all. Every field is a 64-bit word in the machine's
///     order; a real number is the bits of a double. All zero is empty: FormatSegment() only writes the header.
///   - A slot is a party. Only its party writes it, without locks. It is live while its heartbeat is younger than
///     DeadAfter. To take a slot, a party writes another epoch into `life` and clears the rest. A party that finds an
///     epoch other than its own has lost the slot: it writes no more there, and takes it or another one anew.
///   - Worker n (from 0) has slot n, unless another kind of party lives there: then a free one, from the last on down.
///     Other parties take a free or a dead one: those with a column first, from the last down to FirstShared, so that
///     a ninth worker finds its own.
///   - A user is found by UserKey() of the names of class and user, which is the same on every gateway: linear probing
///     from the key's low bits, over Probes entries. The first 14 slots have a Column() in it, so that a user takes two
///     cache lines. Of a party beyond them, others see that it has a user, but not what it charged. Columns have no
///     origin, only growth counts: an entry whose user has no work at any party may be reused. A user without an entry
///     is scheduled by each party alone, which logs this once.
///   - Byte counts grow and wrap. Readers check every value: see Slot's ranges and slots.h.
#pragma once

#include "plugin/msfrs_plugin.h"
#include "window/window_floor.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace msfrs::ledger {

constexpr uint64_t Magic = 0x4c5352464d534d01, Version = 3;
/// A slot for each bit of User::active. With 14 columns a User fills two cache lines. The others bound the
/// memory: further classes share the last of SlotClasses, and further users are scheduled by each party alone.
constexpr uint32_t Slots = 64, Columns = 14, SlotClasses = 32, Users = 65536;
constexpr uint32_t FirstShared = 8;             ///< slots from here on are also for parties other than workers
constexpr msfrs_time DeadAfter = 1'000'000'000; ///< ns without a heartbeat, which is due ten times as often

/// A field of the segment.
using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8, "another process must see the same word");
constexpr auto Relaxed = std::memory_order_relaxed;

enum class Kind : uint8_t { Free, Worker, Edge, Gateway };
constexpr uint8_t Kinds = 4;

/// The leader, whose W+ all follow, is the live slot with the least rank, and of these the one with the lowest number.
enum Rank : uint64_t { LeadsUs = 0, Ours = 1, FollowsUs = 2, Never = 3 };

/// Service and demand of one class at a party. A gateway shows none: see chargeClasses().
struct SlotClass {
    Word key;     ///< ClassKey(); 0: none. The last of SlotClasses has all further classes, with OtherClasses
    Word served;  ///< bytes charged, grows
    Word demand;  ///< double >= 0: its part of Slot::demand
};
constexpr uint64_t OtherClasses = 1;

/// One party. The first cache line has the fields that others read for each release.
struct alignas(64) Slot {
    Word life;        ///< epoch << 8 | Kind; the epoch changes with every party that takes the slot
    Word heartbeat;   ///< ns of CLOCK_MONOTONIC, latest
    Word places;      ///< responses in service, or thousandths of C; `limit` of them fill the link; <= MostPlaces
    Word waiting;     ///< requests that wait for a window slot and would take one now
    Word queued;      ///< requests that wait for their first service
    Word tag;         ///< double >= 0: service for its demand, bytes per weight; see shared.h
    Word demand;      ///< double >= 0: sum over its active users of the weight, each times the part of the user's
                      ///< requests with work that are here
    Word rank;        ///< enum Rank

    Word received;    ///< bytes that the link has carried as far as this party measures, grows
    Word metered;     ///< 1: `received` is an interface's count, the same for a whole machine; 0: bytes that it read
    Word limit;       ///< double 1..MostPlaces: W+ as last computed or adopted, or 1000
    Word own;         ///< of the bytes that the link carried, those of this party's responses, grows
    Word rate;        ///< double > 0: C, bit/s
    Word utilisation; ///< double >= 0: U of the last interval
    Word pid;         ///< of the writer, for reports
    Word config;      ///< a number for its configuration, for reports: all should have the same
    SlotClass classes[SlotClasses];

    Word trips;       ///< recent RTT samples of its connections to servers, at most MostTrips
    Word queue;       ///< ns, at most LongestPath: a low quantile of their excess over the base RTT
    Word base;        ///< ns, at most LongestPath: mean base RTT; 0: not known
    Word packets;     ///< received by these connections, grows
    Word outOfOrder;  ///< of these, the ones that arrived out of order; grows
    Word target;      ///< ns, at most LongestPath: q*; 0: not known
    Word floor;       ///< WindowFloor::Phase, at most MostFloor; 0: not known
};
/// Beyond these a slot is invalid. No gateway has so many connections, and no path lasts an hour (ns).
constexpr uint64_t MostPlaces = 1 << 20, MostTrips = 1 << 20, LongestPath = 3'600'000'000'000;
constexpr auto MostFloor = static_cast<uint64_t>(WindowFloor::Phase::Vain);

/// One user of one class.
struct alignas(64) User {
    Word key;               ///< UserKey(); 0: free
    Word active;            ///< bit n: has work at the party in slot n; set and cleared by atomic or, and
    Word columns[Columns];  ///< Column(): by slots
};

/// A class of Squid.
struct ClassEntry {
    Word key;       ///< ClassKey() of its name
    Word weight;    ///< double > 0, of each of its users
    Word name[4];   ///< 32 bytes, padded with zeros
};

/// The owner of an address.
struct alignas(64) AddressEntry {
    Word key;       ///< AddressKey(); 0: free; BusyAddress: being reassigned
    Word high, low; ///< the address, most significant bits first; IPv4 as ::ffff:a.b.c.d
    Word seen;      ///< ns of CLOCK_MONOTONIC of the latest traffic or query for it, within seconds
    Word told;      ///< ns of Squid's latest answer; 0: none yet
    Word requested; ///< ns of its latest request, which gave the answer; 0: given by the address alone
    Word cls, user; ///< ClassKey(), UserKey()
};
constexpr uint64_t BusyAddress = 1;

/// Squid's answers to parties that see packets. They write queries, in a ring; Squid writes the rest.
struct alignas(64) Directory {
    /// Entries, which bound the memory. A query that is overwritten in the ring is repeated (AskSoon).
    static constexpr uint32_t Questions = 1024, Classes = 256, Addresses = 65536;

    Word revision;  ///< of the classes: odd while they are changed, grows
    Word count;     ///< of classes
    Word other;     ///< ClassKey() of the default one
    Word asked;     ///< queries so far
    Word questions[Questions];  ///< number n, from 0, at n modulo Questions: index into `addresses`
    ClassEntry classes[Classes];
    AddressEntry addresses[Addresses];
};

/// A class with a quota; see quota/quotas.h.
struct alignas(64) QuotaAccount {
    Word key;       ///< ClassKey(); 0: free
    Word limit;     ///< bytes that a user may have in a period; 0: the class no longer has a quota
    Word over;      ///< ClassKey() of the class to which users who have had them are moved
    Word period;    ///< PeriodWord: the current one; 0: none yet
    Word passed;    ///< how often a user passed the quota, grows
};

/// The quota count of a user in a class.
struct alignas(64) QuotaEntry {
    static constexpr size_t LongestName = 128; ///< bytes

    Word key;       ///< UserKey(); 0: free
    Word count;     ///< CountWord: valid for the period of the same generation; for another one it is 0
    Word account;   ///< index plus 1; 0: not known yet
    Word next;      ///< UserKey() of the same user in the class `over`
    Word length;    ///< of the name; 0: not known yet
    Word name[LongestName / 8]; ///< padded with zeros
};

/// All quota counts. Squid's workers write it, and msfrs-edge adds the bytes that it charges.
struct alignas(64) QuotaTable {
    static constexpr uint32_t Accounts = 256, Entries = 65536; ///< classes with a quota; their users: bound the memory

    Word limited;   ///< number of classes that have a quota
    Word moves;     ///< grows when users have to be moved to another class
    Word clock;     ///< s: last reading of the wall clock; see quota/quota_period.h
    Word loaded;    ///< 1: the counts saved over a restart have been loaded
    Word changed;   ///< 1: bytes were counted since the last save
    Word savedAt;   ///< s of `clock`
    Word used[Entries / 64];    ///< bit n: entry n may have a key; saves visiting all of them
    QuotaAccount accounts[Accounts];
    QuotaEntry entries[Entries];
};

struct alignas(64) Header {
    Word magic, version, size;
    Word epoch;             ///< that of the latest party; grows
};

struct Segment {
    Header header;
    Slot slots[Slots];
    User users[Users];
    Directory directory;
    QuotaTable quotas;
};

constexpr uint64_t MostBytes = 0xffffffffff, MostCount = 0xfff; ///< in a column

/// The state of a user at a party: bytes charged, modulo 2^40; how many of its requests wait for their first service,
/// and how many have work in all, each at most MostCount.
constexpr uint64_t Column(const uint64_t bytes, const uint64_t waiting, const uint64_t items)
{
    return bytes << 24 | (waiting < MostCount ? waiting : MostCount) << 12 | (items < MostCount ? items : MostCount);
}
constexpr uint64_t ColumnBytes(const uint64_t column) { return column >> 24; }
constexpr uint64_t ColumnWaiting(const uint64_t column) { return column >> 12 & MostCount; }
constexpr uint64_t ColumnItems(const uint64_t column) { return column & MostCount; }
/// Bytes charged between two readings of a column.
constexpr uint64_t ColumnGrowth(const uint64_t before, const uint64_t after)
{
    return (ColumnBytes(after) - ColumnBytes(before)) & MostBytes;
}

inline double Real(const uint64_t bits)
{
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}
inline uint64_t Bits(const double value)
{
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/// A text in words, padded with zeros; what is longer is cut.
template <size_t N>
void StoreText(Word (&words)[N], const std::string_view text)
{
    uint64_t bytes[N] = {};
    text.copy(reinterpret_cast<char *>(bytes), sizeof(bytes));
    for (size_t n = 0; n < N; ++n)
        words[n].store(bytes[n]);
}
template <size_t N>
std::string LoadText(const Word (&words)[N], const size_t length = 8 * N)
{
    uint64_t bytes[N];
    for (size_t n = 0; n < N; ++n)
        bytes[n] = words[n].load();
    return std::string(reinterpret_cast<const char *>(bytes), std::min(length, sizeof(bytes)));
}

constexpr uint64_t Bit(const uint32_t n) { return uint64_t{1} << n; }

/// Calls visit(n) for every bit n.
template <class Visit>
void EachBit(uint64_t bits, const Visit &visit)
{
    for (; bits; bits &= bits - 1)
        visit(static_cast<uint32_t>(__builtin_ctzll(bits)));
}

/// Entries of a table that a key may have: bounds the time of a search. With all in use a key has no entry: 0.001 % of
/// the users at half of the table's size, 0.6 % at 0.8 (with half: 0.04 and 2.1 %; double: 0 and 0.12 %).
constexpr uint32_t Probes = 32, NoEntry = UINT32_MAX;
/// The n-th of them.
template <class Entry, size_t N>
uint32_t Place(const Entry (&)[N], const uint64_t key, const uint32_t n)
{
    static_assert((N & (N - 1)) == 0);
    return static_cast<uint32_t>(key + n) & (N - 1);
}

/// \returns the index of the entry with a key for which fits(entry) holds, or NoEntry
template <class Entry, size_t N, class Fits>
uint32_t Find(const Entry (&table)[N], const uint64_t key, const Fits &fits)
{
    for (uint32_t n = 0; n < Probes; ++n) {
        const auto place = Place(table, key, n);
        const auto found = table[place].key.load(std::memory_order_acquire);
        if (found == key && fits(table[place]))
            return place;
        if (found == 0)
            break; // entries are never freed, so the key is in no later one
    }
    return NoEntry;
}
template <class Entry, size_t N>
uint32_t Find(const Entry (&table)[N], const uint64_t key)
{
    return Find(table, key, [](const Entry &) { return true; });
}

/// Numbers for names, the same on every machine (FNV-1a); never 0 or OtherClasses.
uint64_t ClassKey(std::string_view cls);
uint64_t UserKey(std::string_view cls, std::string_view user);

/// Turns zeroed memory into an empty segment. \param memory at least sizeof(Segment) bytes, aligned to 64
void FormatSegment(void *memory);

/// The segment in this memory. \param size bytes that are mapped
/// \returns null, and the reason in one sentence, if it is no segment of this version
Segment *OpenSegment(void *memory, size_t size, std::string &why);

} // namespace msfrs::ledger
