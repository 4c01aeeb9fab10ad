// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A set from which an element is drawn at random in proportion to its weight, in O(1).
///
/// Elements are grouped by the binary exponent of their weights. A draw chooses a group by the groups' totals, then an
/// element of it, which it accepts with the probability weight / greatest weight of the group: more than 1/2, and 1 if
/// all weights are equal or powers of two. There are as many groups as exponents in use, a handful for any number of
/// elements. (An alias table would need rebuilding on every insertion or removal; a tree of sums costs O(log n).)
#pragma once

#include "aqm/buffer.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace msfrs {

/// The position of an element, maintained by the set. {0, 0}: in no set, so that zeroed memory is valid.
struct Place {
    uint32_t group; ///< from 0
    uint32_t slot;  ///< from 1
    bool held() const { return slot != 0; }
};

/// A set of pointers. The elements that the next draws will most likely select are prefetched: with many elements none
/// is in the cache, and waiting for memory would be most of the cost of a draw.
/// \tparam T has `double weight` and `Place place`, neither of which may be changed from outside while it is in the set
template <class T>
class WeightedSet {
public:
    bool empty() const { return count_ == 0; }
    uint32_t size() const { return count_; }
    double total() const { return total_; } ///< sum of the weights

    /// \param t weight > 0
    void add(T &t)
    {
        int exponent;
        if (std::frexp(t.weight, &exponent) == 0.5)
            --exponent; // a power of two is the greatest of its group
        const uint32_t g = groupOf(exponent);
        auto &group = groups_[g];
        group.slots.push_back(&t);
        group.total += t.weight;
        total_ += t.weight;
        ++count_;
        t.place = {g, static_cast<uint32_t>(group.slots.size())};
    }

    void remove(T &t)
    {
        auto &group = groups_[t.place.group];
        auto *const last = group.slots.back();
        group.slots[t.place.slot - 1] = last;
        last->place = t.place;
        group.slots.pop_back();
        t.place = {};
        --count_;
        group.total = group.slots.empty() ? 0 : group.total - t.weight; // an empty group starts without rounding errors
        total_ = count_ ? total_ - t.weight : 0;
    }

    /// \returns a random element, in proportion to its weight; the set must not be empty
    T &draw(const Dice &dice)
    {
        auto *group = &groups_[0];
        if (groups_.size() > 1) {
            double left = dice.uniform() * total_;
            for (auto &g : groups_) {
                if (g.slots.empty())
                    continue;
                group = &g; // the last group absorbs rounding errors
                if (left < g.total)
                    break;
                left -= g.total;
            }
        }
        for (;;) {
            auto &t = **slot(*group, ahead_[turn_ % Ahead]);
            ahead_[turn_ % Ahead] = static_cast<uint32_t>(dice.bits() >> 32);
            // By those draws the group or its size may have changed: then it is mostly the same element, or the draw
            // waits for another one. Each draw is uniform over the elements that exist then.
            __builtin_prefetch(slot(*group, ahead_[turn_ % Ahead]));
            ++turn_;
            __builtin_prefetch(*slot(*group, ahead_[(turn_ + Ahead / 2) % Ahead]), 1);
            if (t.weight >= group->greatest || dice.uniform() * group->greatest < t.weight)
                return t;
        }
    }

    /// \returns the element after `p` in a round over all, and moves p to it; the set must not be empty. p may be any
    /// position, including one that no longer has an element.
    T &next(Place &p)
    {
        ++p.slot;
        while (p.group >= groups_.size() || p.slot > groups_[p.group].slots.size()) {
            p.group = p.group + 1 < groups_.size() ? p.group + 1 : 0;
            p.slot = 1;
        }
        return *groups_[p.group].slots[p.slot - 1];
    }

    /// Calls `visit` for every element; `visit` must neither add nor remove elements.
    template <class Visit>
    void each(Visit visit)
    {
        for (auto &group : groups_) {
            for (auto *const t : group.slots)
                visit(*t);
        }
    }

private:
    struct Group {
        int exponent;
        double greatest; ///< 2^exponent, the upper bound of the weights here
        double total = 0;
        std::vector<T *> slots;
    };

    /// \param random 32 bits
    static T *const *slot(const Group &group, const uint32_t random)
    {
        return &group.slots[(uint64_t(random) * group.slots.size()) >> 32];
    }

    uint32_t groupOf(const int exponent)
    {
        uint32_t g = 0;
        while (g < groups_.size() && groups_[g].exponent != exponent)
            ++g;
        if (g == groups_.size())
            groups_.push_back({exponent, std::ldexp(1.0, exponent), 0, {}});
        return g;
    }

    std::vector<Group> groups_;
    uint32_t count_ = 0;
    static constexpr uint32_t Ahead = 4;
    /// Random bits for the elements of the next draws, in a ring; the initial values are arbitrary.
    uint32_t ahead_[Ahead] = {0x9e3779b9, 0x3c6ef372, 0xdaa66d2b, 0x78dde6e4};
    uint32_t turn_ = 0;
    double total_ = 0;
};

} // namespace msfrs
