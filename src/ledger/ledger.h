// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The ledger: what several schedulers on one link must agree on, each a *party*. A party has its own engine with its
/// own counters; the ledger tells it what the others have and had, and whose turn it is. `AloneLedger` is that of a
/// scheduler that has the link to itself; `SharedLedger` (shared.h) is one party's view of a segment.
#ifndef MSFRS_LEDGER_LEDGER_H
#define MSFRS_LEDGER_LEDGER_H

#include "plugin/msfrs_plugin.h"
#include "window/queue_estimate.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace msfrs {

/// What a party says of itself.
struct PartyState {
    uint32_t places = 0;     ///< responses in service, W; by bytes, thousandths of C that are booked.
                             ///< SharedWindow::limit of either fill the link
    uint64_t waiting = 0;    ///< requests that wait for a place and would take one now
    uint64_t queued = 0;     ///< requests that wait for their first service
    int64_t served = 0;      ///< bytes charged so far, grows
    int64_t quantum = 16384; ///< bytes of a turn, > 0
    int64_t inService = 0;   ///< bytes >= 0, what `places` are worth
};

/// What a party's connections see of the way to servers: for who looks for C.
struct PathSeen {
    QueueSeen queue;                      ///< of the last Capacity::Recent
    uint64_t packets = 0, outOfOrder = 0; ///< received, and of these before others sent earlier; grow
};

/// What all others come to.
struct OtherParties {
    uint32_t places = 0;
    uint32_t workers = 0;   ///< of the others, those that take places by turns
    uint64_t waiting = 0, queued = 0;
    double part = 1;        ///< this party's of the weights of all active users, > 0 to 1
    double received = 0;    ///< bytes that the link carried by their count, beside what we measure; grows
    double own = 0;         ///< bytes that their responses brought; grows
    std::vector<QueueSeen> queues;        ///< what each of them sees
    uint64_t packets = 0, outOfOrder = 0; ///< as PathSeen has them; grow
};

/// A class as all parties of this gateway have it, as of the last settle().
struct ClassElsewhere {
    double bytes = 0;       ///< charged to it by others since the settle() before
    double demand = 0;      ///< of all, this party included: sum of the weights of its active users
    double here = 0;        ///< the part of that which is this party's
};

/// The window, as the party that measures has it, or as one that follows has taken it over.
struct SharedWindow {
    double limit = 1;       ///< W+, 1..2^20; thousandths of C: 1000
    double rate = 0;        ///< C in bit/s, > 0
    double utilisation = 0; ///< U of the last interval, >= 0
    msfrs_time queue = 0;   ///< q*, ns >= 0; 0: not known
};

/// What a party measures.
struct Measured {
    double received = 0;    ///< bytes that the link carried, grows
    double own = 0;         ///< of these, responses of this party; grows
    bool metered = false;   ///< `received` is an interface's count, the same for all of one machine
    PathSeen path;
};

class Ledger {
public:
    using User = uint32_t;
    static constexpr User NoUser = UINT32_MAX;

    virtual ~Ledger() = default;

    /// What the others come to, not older than a millisecond. The reference stays valid while the ledger lives.
    virtual const OtherParties &look(msfrs_time now) = 0;
    /// Whether a place that is free may be taken: no other party that waits is too far behind.
    /// \param fresh for an item without service: the reserve is open to who is ahead a little more
    virtual bool turn(bool fresh) const = 0;
    /// Says what this party has and wants, at every change; after look().
    virtual void say(const PartyState &, msfrs_time now) = 0;
    /// When look() is worth another call; 0: not before settle().
    virtual msfrs_time lookAt() const = 0;

    /// A user of a class is followed from here on. \param weight of the user, > 0
    /// \param bytes charged to it here so far, any number
    /// \param items of its requests that have work here
    /// \returns NoUser if there is nothing to follow
    virtual User enter(std::string_view cls, std::string_view user, double weight, uint64_t bytes, uint32_t items) = 0;
    /// Says of a user that has entered, before every settle(), what it was charged, how many of its requests wait for
    /// their first service, and how many have work.
    /// \returns bytes charged to it by others since the last call, or since it entered
    virtual int64_t exchange(User, uint64_t bytes, uint32_t waiting, uint32_t items) = 0;
    /// Its requests that wait elsewhere, as of the last exchange().
    virtual uint32_t waitingElsewhere(User) const = 0;
    /// Whether any of its requests has work elsewhere, likewise.
    virtual bool busyElsewhere(User) const = 0;
    /// The user is followed no more.
    virtual void leave(User) = 0;

    /// Says what a class was charged here so far, in bytes. \param n index into the configuration's classes
    virtual void served(uint32_t n, std::string_view cls, uint64_t bytes) = 0;
    /// What others had of the class. \param n as in served()
    virtual ClassElsewhere elsewhere(uint32_t n) const = 0;
    /// Whether others go by what this party's interface counts; if not, its figure may be an old one.
    virtual bool measures() const = 0;
    /// Says what is measured, and the window that this party has.
    virtual void measured(const SharedWindow &, const Measured &) = 0;
    /// Every so often, after all users, classes and measures were told: who lives, who leads, and what all want.
    /// \returns false if another process has taken this party's slot and there is no other for it, so that nothing is
    /// known anew
    virtual bool settle(msfrs_time now) = 0;
    static constexpr msfrs_time Every = 100'000'000; ///< ns between two calls of settle()
    /// The window to go by; nothing: this party leads, and computes it.
    virtual std::optional<SharedWindow> follow() const = 0;
};

/// A scheduler that has the link to itself.
class AloneLedger : public Ledger {
public:
    const OtherParties &look(msfrs_time) override { return none_; }
    bool turn(bool) const override { return true; }
    void say(const PartyState &, msfrs_time) override {}
    msfrs_time lookAt() const override { return 0; }
    User enter(std::string_view, std::string_view, double, uint64_t, uint32_t) override { return NoUser; }
    int64_t exchange(User, uint64_t, uint32_t, uint32_t) override { return 0; }
    uint32_t waitingElsewhere(User) const override { return 0; }
    bool busyElsewhere(User) const override { return false; }
    void leave(User) override {}
    void served(uint32_t, std::string_view, uint64_t) override {}
    ClassElsewhere elsewhere(uint32_t) const override { return {}; }
    bool measures() const override { return true; }
    void measured(const SharedWindow &, const Measured &) override {}
    bool settle(msfrs_time) override { return true; }
    std::optional<SharedWindow> follow() const override { return {}; }

private:
    const OtherParties none_ = {}; // clang wants it said
};

} // namespace msfrs

#endif
