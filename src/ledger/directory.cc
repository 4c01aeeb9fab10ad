// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/directory.h"

#include "ledger/users.h"

#include <algorithm>

namespace msfrs::ledger {

namespace {

constexpr double MostWeight = 1e9; ///< a greater one is invalid; configurations allow 1e6

uint64_t AddressKey(const IpBits &a)
{
    // Finalizer of splitmix64: hosts of a network differ only in their last bits.
    uint64_t x = a.low + 0x9e3779b97f4a7c15 * (a.high + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    return x > BusyAddress ? x : x + 2;
}

bool Is(const AddressEntry &entry, const IpBits &a)
{
    return entry.high.load(Relaxed) == a.high && entry.low.load(Relaxed) == a.low;
}

void Ask(Directory &directory, const uint32_t place)
{
    const auto number = directory.asked.load(Relaxed);
    directory.questions[number % Directory::Questions].store(place, Relaxed);
    directory.asked.fetch_add(1, std::memory_order_release); // two parties at once lose one query, which is repeated
}

/// Takes an entry for an address that has none: a free one, or one long without traffic.
uint32_t Take(Directory &directory, const IpBits &address, const msfrs_time now)
{
    const auto key = AddressKey(address);
    for (uint32_t probe = 0; probe < Probes; ++probe) {
        const auto place = Place(directory.addresses, key, probe);
        auto &entry = directory.addresses[place];
        auto before = entry.key.load();
        const auto seen = static_cast<msfrs_time>(entry.seen.load());
        if (before == BusyAddress || (before != 0 && seen <= now && seen > now - ForgetAddress))
            continue;
        if (!entry.key.compare_exchange_strong(before, BusyAddress))
            continue;
        using Entry = AddressEntry;
        for (const auto field : {&Entry::told, &Entry::requested, &Entry::cls, &Entry::user})
            (entry.*field).store(0, Relaxed);
        entry.high.store(address.high, Relaxed);
        entry.low.store(address.low, Relaxed);
        entry.seen.store(static_cast<uint64_t>(now), Relaxed);
        entry.key.store(key, std::memory_order_release);
        return place;
    }
    return NoEntry;
}

bool Older(const Word &time, const msfrs_time now, const msfrs_time age)
{
    const auto at = static_cast<msfrs_time>(time.load(Relaxed));
    return at > now || at <= now - age; // a time in the future is invalid
}

void Enter(AddressEntry &entry, const Owner &owner, const msfrs_time now)
{
    entry.cls.store(owner.cls, Relaxed);
    entry.user.store(owner.user, Relaxed);
    entry.told.store(static_cast<uint64_t>(now), std::memory_order_release);
}

} // namespace

void TellClasses(Directory &directory, const std::vector<ClassTold> &classes, const size_t other)
{
    const auto revision = directory.revision.load(Relaxed) & ~uint64_t{1}; // odd: the previous writer has died
    directory.revision.store(revision + 1);
    const auto count = std::min<size_t>(classes.size(), Directory::Classes);
    for (size_t n = 0; n < count; ++n) {
        auto &entry = directory.classes[n];
        entry.key.store(ClassKey(classes[n].name));
        entry.weight.store(Bits(classes[n].weight));
        StoreText(entry.name, classes[n].name);
    }
    directory.count.store(count);
    directory.other.store(other < classes.size() ? ClassKey(classes[other].name) : 0);
    directory.revision.store(revision + 2);
}

std::optional<ClassList> ReadClasses(const Directory &directory)
{
    ClassList list;
    list.revision = directory.revision.load();
    const auto count = directory.count.load();
    const auto other = directory.other.load();
    if (list.revision == 0 || (list.revision & 1) || count == 0 || count > Directory::Classes)
        return {};
    bool found = false;
    for (size_t n = 0; n < count; ++n) {
        const auto &entry = directory.classes[n];
        ClassTold told{LoadText(entry.name).c_str(), Real(entry.weight.load())};
        const auto key = entry.key.load();
        const bool known = std::any_of(list.classes.begin(), list.classes.end(),
                                       [&](const ClassTold &c) { return c.name == told.name; });
        if (known || key != ClassKey(told.name) || !(told.weight > 0 && told.weight <= MostWeight))
            return {};
        if (key == other) {
            list.other = n;
            found = true;
        }
        list.classes.push_back(std::move(told));
    }
    if (!found || directory.revision.load() != list.revision)
        return {};
    return list;
}

uint32_t FindAddress(const Directory &directory, const IpBits &address)
{
    return Find(directory.addresses, AddressKey(address),
                [&](const AddressEntry &entry) { return Is(entry, address); });
}

std::optional<Owner> OwnerOf(Directory &directory, const IpBits &address, const msfrs_time now)
{
    const auto known = FindAddress(directory, address);
    if (known == NoEntry) {
        const auto taken = Take(directory, address, now);
        if (taken != NoEntry)
            Ask(directory, taken);
        return {};
    }
    auto &entry = directory.addresses[known];
    const bool answered = entry.told.load(std::memory_order_acquire) != 0;
    if (Older(entry.seen, now, answered ? SeenEvery : AskSoon)) {
        entry.seen.store(static_cast<uint64_t>(now), Relaxed);
        if (!answered || Older(entry.told, now, AskAgain))
            Ask(directory, known);
    }
    const Owner owner{entry.cls.load(Relaxed), entry.user.load(Relaxed)};
    if (!answered || owner.cls == 0 || owner.user == 0)
        return {};
    return owner;
}

void Requested(Directory &directory, const IpBits &address, const Owner &owner, const msfrs_time now)
{
    const auto place = FindAddress(directory, address);
    if (place == NoEntry)
        return;
    auto &entry = directory.addresses[place];
    entry.requested.store(static_cast<uint64_t>(now), Relaxed);
    Enter(entry, owner, now);
}

uint32_t Answers::next(const msfrs_time now)
{
    const auto asked = directory_.asked.load(std::memory_order_acquire);
    if (asked - answered_ > Directory::Questions) { // some are overwritten, so any address may have been queried
        answered_ = asked;
        walk_ = 0;
    }
    const auto open = [&](const uint32_t place, const bool anew) {
        const auto &entry = directory_.addresses[place];
        return entry.key.load(std::memory_order_acquire) > BusyAddress &&
               (anew || entry.requested.load(Relaxed) == 0 || Older(entry.requested, now, ForgetAddress));
    };
    while (walk_ < Directory::Addresses) {
        const auto place = walk_++;
        if (open(place, anew_))
            return place;
    }
    anew_ = false;
    while (answered_ != asked) {
        const auto place = directory_.questions[answered_++ % Directory::Questions].load(Relaxed);
        if (place < Directory::Addresses && open(static_cast<uint32_t>(place), false))
            return static_cast<uint32_t>(place);
    }
    return NoEntry;
}

void Answers::tell(const uint32_t place, const IpBits &address, const Owner &owner, const msfrs_time now)
{
    auto &entry = directory_.addresses[place];
    if (entry.key.load() != AddressKey(address) || !Is(entry, address))
        return; // the entry has a new address by now
    if (anew_)
        entry.requested.store(0, Relaxed);
    Enter(entry, owner, now);
}

} // namespace msfrs::ledger
