// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reading and taking the slots of a segment. Any process that may write the segment may write a slot, so a value
/// outside its range makes the slot dead.
#pragma once

#include "ledger/ledger.h"
#include "ledger/segment.h"

#include <optional>

namespace msfrs::ledger {

/// Any real number in the segment: more is invalid. Above the bytes of a link over its lifetime; sums stay finite.
constexpr double MostReal = 1e18;

/// The contents of a slot, within their ranges.
struct SlotReading {
    Kind kind = Kind::Free;
    uint64_t epoch = 0;
    msfrs_time heartbeat = 0;                   ///< ns
    uint32_t places = 0;
    uint64_t waiting = 0, queued = 0;
    double tag = 0, demand = 0;
};

/// The rest of the slot, for followers of its window and for reports.
struct SlotFigures {
    Rank rank = Never;
    uint64_t received = 0, own = 0;
    bool metered = false;
    double limit = 1, rate = 0, utilisation = 0;
    msfrs_time target = 0;
    uint32_t floor = 0;
    uint64_t pid = 0, config = 0;
    PathSeen path;
};

/// \param broken set if a value in the slot is out of range
/// \returns nothing then, or if the slot is free or its party is dead
std::optional<SlotReading> ReadSlot(const Slot &, msfrs_time now, bool *broken = nullptr);
/// Of a live slot. \returns nothing if a value is out of range
std::optional<SlotFigures> ReadFigures(const Slot &);

/// Number of the live slot whose window all follow; Slots: none.
/// \param without a slot to ignore
uint32_t Leader(const Segment &, msfrs_time now, uint32_t without = Slots);

/// Bit n: the party in slot n is live. \param broken the slots with a value out of range
uint64_t Living(const Segment &, msfrs_time now, uint64_t *broken = nullptr);

/// A slot that this process writes. Not copied: there is one writer.
class OwnSlot {
public:
    /// Takes the slot `number`, as returned by OfWorker() or Free(), whatever its contents.
    OwnSlot(Segment &, uint32_t number, Kind, msfrs_time now);
    /// Clears the slot if it is still ours.
    ~OwnSlot();
    OwnSlot(const OwnSlot &) = delete;
    OwnSlot &operator=(const OwnSlot &) = delete;

    /// \returns the slot for Squid's worker of that number (from 0), by the rules in segment.h, whatever an earlier
    /// worker has left there. Nothing: all are in use
    static std::optional<uint32_t> OfWorker(const Segment &, uint32_t number, msfrs_time now);
    /// \returns the same for other parties
    static std::optional<uint32_t> Free(const Segment &, msfrs_time now);

    /// Writes the heartbeat. \returns false if another party has taken the slot; then nothing more may be written
    bool beat(msfrs_time now);
    bool held() const { return slot_.life.load(std::memory_order_relaxed) == life_; }

    uint32_t number() const { return number_; }
    Slot &operator*() const { return slot_; }
    Slot *operator->() const { return &slot_; }

private:
    void clear(); ///< all but life and heartbeat, and the bits of its users

    Segment &segment_;
    uint32_t number_;
    Slot &slot_;
    uint64_t life_;
};

/// Writes a field of the own slot.
inline void Set(Word &field, const uint64_t value) { field.store(value, std::memory_order_relaxed); }
inline void SetReal(Word &field, const double value) { Set(field, Bits(value)); }

} // namespace msfrs::ledger
