// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A set from which an element is drawn at random in proportion to its weight, in O(1).
///
/// Elements stand in groups by the binary exponent of their weights. A draw chooses a group by the groups' totals, then
/// an element of it, which it keeps with the probability weight / greatest weight of the group: more than 1/2, and 1
/// while all weights are equal or powers of two. Groups are as many as there are exponents in use, a handful however
/// many elements there are. (An alias table would have to be built again with every element that comes or goes, a
/// tree of sums would cost O(log n).)
#ifndef MSFRS_AQM_WEIGHTED_SET_H
#define MSFRS_AQM_WEIGHTED_SET_H

#include "aqm/buffer.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace msfrs {

/// Where an element stands; it changes when another one is taken out. {0, 0}: nowhere, so that zeroed state is right.
struct Place {
    uint32_t group; ///< from 0
    uint32_t slot;  ///< from 1
    bool held() const { return slot != 0; }
};

/// \tparam Slot has `double weight` and `Place *place`, which the set keeps up to date
template <class Slot>
class WeightedSet {
public:
    bool empty() const { return count_ == 0; }
    uint32_t size() const { return count_; }
    double total() const { return total_; } ///< sum of the weights
    Slot &at(const Place p) { return groups_[p.group].slots[p.slot - 1]; }
    const Slot &at(const Place p) const { return groups_[p.group].slots[p.slot - 1]; }

    /// \param slot weight > 0
    Slot &add(const Slot &slot)
    {
        int exponent;
        if (std::frexp(slot.weight, &exponent) == 0.5)
            --exponent; // a power of two is the greatest of its group
        const uint32_t g = groupOf(exponent);
        auto &group = groups_[g];
        group.slots.push_back(slot);
        group.total += slot.weight;
        total_ += slot.weight;
        ++count_;
        *slot.place = {g, static_cast<uint32_t>(group.slots.size())};
        return group.slots.back();
    }

    void remove(Place &p)
    {
        auto &group = groups_[p.group];
        auto &slot = group.slots[p.slot - 1];
        const double weight = slot.weight;
        slot = group.slots.back();
        *slot.place = p;
        group.slots.pop_back();
        p = {};
        --count_;
        group.total = group.slots.empty() ? 0 : group.total - weight; // what is empty starts without rounding errors
        total_ = count_ ? total_ - weight : 0;
    }

    /// Not empty.
    Slot &draw(const Dice &dice)
    {
        auto *group = &groups_[0];
        if (groups_.size() > 1) {
            double left = dice.uniform() * total_;
            for (auto &g : groups_) {
                if (g.slots.empty())
                    continue;
                group = &g; // the last one takes what rounding leaves over
                if (left < g.total)
                    break;
                left -= g.total;
            }
        }
        for (;;) {
            auto &slot = group->slots[dice.below(static_cast<uint32_t>(group->slots.size()))];
            if (slot.weight >= group->greatest || dice.uniform() * group->greatest < slot.weight)
                return slot;
        }
    }

    /// The element after `p` in a round over all, beginning anywhere; not empty. It need not stand at p any more.
    Slot &next(Place &p)
    {
        ++p.slot;
        while (p.group >= groups_.size() || p.slot > groups_[p.group].slots.size()) {
            p.group = p.group + 1 < groups_.size() ? p.group + 1 : 0;
            p.slot = 1;
        }
        return at(p);
    }

    /// Calls `visit` for every element; it must neither add nor remove.
    template <class Visit>
    void each(Visit visit)
    {
        for (auto &group : groups_) {
            for (auto &slot : group.slots)
                visit(slot);
        }
    }

private:
    struct Group {
        int exponent;
        double greatest; ///< 2^exponent, what a weight here may be at most
        double total = 0;
        std::vector<Slot> slots;
    };

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
    double total_ = 0;
};

} // namespace msfrs

#endif
