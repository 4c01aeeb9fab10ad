// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Who goes next in msf: for a place of the reserve, and for any.
#ifndef MSFRS_SCHED_MSF_CHOICE_H
#define MSFRS_SCHED_MSF_CHOICE_H

#include "sched/msf_state.h"

#include <cmath>

namespace msfrs::msf {

/// What is left of a lead over somebody who has had something waiting for so long.
inline double Decay(const Instance &self, const Presence &p)
{
    return std::exp(static_cast<double>(p.busySince - self.now) / self.leadTime);
}

/// Whether somebody who has something waiting had no service for `leadTime`.
inline bool Neglected(const Instance &self, const FlowState &f)
{
    return static_cast<double>(self.now - std::max(f.busySince, f.servedAt)) >= self.leadTime;
}

/// How far a user may be ahead of the least served one of the class and still go first, in bytes of a user: the less
/// the longer that one has had something waiting, and nearly nothing once he had no service for `leadTime`.
inline double Lead(const Instance &self, const FlowState &least)
{
    if (self.ahead == NoBound)
        return NoBound;
    if (Neglected(self, least))
        return self.leadFloor;
    return std::max(self.leadFloor, self.lead * Decay(self, least));
}

/// Who goes next of a class that has anything queued.
inline const FlowState &NextUser(const Instance &self, const ClassState &c)
{
    const auto &least = c.leastServed();
    return c.sorted ? *c.users.best(c.leastKey() + Lead(self, least)) : least;
}

constexpr size_t Nowhere = SIZE_MAX;

/// The user of a class who may use the reserve: least served of those with a fresh item, and not ahead of whoever is
/// least served of all. Else one with many requests would have it all the time, and more than its share. Nor while that
/// one is neglected: what the reserve lets go keeps W above W+, and then nobody else goes.
inline FlowState *FreshUser(const Instance &self, const ClassState &c)
{
    if (c.fresh.empty())
        return nullptr;
    const auto user = c.fresh.top();
    if (c.sorted && user != &c.leastServed() && Neglected(self, c.leastServed()))
        return nullptr;
    const bool first = self.users == Fifo ||
                       c.fresh.keyAt(0) <= c.leastKey() + static_cast<double>(self.userAhead) / user->flow->weight;
    return first ? user : nullptr;
}

/// Place in the heap of the best class below n that may use the reserve: fresh, and not ahead. Visits only the
/// part of the heap that is within the bound.
inline size_t FreshClass(const Instance &self, const size_t n, const double most)
{
    if (n >= self.queued.size() || self.queued.keyAt(n) > most)
        return Nowhere;
    if (FreshUser(self, *self.queued.at(n)))
        return n;
    const size_t left = FreshClass(self, 2 * n + 1, most);
    const size_t right = FreshClass(self, 2 * n + 2, most);
    if (left == Nowhere || right == Nowhere)
        return left == Nowhere ? right : left;
    return self.queued.before(right, left) ? right : left;
}

/// The user whose next item has the least left, of all classes: by their weights, or, with ahead=inf, without. Of
/// equal ones the one of the class that is served least.
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

/// The user who goes next of all, where anything is queued.
inline const FlowState &NextUser(const Instance &self)
{
    if (self.ahead == NoBound || self.favour.left(self.now) > 0)
        return LeastLeft(self);
    return NextUser(self, *self.queued.top());
}

} // namespace msfrs::msf

#endif
