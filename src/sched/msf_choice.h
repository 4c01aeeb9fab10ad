// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Which item msf picks next, for a slot of the reserve and for any slot.
#pragma once

#include "sched/msf_state.h"

#include <cmath>

namespace msfrs::msf {

/// \returns the part of a lead, 0 to 1, that remains against a class or user that has been busy since p.busySince
inline double Decay(const Instance &self, const Presence &p)
{
    return std::exp(static_cast<double>(p.busySince - self.now) / self.leadTime);
}

/// Whether a user with waiting items has had no service for `leadTime`, here or elsewhere.
inline bool Neglected(const Instance &self, const FlowState &f)
{
    return static_cast<double>(self.now - std::max({f.busySince, f.servedAt, f.flow->elsewhere})) >= self.leadTime;
}

/// How far a user may be ahead of the least served user of the class and still go first, in bytes per weight. It decays
/// while the least served user waits, and is the floor once that user has had no service for `leadTime`.
inline double Lead(const Instance &self, const FlowState &least)
{
    if (self.ahead == NoBound)
        return NoBound;
    if (Neglected(self, least))
        return self.leadFloor;
    return std::max(self.leadFloor, self.lead * Decay(self, least));
}

/// The user that goes next in a class with a backlog.
inline const FlowState &NextUser(const Instance &self, const ClassState &c)
{
    const auto &least = c.leastServed();
    return c.sorted ? *c.users.best(c.leastKey() + Lead(self, least)) : least;
}

constexpr size_t Nowhere = SIZE_MAX;

/// A bound of the reserve, in bytes; doubled where several schedulers share the users. Each learns what the others
/// served a tenth of a second late, and has the sizes of its own responses alone, so counters lie further apart.
inline double Bound(const Instance &self, const double bytes) { return *self.sharers > 0 ? 2 * bytes : bytes; }

/// How far a class may be ahead and still use the reserve. A single scheduler gives bytes out of turn at the next free
/// slot. With several schedulers that slot may be at another, so there the reserve gives them, too.
inline double MostAhead(const Instance &self)
{
    return *self.sharers > 0 && self.favour.left(self.now) > 0 ? NoBound : Bound(self, self.ahead);
}

/// The item of a user that goes next in any slot. An item of unknown size counts by its attained bytes, and so would
/// wait for as long as its user makes new requests: the longest waiting one goes first after `leadTime`. It gets at
/// most every second slot of the user, so that new requests do not wait for many such items.
inline msfrs_item *Chosen(const Instance &self, const FlowState &f)
{
    const auto longest = f.flow->head; // the host's queue is in order of arrival
    const bool starves = longest->remaining < 0 && static_cast<double>(self.now - longest->enqueued) >= self.leadTime;
    return starves && !f.outOfOrder && self.ahead != NoBound ? longest : Next(f);
}

/// The user of a class that may use the reserve, or null: the least served of those with a fresh item, if it is not too
/// far ahead of the least served of all. Otherwise a user with many requests would use the reserve all the time and get
/// more than its share. Null also while the least served user is neglected: items of the reserve keep W above W+, and
/// then no other item is released.
inline FlowState *FreshUser(const Instance &self, const ClassState &c)
{
    if (c.fresh.empty())
        return nullptr;
    const auto user = c.fresh.top();
    if (c.sorted && user != &c.leastServed() && Neglected(self, c.leastServed()))
        return nullptr;
    const bool first = self.users == Fifo ||
                       c.fresh.keyAt(0) <= c.leastKey() +
                           Bound(self, static_cast<double>(self.userAhead)) / user->flow->weight;
    return first ? user : nullptr;
}

/// Position in the heap, at n or below it, of the best class that may use the reserve; Nowhere if there is none. Visits
/// only the part of the heap whose keys are at most `least + ahead`.
/// \param ahead of `least`, in bytes of a class of weight 1: its users share it
inline size_t FreshClass(const Instance &self, const size_t n, const double least, const double ahead)
{
    if (n >= self.queued.size() || self.queued.keyAt(n) > least + ahead)
        return Nowhere;
    const auto &c = *self.queued.at(n);
    if (self.queued.keyAt(n) <= least + ahead / std::max(c.cls->users, 1u) && FreshUser(self, c))
        return n;
    const size_t left = FreshClass(self, 2 * n + 1, least, ahead);
    const size_t right = FreshClass(self, 2 * n + 2, least, ahead);
    if (left == Nowhere || right == Nowhere)
        return left == Nowhere ? right : left;
    return self.queued.before(right, left) ? right : left;
}

/// The user, of all classes, whose next item has the least remaining, divided by the weight of the class (not with
/// ahead=inf). Of equals, the user of the least served class.
inline const FlowState &LeastLeft(const Instance &self)
{
    const FlowState *found = nullptr;
    double least = 0;
    size_t place = 0;
    for (size_t n = 0; n < self.queued.size(); ++n) {
        const auto &user = NextUser(self, *self.queued.at(n));
        const double left = Left(*Next(user)) / (self.ahead == NoBound ? 1 : user.flow->cls->weight);
        if (found && (left > least || (left == least && self.queued.before(place, n))))
            continue;
        found = &user;
        least = left;
        place = n;
    }
    return *found;
}

/// The user, of all classes, that goes next; something must be queued.
inline const FlowState &NextUser(const Instance &self)
{
    if (self.ahead == NoBound)
        return LeastLeft(self);
    if (self.favour.next(self.now)) {
        const auto &user = LeastLeft(self);
        if (Left(*Next(user)) <= Little)
            return user;
    }
    return NextUser(self, *self.queued.top());
}

} // namespace msfrs::msf
