// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The ledger: the state that several schedulers on one link, the *parties*, must agree on. Each party has an engine
/// with counters of its own. The ledger gives it the present and past service of the others, and decides whose turn it
/// is. `Ledger` itself is that of a scheduler without others; `SharedLedger` (shared.h) is one party's view of a segment.
#pragma once

#include "plugin/msfrs_plugin.h"
#include "window/queue_estimate.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace msfrs {

/// The state that a party publishes.
struct PartyState {
    uint32_t places = 0;     ///< responses in service, W; by bytes, booked thousandths of C.
                             ///< SharedWindow::limit of either fill the link
    uint64_t waiting = 0;    ///< requests that wait for a window slot and would take one now
    uint64_t queued = 0;     ///< requests that wait for their first service
    int64_t served = 0;      ///< bytes charged so far, grows
    int64_t quantum = 16384; ///< bytes of a turn, > 0
    int64_t inService = 0;   ///< bytes >= 0 that `places` stand for
};

/// Path measurements of a party's connections to servers, input for the estimate of C.
struct PathSeen {
    QueueSeen queue;                      ///< of the last Capacity::Recent
    uint64_t packets = 0, outOfOrder = 0; ///< received, and of these out of order; grow
};

/// Sums over all other parties.
struct OtherParties {
    uint32_t places = 0;
    uint32_t workers = 0;   ///< of the others, those that take slots by turns
    uint64_t waiting = 0, queued = 0;
    double part = 1;        ///< this party's part of the weights of all active users, > 0 to 1
    double received = 0;    ///< bytes that the link carried by their count and not by ours; grows
    double own = 0;         ///< bytes of their responses; grows
    std::vector<QueueSeen> queues;        ///< the queue estimate of each
    uint64_t packets = 0, outOfOrder = 0; ///< as PathSeen has them; grow
};

/// A class at all parties of this gateway, as of the last settle().
struct ClassElsewhere {
    double bytes = 0;       ///< charged to it by other parties since the previous settle()
    double demand = 0;      ///< of all, this party included: sum of the weights of its active users
    double here = 0;        ///< this party's part of that
};

/// The window as computed by the party that measures, or as adopted by a follower.
struct SharedWindow {
    double limit = 1;       ///< W+, 1..2^20; thousandths of C: 1000
    double rate = 0;        ///< C in bit/s, > 0
    double utilisation = 0; ///< U of the last interval, >= 0
    msfrs_time queue = 0;   ///< q*, ns >= 0; 0: not known
    uint32_t floor = 0;     ///< WindowFloor::Phase; 0: not known
};

/// The measurements of a party.
struct Measured {
    double received = 0;    ///< bytes that the link carried, grows
    double own = 0;         ///< of these, responses of this party; grows
    bool metered = false;   ///< `received` is an interface's count, the same for all parties of a machine
    PathSeen path;
};

class Ledger {
public:
    using User = uint32_t;
    static constexpr User NoUser = UINT32_MAX;

    virtual ~Ledger() = default;

    /// The sums of the others, at most a millisecond old. The reference stays valid while the ledger lives.
    virtual const OtherParties &look(msfrs_time /*now*/) { return none_; }
    /// Whether this party may take a free window slot: no other waiting party is too far behind.
    /// \param fresh for an item without service: the reserve is open to a party that is slightly further ahead
    virtual bool turn(bool /*fresh*/) const { return true; }
    /// Publishes the state of this party, at every change; after look().
    virtual void say(const PartyState &, msfrs_time /*now*/) {}
    /// When to call look() again; 0: not before settle().
    virtual msfrs_time lookAt() const { return 0; }

    /// Starts to follow a user of a class. \param weight of the user, > 0
    /// \param bytes charged to it here so far, any number
    /// \param items its requests that have work here
    /// \returns NoUser if there is nothing to follow
    virtual User enter(std::string_view /*cls*/, std::string_view /*user*/, double /*weight*/, uint64_t /*bytes*/,
                       uint32_t /*items*/)
    {
        return NoUser;
    }
    /// Publishes, before every settle(), the bytes charged to a user that has entered, and how many of its requests
    /// wait for their first service or have work.
    /// \returns bytes charged to it by other parties since the last call, or since it entered
    virtual int64_t exchange(User, uint64_t /*bytes*/, uint32_t /*waiting*/, uint32_t /*items*/) { return 0; }
    /// Its requests that wait at other parties, as of the last exchange().
    virtual uint32_t waitingElsewhere(User) const { return 0; }
    /// Whether any of its requests has work at other parties, likewise.
    virtual bool busyElsewhere(User) const { return false; }
    /// Stops following the user.
    virtual void leave(User) {}

    /// Publishes the bytes charged to a class here so far. \param n index into the configuration's classes
    virtual void served(uint32_t /*n*/, std::string_view /*cls*/, uint64_t /*bytes*/) {}
    /// The class at the other parties. \param n as in served()
    virtual ClassElsewhere elsewhere(uint32_t /*n*/) const { return {}; }
    /// Whether the others rely on this party's interface counter; if not, its reading may be an old one.
    virtual bool measures() const { return true; }
    /// Publishes the measurements and the window of this party.
    virtual void measured(const SharedWindow &, const Measured &) {}
    /// Every so often, after all users, classes and measurements were published: finds the live parties, the leader
    /// and all demands.
    /// \returns false if another process has taken this party's slot and there is no other, so nothing is updated
    virtual bool settle(msfrs_time /*now*/) { return true; }
    static constexpr msfrs_time Every = 100'000'000; ///< ns between two calls of settle()
    /// The window to follow; nothing: this party leads, and computes it.
    virtual std::optional<SharedWindow> follow() const { return {}; }

private:
    const OtherParties none_ = {}; // clang needs the initialiser
};

} // namespace msfrs
