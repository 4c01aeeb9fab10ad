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

/// Where a class stands that competes by what its next item has left: the least goes first.
struct Bid {
    double value;
    const FlowState *user;
};

/// The best bid of the classes from place n of the heap on whose counter is at most `most`.
inline Bid BestBid(const Instance &self, const size_t n, const double most)
{
    if (n >= self.queued.size() || self.queued.keyAt(n) > most)
        return {NoBound, nullptr};
    const auto &user = NextUser(self, *self.queued.at(n));
    const double weight = self.ahead == NoBound ? 1 : user.flow->cls->weight;
    Bid best = {Left(*Next(user)) / (weight * weight), &user};
    for (const size_t below : {2 * n + 1, 2 * n + 2}) {
        const auto bid = BestBid(self, below, most);
        if (bid.user && bid.value < best.value)
            best = bid;
    }
    return best;
}

/// The user who goes next of all, where anything is queued.
inline const FlowState &NextUser(const Instance &self)
{
    const auto &least = *self.queued.top();
    if (self.ahead == NoBound)
        return *BestBid(self, 0, NoBound).user;
    if (self.favour > 0)
        return *BestBid(self, 0, least.service() + self.favour * Decay(self, least)).user;
    return NextUser(self, least);
}

} // namespace msfrs::msf

#endif
