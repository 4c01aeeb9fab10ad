// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The memory that the parties of one link share: who spends the downlink (Squid's workers, msfrs-edge, other gateways
/// by msfrs-share) says here what it has had and what it wants.
///
/// Facts of the layout, version 3:
///   - A header, 64 slots, a table of 65,536 users, a directory of as many addresses, and what as many users had of
///     their quotas; 24 MiB and 104 KiB in all. Every field is a 64-bit word in the machine's order, so that any
///     process of the machine can read it; a real number is the bits of a double. Memory that is all zero is empty:
///     FormatSegment() only writes the header.
///   - A slot is a party. Only its party writes it, without locks; it counts while its heartbeat is younger than
///     DeadAfter. Who takes a slot writes another epoch into `life` and clears the rest: who finds another epoch there
///     than its own has lost the slot, writes no more there, and takes it or another anew.
///   - Worker n (from 0) has slot n, if no other kind of party lives there: then a free one, from the last on down.
///     Others take a free or a dead one: those with a column first, from the last on down to FirstShared, so that a
///     ninth worker finds its own.
///   - A user is found by UserKey() of the names of class and user, which is the same on every gateway: linear probing
///     from the key's low bits, over users.h's Probes entries. A column is what the party in the slot of that number
///     charged to the user, and how many of the user's requests it has; see Column(). The first 14 slots have one, so
///     that a user is two cache lines; a party beyond is seen to have a user, and not what it charged. Columns have no
///     origin, only growth counts: an entry whose user has work nowhere goes to another. A user for whom there is no
///     room is scheduled by each party alone, which says so once.
///   - The directory is for who sees packets and has no squid.conf: Squid tells there which classes there are, and to
///     which class and user an address belongs, once it was asked. See directory.h.
///   - What users had of their quotas is counted in one place by all of this machine, so it survives any of them; see
///     quota_table.h.
///   - What is counted in bytes grows and wraps. Readers take nothing for granted: see Slot's ranges and slots.h.
#ifndef MSFRS_LEDGER_SEGMENT_H
#define MSFRS_LEDGER_SEGMENT_H

#include "plugin/msfrs_plugin.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace msfrs::ledger {

constexpr uint64_t Magic = 0x4c5352464d534d01, Version = 3;
constexpr uint32_t Slots = 64, Columns = 14, SlotClasses = 32, Users = 65536;
constexpr uint32_t FirstShared = 8;             ///< slots from here on are for who is not a worker, too
constexpr msfrs_time DeadAfter = 1'000'000'000; ///< ns without a heartbeat

/// A field of the segment.
using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8, "another process must see the same word");

enum class Kind : uint8_t { Free, Worker, Edge, Gateway };
constexpr uint8_t Kinds = 4;

/// Whose W+ all go by: the live slot with the least rank, and of these the one with the lowest number.
enum Rank : uint64_t { LeadsUs = 0, Ours = 1, FollowsUs = 2, Never = 3 };

/// What a party had and wants of one class. A gateway shows none: see chargeClasses().
struct SlotClass {
    Word key;     ///< ClassKey(); 0: none. The last of SlotClasses has all further classes, with OtherClasses
    Word served;  ///< bytes charged, grows
    Word demand;  ///< double >= 0: its part of Slot::demand
};
constexpr uint64_t OtherClasses = 1;

/// One party. In the first cache line is what others look at for each place.
struct alignas(64) Slot {
    Word life;        ///< epoch << 8 | Kind; the epoch changes with every party that takes the slot
    Word heartbeat;   ///< ns of CLOCK_MONOTONIC, latest
    Word places;      ///< responses in service, or thousandths of C: parts of which `limit` fill the link; <= MostPlaces
    Word waiting;     ///< requests that wait for a place and would take one now
    Word queued;      ///< requests that wait for anything
    Word tag;         ///< double >= 0: what it has had for its demand, bytes per weight; see shared.h
    Word demand;      ///< double >= 0: sum over its active users of the weight, each times the part of the user's
                      ///< requests with work that are here
    Word rank;        ///< enum Rank

    Word received;    ///< bytes that the link has carried as far as this party measures, grows
    Word metered;     ///< 1: `received` is an interface's count, the same for all of one machine; 0: what it read
    Word limit;       ///< double 1..MostPlaces: W+ as it computed or took it over last, or 1000
    Word own;         ///< the part of what the link carried that this party's responses were, grows
    Word rate;        ///< double > 0: C, bit/s
    Word utilisation; ///< double >= 0: U of the last interval
    Word pid;         ///< of who writes, for reports
    Word config;      ///< a number for what it was configured with, for reports: all should have the same
    SlotClass classes[SlotClasses];

    Word trips;       ///< round trips that its connections to servers told lately, at most MostTrips
    Word queue;       ///< ns, at most LongestPath: a low quantile of what they were beyond their least
    Word base;        ///< ns, at most LongestPath: mean of these least; 0: not known
    Word packets;     ///< that these connections received, grows
    Word outOfOrder;  ///< of these, that came before others sent earlier; grows
    Word target;      ///< ns, at most LongestPath: q*; 0: not known
};
constexpr uint64_t MostPlaces = 1 << 20, MostTrips = 1 << 20, LongestPath = 3'600'000'000'000;

