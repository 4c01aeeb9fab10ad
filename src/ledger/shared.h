// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A party of a segment.
///
/// Order between parties. Each has a tag, as start-time fair queueing has it: what it was charged, and what its places
/// are worth, for its demand. A party may take a place if its tag is ahead of the least tag of the others that wait by
/// no more than a lead of two quanta and what the link carries in 10 ms: so no place stays free until the one that is
/// behind looks. The reserve is open to who is ahead by four quanta more. Who begins to wait takes at least the least
/// tag of those who wait already, or, if nobody does, the greatest of all, less the lead: an unused share is not saved
/// up. Whoever waits gets its turn in the end, since its tag stays while those of the others grow. A party that has not
/// looked for 50 ms is not waited for: it is stopped or busy, and what it is behind it keeps. Another gateway has no
/// turn: msfrs-share shows it with the places that it is due. Nor has msfrs-edge: it paces its packets to its share
/// (edge/daemon/link_party.h), and shows what part of the window that is.
///
/// Races: two parties may take the same place between two looks. The window is over by one then, until one is returned.
///
/// A party that was silent for longer than ledger::DeadAfter begins anew: its tag as one that begins to wait, what its
/// users had elsewhere in the meantime is forgotten, and the window is that of the party that led in the meantime.
#ifndef MSFRS_LEDGER_SHARED_H
#define MSFRS_LEDGER_SHARED_H

#include "ledger/ledger.h"
#include "ledger/slots.h"

#include <functional>
#include <memory>
#include <string>

namespace msfrs {

/// All parameters.
struct PartyParams {
    ledger::Kind kind = ledger::Kind::Worker;
    uint32_t slot = 0;              ///< as ledger::OwnSlot::OfWorker() or Free() said
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

#endif
