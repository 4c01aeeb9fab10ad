// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The ledger: what several schedulers on one link must agree on, each a *party*. A party has its own engine with its
/// own counters; the ledger tells it what the others have and had, and whose turn it is. `AloneLedger` is that of a
/// scheduler that has the link to itself; `SharedLedger` (shared.h) is one party's view of a segment.
#ifndef MSFRS_LEDGER_LEDGER_H
#define MSFRS_LEDGER_LEDGER_H

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace msfrs {

/// What a party says of itself.
struct PartyState {
    uint32_t places = 0;    ///< W: responses in service
    uint64_t waiting = 0;   ///< requests that wait for a place and would take one now
    uint64_t queued = 0;    ///< requests that wait for anything
    int64_t served = 0;     ///< bytes charged so far, excess included; grows
};

/// What all others come to.
struct OtherParties {
    uint32_t places = 0;
    uint64_t waiting = 0, queued = 0;
    double received = 0;    ///< bytes that the link carried by their count, beside what we measure; grows
};

/// The window as the party that measures it has it.
struct SharedWindow {
    double limit = 1;       ///< W+, 1..2^20
    double budget = 1;      ///< phi >= 1
    double rate = 0;        ///< C in bit/s, > 0
    double utilisation = 0; ///< U of the last interval, >= 0
};

class Ledger {
public:
    using User = uint32_t;
    static constexpr User NoUser = UINT32_MAX;

    virtual ~Ledger() = default;

    /// What the others come to, not older than a millisecond.
    virtual const OtherParties &look(msfrs_time now) = 0;
    /// Whether a place that is free may be taken: no other party that waits is too far behind.
    /// \param fresh for an item without service: the reserve is open to who is ahead a little more
    virtual bool turn(bool fresh) const = 0;
    /// Says what this party has and wants. Cheap: to be called at every change.
    virtual void say(const PartyState &, msfrs_time now) = 0;

    /// A user of a class has work here from now on. \param weight of the user, > 0
    virtual User enter(std::string_view cls, std::string_view user, double weight, msfrs_time now) = 0;
    /// Says what a user that has entered was charged here, and learns what it was charged elsewhere.
    /// \param bytes charged here since the user was first seen; may be any number when it enters, grows from then on
    /// \param waiting its requests that wait here
    /// \returns bytes charged to it elsewhere since the last call, or since it entered
    virtual int64_t exchange(User, uint64_t bytes, uint32_t waiting) = 0;
    /// Requests of a user that has entered that wait elsewhere, as of the last exchange().
    virtual uint32_t waitingElsewhere(User) const = 0;
    /// The user has no work here any more. Its bytes no longer count.
    virtual void leave(User) = 0;
    /// Says what a class was charged here, so far. \param n index into the configuration's classes
    virtual void say(uint32_t n, std::string_view cls, uint64_t served) = 0;
    /// After all users and classes have been told, about every Every: demand, heartbeat, who leads.
    /// \returns false if this party has lost its slot: it is to go on alone
    virtual bool settle(msfrs_time now) = 0;
    static constexpr msfrs_time Every = 100'000'000; ///< ns between two calls of settle()

    /// The window of the party that leads; nothing: this one does.
    virtual std::optional<SharedWindow> follow() const = 0;
    /// What this party measures or has taken over.
    /// \param received bytes that it measured so far, grows \param metered by an interface's count, the same for all
    virtual void say(const SharedWindow &, double received, bool metered) = 0;
    /// When look() is worth another call, ns; 0: never, nobody else is there.
    virtual msfrs_time lookAt(msfrs_time now) const = 0;
};

/// A scheduler that has the link to itself.
class AloneLedger final : public Ledger {
public:
    const OtherParties &look(msfrs_time) override { return none_; }
    bool turn(bool) const override { return true; }
    void say(const PartyState &, msfrs_time) override {}
    User enter(std::string_view, std::string_view, double, msfrs_time) override { return NoUser; }
    int64_t exchange(User, uint64_t, uint32_t) override { return 0; }
    uint32_t waitingElsewhere(User) const override { return 0; }
    void leave(User) override {}
    void say(uint32_t, std::string_view, uint64_t) override {}
    bool settle(msfrs_time) override { return true; }
    std::optional<SharedWindow> follow() const override { return {}; }
    void say(const SharedWindow &, double, bool) override {}
    msfrs_time lookAt(msfrs_time) const override { return 0; }

private:
    OtherParties none_;
};

} // namespace msfrs

#endif
