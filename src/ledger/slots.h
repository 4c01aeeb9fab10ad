// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Reading and taking the slots of a segment. A slot may be written by anybody who may write the segment, so whatever
/// is outside its range makes it dead.
#ifndef MSFRS_LEDGER_SLOTS_H
#define MSFRS_LEDGER_SLOTS_H

#include "ledger/ledger.h"
#include "ledger/segment.h"

#include <optional>

namespace msfrs::ledger {

/// What a slot says, within its ranges.
struct SlotReading {
    Kind kind = Kind::Free;
    uint64_t epoch = 0;
    msfrs_time heartbeat = 0;                   ///< ns
    uint32_t places = 0;
    uint64_t waiting = 0, queued = 0;
    double tag = 0, demand = 0;
};

/// The same of the rest of the slot: for who follows its window, and for reports.
struct SlotFigures {
    Rank rank = Never;
    uint64_t received = 0, own = 0;
    bool metered = false;
    double limit = 1, rate = 0, utilisation = 0;
    msfrs_time target = 0;
    uint64_t pid = 0, config = 0;
    PathSeen path;
};

/// \param broken set if something in the slot is not what it may be
/// \returns nothing then, or if nobody has the slot or its party is dead
std::optional<SlotReading> ReadSlot(const Slot &, msfrs_time now, bool *broken = nullptr);
/// Of a slot that lives. \returns nothing if something is not what it may be
std::optional<SlotFigures> ReadFigures(const Slot &);

/// Number of the live slot whose window all go by; Slots: none.
/// \param without a slot that does not count
uint32_t Leader(const Segment &, msfrs_time now, uint32_t without = Slots);

/// Bit n: the party in slot n lives. \param broken the slots in which something is not what it may be
uint64_t Living(const Segment &, msfrs_time now, uint64_t *broken = nullptr);

/// A slot that this process writes. Not copied: there is one writer.
class OwnSlot {
public:
    /// Takes the slot `number`, whatever is in it: as OfWorker() or Free() said.
    OwnSlot(Segment &, uint32_t number, Kind, msfrs_time now);
    /// Clears the slot if it is still ours.
    ~OwnSlot();
    OwnSlot(const OwnSlot &) = delete;
    OwnSlot &operator=(const OwnSlot &) = delete;

    /// \returns the slot for Squid's worker of that number (from 0), to be taken by the constructor: the one of the
    /// same number, whatever a worker before it has left there; where another party lives in it, a free one that
    /// neither others nor workers look for first. Nothing: all are in use
    static std::optional<uint32_t> OfWorker(const Segment &, uint32_t number, msfrs_time now);
    /// \returns the same for anybody else: a slot from FirstShared on that is free or dead, those with a column first
    static std::optional<uint32_t> Free(const Segment &, msfrs_time now);

    /// Says that the party lives. \returns false if another has taken the slot; then nothing more may be written
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

/// Writes a field of one's own.
inline void Set(Word &field, const uint64_t value) { field.store(value, std::memory_order_relaxed); }
inline void SetReal(Word &field, const double value) { Set(field, Bits(value)); }

} // namespace msfrs::ledger

#endif