/// One user of one class.
struct alignas(64) User {
    Word key;               ///< UserKey(); 0: free
    Word active;            ///< bit n: has work at the party in slot n; set and cleared by atomic or, and
    Word columns[Columns];  ///< Column(): by slots
};

/// A class, as Squid has it.
struct ClassEntry {
    Word key;       ///< ClassKey() of its name
    Word weight;    ///< double > 0, of each of its users
    Word name[4];   ///< 32 bytes, zeros behind it
};

/// Whose an address is.
struct alignas(64) AddressEntry {
    Word key;       ///< AddressKey(); 0: free; BusyAddress: changes hands just now
    Word high, low; ///< the address, most significant bits first; IPv4 as ::ffff:a.b.c.d
    Word seen;      ///< ns of CLOCK_MONOTONIC when there was traffic for it, or it was asked for, within seconds
    Word told;      ///< ns when Squid has said whose it is last; 0: not yet
    Word requested; ///< ns of its latest request, by which that was said; 0: by its address alone
    Word cls, user; ///< ClassKey(), UserKey()
};
constexpr uint64_t BusyAddress = 1;

/// What Squid tells who sees packets. Questions are from them, in a ring; the rest Squid writes.
struct alignas(64) Directory {
    static constexpr uint32_t Questions = 1024, Classes = 256, Addresses = 65536;

    Word revision;  ///< of the classes: odd while they change, grows
    Word count;     ///< of classes
    Word other;     ///< ClassKey() of the default one
    Word asked;     ///< questions so far
    Word questions[Questions];  ///< number n, from 0, at n modulo Questions: place in `addresses`
    ClassEntry classes[Classes];
    AddressEntry addresses[Addresses];
};

/// A class with a quota, as quota/quotas.h has it.
struct alignas(64) QuotaAccount {
    Word key;       ///< ClassKey(); 0: free
    Word limit;     ///< bytes that a user may have in a period; 0: the class has no quota any more
    Word over;      ///< ClassKey() of the class in which who has had them goes on
    Word period;    ///< PeriodWord: the one that runs; 0: none yet
    Word passed;    ///< how often a user had all, grows
};

/// What a user had of the quota of a class.
struct alignas(64) QuotaEntry {
    static constexpr size_t LongestName = 128;

    Word key;       ///< UserKey(); 0: free
    Word count;     ///< CountWord: of the period with the same generation; of another one it is 0
    Word account;   ///< index plus 1; 0: not known yet
    Word next;      ///< UserKey() of the same user in the class `over`
    Word length;    ///< of the name; 0: not known yet
    Word name[LongestName / 8]; ///< zeros behind it
};

/// Who has had how much of which quota. Squid's workers write it, and msfrs-edge adds what it charges.
struct alignas(64) QuotaTable {
    static constexpr uint32_t Accounts = 256, Entries = 65536;

    Word limited;   ///< classes that have a quota
    Word moves;     ///< grows when users belong into another class than before
    Word clock;     ///< s: what the clock on the wall showed last; see quota/quota_period.h
    Word loaded;    ///< 1: what was kept over a restart is in here
    Word changed;   ///< 1: something was counted since it was saved
    Word savedAt;   ///< s of `clock`
    Word used[Entries / 64];    ///< bit n: entry n may have a key, so that nobody looks at all of them
    QuotaAccount accounts[Accounts];
    QuotaEntry entries[Entries];
};

struct alignas(64) Header {
    Word magic, version, size;
    Word epoch;             ///< of the latest party; grows
};

struct Segment {
    Header header;
    Slot slots[Slots];
    User users[Users];
    Directory directory;
    QuotaTable quotas;
};

constexpr uint64_t MostBytes = 0xffffffffff, MostCount = 0xfff; ///< in a column

/// What a party says of a user: bytes charged, modulo 2^40; how many of its requests wait for their first service, and
/// how many have work in all, each at most MostCount.
constexpr uint64_t Column(const uint64_t bytes, const uint64_t waiting, const uint64_t items)
{
    return bytes << 24 | (waiting < MostCount ? waiting : MostCount) << 12 | (items < MostCount ? items : MostCount);
}
constexpr uint64_t ColumnBytes(const uint64_t column) { return column >> 24; }
constexpr uint64_t ColumnWaiting(const uint64_t column) { return column >> 12 & MostCount; }
constexpr uint64_t ColumnItems(const uint64_t column) { return column & MostCount; }
/// Bytes between two readings of a column.
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

/// Numbers for names, the same on every machine (FNV-1a); never 0 or OtherClasses.
uint64_t ClassKey(std::string_view cls);
uint64_t UserKey(std::string_view cls, std::string_view user);

/// Makes zeroed memory an empty segment. \param memory at least sizeof(Segment) bytes, aligned to 64
void FormatSegment(void *memory);

/// The segment in this memory. \param size bytes that are mapped
/// \returns null, and why in one sentence, if it is none of this version
Segment *OpenSegment(void *memory, size_t size, std::string &why);

} // namespace msfrs::ledger

#endif
