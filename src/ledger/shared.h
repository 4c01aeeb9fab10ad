// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A party of a segment.
///
/// Order between parties. It is that of their users: each party publishes the service of its least served waiting user,
/// and may take a window slot while its own is above the least of all others by at most a quantum. The virtual time V is
/// shared, so that users who return find the same everywhere. What a user had at one party is charged to it at all
/// (exchange()), ten times a second. A party that has not looked for 50 ms is stopped or busy; the others do not wait for
/// it. Other gateways have no turn: msfrs-share enters each with its fair share of the window. Nor has msfrs-edge: it
/// paces its packets to its share (edge/daemon/link_party.h), and publishes that as a part of the window.
///
/// Races: two parties may take the same window slot between two looks. The window is then exceeded by one until one is
/// returned.
///
/// A party that was silent for longer than ledger::DeadAfter starts over: what its users had elsewhere meanwhile is
/// forgotten, and it adopts the window of the party that led meanwhile.
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
    bool turn(double least) const override;
    void say(const PartyState &, msfrs_time now) override;
    msfrs_time lookAt() const override;
    User enter(std::string_view cls, std::string_view user, double weight, uint64_t bytes, uint32_t items) override;
    /// The same by ledger::UserKey().
    User enterKey(uint64_t user, double weight, uint64_t bytes, uint32_t items);
    int64_t exchange(User, uint64_t bytes, uint32_t waiting, uint32_t items) override;
    uint32_t waitingElsewhere(User) const override;
    void leave(User) override;
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
