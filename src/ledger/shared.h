// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A party of a segment.
///
/// Order between parties. Each has a tag, as in start-time fair queueing: the bytes charged to it, and those its window
/// slots stand for, divided by its demand. A party may take a window slot if its tag is ahead of the least tag of the
/// other waiting parties by at most a lead of two quanta and 10 ms of link capacity, so that no slot stays free until
/// the party that is behind looks. For the reserve the lead is four quanta more. A party that begins to wait takes at
/// least the least tag of the waiting parties or, if none waits, the greatest of all, less the lead: an unused share
/// is not saved up. Every waiting party gets its turn, since its tag stays while those of the others grow. A party that
/// has not looked for 50 ms is stopped or busy. The others do not wait for it, and it keeps its arrears. Other gateways
/// have no turn: msfrs-share enters each with its fair share of the window. Nor has msfrs-edge: it paces its packets to
/// its share (edge/daemon/link_party.h), and publishes that as a part of the window.
///
/// Races: two parties may take the same window slot between two looks. The window is then exceeded by one until one is
/// returned.
///
/// A party that was silent for longer than ledger::DeadAfter starts over. Its tag is that of a party that begins to
/// wait, what its users had elsewhere meanwhile is forgotten, and it adopts the window of the party that led meanwhile.
#pragma once

#include "ledger/ledger.h"
#include "ledger/slots.h"

#include <functional>
#include <memory>
#include <string>

namespace msfrs {

/// All parameters.
struct PartyParams {
    ledger::Kind kind = ledger::Kind::Worker;
    uint32_t slot = 0;              ///< as returned by ledger::OwnSlot::OfWorker() or Free()
    uint64_t config = 0;            ///< a number for the configuration; reports compare it
};

class SharedLedger final : public Ledger {
public:
    using Log = std::function<void(int level, const std::string &)>; ///< as msfrs_host::log

    /// Takes the slot. The segment stays mapped while the ledger lives.
    SharedLedger(ledger::Segment &, const PartyParams &, Log, msfrs_time now);
    /// Frees the slot.
    ~SharedLedger() override;

    const OtherParties &look(msfrs_time now) override;
    bool turn(bool fresh) const override;
    void say(const PartyState &, msfrs_time now) override;
    msfrs_time lookAt() const override;
    User enter(std::string_view cls, std::string_view user, double weight, uint64_t bytes, uint32_t items) override;
    /// The same by ledger::ClassKey() and UserKey().
    User enterKeys(uint64_t cls, uint64_t user, double weight, uint64_t bytes, uint32_t items);
    int64_t exchange(User, uint64_t bytes, uint32_t waiting, uint32_t items) override;
    uint32_t waitingElsewhere(User) const override;
    bool busyElsewhere(User) const override;
    void leave(User) override;
    void served(uint32_t n, std::string_view cls, uint64_t bytes) override;
    ClassElsewhere elsewhere(uint32_t n) const override;
    bool measures() const override;
    void measured(const SharedWindow &, const Measured &) override;
    bool settle(msfrs_time now) override;
    std::optional<SharedWindow> follow() const override;

    /// The configuration has changed.
    void configured(uint64_t config);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace msfrs
