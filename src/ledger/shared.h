// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A party of a segment.
///
/// Order between parties. Each has a tag, as start-time fair queueing has it: what it was charged, and what its places
/// are worth on average, for its demand. Of the parties that wait for a place the one with the least tag goes first;
/// who is ahead of it by no more than Lead bytes may go too, so that no place stays free until that one looks. Who
/// begins to wait takes at least the least tag of those who wait, less Lead: bandwidth that was idle is not held
/// against anybody. A party that has not looked for Prompt is not waited for.
///
/// Races: a place may be taken twice between two looks, which the window makes good.
#ifndef MSFRS_LEDGER_SHARED_H
#define MSFRS_LEDGER_SHARED_H

#include "ledger/ledger.h"
#include "ledger/slots.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace msfrs {

/// All parameters.
struct PartyParams {
    ledger::Kind kind = ledger::Kind::Worker;
    uint32_t slot = 0;              ///< of a worker: its number from 0; of others: see ledger::OwnSlot::Free()
    double rate = 0;                ///< C in bit/s, > 0
    int64_t quantum = 16384;        ///< bytes, >= 0
    uint64_t config = 0;            ///< a number for the configuration; reports compare it
};

class SharedLedger final : public Ledger {
public:
    using Log = std::function<void(int level, const std::string &)>; ///< as msfrs_host::log

    /// Takes the slot. The segment stays mapped while the ledger lives.
    SharedLedger(ledger::Segment &, const PartyParams &, Log, msfrs_time now);
    ~SharedLedger() override;

    const OtherParties &look(msfrs_time now) override;
    bool turn(bool fresh) const override;
    void say(const PartyState &, msfrs_time now) override;
    User enter(std::string_view cls, std::string_view user, double weight, msfrs_time now) override;
    int64_t exchange(User, uint64_t bytes, uint32_t waiting) override;
    uint32_t waitingElsewhere(User) const override;
    void leave(User) override;
    void say(uint32_t n, std::string_view cls, uint64_t served) override;
    bool settle(msfrs_time now) override;
    std::optional<SharedWindow> follow() const override;
    void say(const SharedWindow &, double received, bool metered) override;
    msfrs_time lookAt(msfrs_time now) const override;

    /// C or the quantum has changed.
    void configure(const PartyParams &);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace msfrs

#endif
