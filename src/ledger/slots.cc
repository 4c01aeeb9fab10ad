// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/slots.h"

#include <algorithm>
#include <cstddef>
#include <unistd.h>

namespace msfrs::ledger {

namespace {

constexpr uint64_t MostWaiting = uint64_t(1) << 32; ///< requests; more are invalid. Sums over all slots fit 64 bits

bool Within(const double value, const double least, const double most)
{
    return value >= least && value <= most; // false for NaN
}

double ReadReal(const Word &word) { return Real(word.load(Relaxed)); }

/// The last slot of first..end-1 without a live party.
std::optional<uint32_t> LastUnused(const Segment &segment, const uint32_t first, const uint32_t end,
                                   const msfrs_time now)
{
    for (uint32_t n = end; n-- > first;) {
        if (!ReadSlot(segment.slots[n], now))
            return n;
    }
    return {};
}

} // namespace

std::optional<SlotReading> ReadSlot(const Slot &slot, const msfrs_time now, bool *const broken)
{
    const auto life = slot.life.load(std::memory_order_acquire);
    const auto kind = life & 0xff;
    if (kind == 0)
        return {};
    SlotReading r;
    r.kind = static_cast<Kind>(kind);
    r.epoch = life >> 8;
    r.heartbeat = static_cast<msfrs_time>(slot.heartbeat.load(Relaxed));
    // Another party's `now` may be slightly later than ours; much later means another clock, or a broken slot.
    const bool fresh = r.heartbeat > now - DeadAfter && r.heartbeat < now + DeadAfter;
    if (!fresh)
        return {};
    const auto places = slot.places.load(Relaxed);
    r.waiting = slot.waiting.load(Relaxed);
    r.queued = slot.queued.load(Relaxed);
    r.tag = ReadReal(slot.tag);
    r.demand = ReadReal(slot.demand);
    if (kind >= Kinds || places > MostPlaces || r.waiting > MostWaiting || r.queued > MostWaiting ||
        !Within(r.tag, 0, MostReal) || !Within(r.demand, 0, MostReal)) {
        if (broken)
            *broken = true;
        return {};
    }
    r.places = static_cast<uint32_t>(places);
    return r;
}

std::optional<SlotFigures> ReadFigures(const Slot &slot)
{
    SlotFigures f;
    const auto rank = slot.rank.load(Relaxed);
    f.received = slot.received.load(Relaxed);
    f.own = slot.own.load(Relaxed);
    f.metered = slot.metered.load(Relaxed) == 1;
    f.limit = ReadReal(slot.limit);
    f.rate = ReadReal(slot.rate);
    f.utilisation = ReadReal(slot.utilisation);
    f.pid = slot.pid.load(Relaxed);
    f.config = slot.config.load(Relaxed);
    const auto trips = slot.trips.load(Relaxed), queue = slot.queue.load(Relaxed), base = slot.base.load(Relaxed);
    const auto target = slot.target.load(Relaxed), floor = slot.floor.load(Relaxed);
    f.path = {{trips, static_cast<msfrs_time>(queue), static_cast<msfrs_time>(base)}, slot.packets.load(Relaxed),
              slot.outOfOrder.load(Relaxed)};
    if (trips > MostTrips || queue > LongestPath || base > LongestPath || target > LongestPath || floor > MostFloor)
        return {};
    if (rank > Never || !Within(f.limit, 1, static_cast<double>(MostPlaces)) || !Within(f.rate, 0, MostReal) ||
        !Within(f.utilisation, 0, MostReal))
        return {};
    f.rank = static_cast<Rank>(rank);
    f.target = static_cast<msfrs_time>(target);
    f.floor = static_cast<uint32_t>(floor);
    return f;
}

uint32_t Leader(const Segment &segment, const msfrs_time now, const uint32_t without)
{
    uint32_t leader = Slots;
    Rank least = Never;
    for (uint32_t n = 0; n < Slots; ++n) {
        if (n == without || !ReadSlot(segment.slots[n], now))
            continue;
        const auto figures = ReadFigures(segment.slots[n]);
        if (figures && figures->rate > 0 && figures->rank < least) { // without a rate it has not published a window yet
            least = figures->rank;
            leader = n;
        }
    }
    return leader;
}

uint64_t Living(const Segment &segment, const msfrs_time now, uint64_t *const broken)
{
    uint64_t living = 0;
    for (uint32_t n = 0; n < Slots; ++n) {
        bool nonsense = false;
        if (ReadSlot(segment.slots[n], now, &nonsense))
            living |= Bit(n);
        else if (nonsense && broken)
            *broken |= Bit(n);
    }
    return living;
}

OwnSlot::OwnSlot(Segment &segment, const uint32_t number, const Kind kind, const msfrs_time now):
    segment_(segment), number_(number), slot_(segment.slots[number])
{
    const auto epoch = (segment.header.epoch.fetch_add(1) + 1) & 0xffffffffffffff;
    slot_.life.store(epoch << 8); // owned by no party until it is clear
    clear();
    SetReal(slot_.limit, 1);
    Set(slot_.pid, static_cast<uint64_t>(getpid()));
    Set(slot_.rank, kind == Kind::Worker ? Ours : kind == Kind::Gateway ? FollowsUs : Never);
    Set(slot_.heartbeat, static_cast<uint64_t>(now));
    life_ = epoch << 8 | static_cast<uint64_t>(kind);
    slot_.life.store(life_, std::memory_order_release);
}

OwnSlot::~OwnSlot()
{
    if (!held())
        return;
    slot_.life.store(life_ & ~uint64_t(0xff));
    clear();
}

void OwnSlot::clear()
{
    static_assert(offsetof(Slot, places) == 2 * sizeof(Word) && sizeof(Slot) % sizeof(Word) == 0);
    const auto words = reinterpret_cast<Word *>(&slot_);
    std::for_each(words + 2, words + sizeof(Slot) / sizeof(Word), [](Word &word) { Set(word, 0); });
    if (slot_.heartbeat.exchange(0) == 0)
        return; // no party ever had it, so no user has its bit
    const auto bit = Bit(number_);
    for (auto &user : segment_.users) {
        if (user.active.load(Relaxed) & bit)
            user.active.fetch_and(~bit);
    }
}

std::optional<uint32_t> OwnSlot::OfWorker(const Segment &segment, const uint32_t number, const msfrs_time now)
{
    const auto found = ReadSlot(segment.slots[number], now);
    return !found || found->kind == Kind::Worker ? number : LastUnused(segment, FirstShared, Slots, now);
}

std::optional<uint32_t> OwnSlot::Free(const Segment &segment, const msfrs_time now)
{
    const auto found = LastUnused(segment, FirstShared, Columns, now);
    return found ? found : LastUnused(segment, Columns, Slots, now);
}

bool OwnSlot::beat(const msfrs_time now)
{
    if (!held())
        return false;
    Set(slot_.heartbeat, static_cast<uint64_t>(now));
    return true;
}

} // namespace msfrs::ledger
