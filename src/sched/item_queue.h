// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The queued items of a user in msf, by remaining bytes.
#pragma once

#include "sched/heap.h"
#include "sched/item_list.h"

#include <utility>

namespace msfrs::msf {

constexpr int64_t Small = 4096; ///< bytes: least size that a response of unknown size counts as

struct ItemState {
    ItemLinks links;          ///< in ItemQueue's list; first, as ItemList expects
    uint32_t place;           ///< position in ItemQueue's heap
    bool listed;              ///< whether it is in the list
};

inline ItemState &StateOf(const msfrs_item *const i) { return *static_cast<ItemState *>(i->state); }

/// \returns the remaining bytes of an item: as stated, or as many as it has had, if that is unknown
inline double Left(const msfrs_item &i)
{
    return static_cast<double>(i.remaining >= 0 ? i.remaining : std::max(Small, i.attained));
}

struct ItemTraits {
    static uint32_t &Place(msfrs_item &i) { return StateOf(&i).place; }
    static double Key(const msfrs_item &i) { return i.attained == 0 ? -1 / (1 + Left(i)) : Left(i); }
    static bool Before(const msfrs_item &a, const msfrs_item &b) { return a.seq < b.seq; }
};

/// Items without service come first, whatever remains of them: the reserve looks only at the head. Most of these are of
/// unknown size and go by arrival. They are in a list, since a heap of equal keys would read several of them, spread
/// over memory, for each one added or removed.
class ItemQueue {
public:
    /// Whether i is in the queue of any user.
    static bool Holds(msfrs_item &i) { return StateOf(&i).listed || Heap<msfrs_item, ItemTraits>::Holds(i); }

    /// The next item, or null.
    msfrs_item *top() const
    {
        const auto sized = sized_.top();
        const auto first = unsized_.head();
        if (!first || !sized)
            return first ? first : sized;
        const double key = sized_.keyAt(0), unknown = ItemTraits::Key(*first);
        return key < unknown || (key == unknown && sized->seq < first->seq) ? sized : first;
    }

    void push(msfrs_item &i)
    {
        const auto last = unsized_.tail();
        if (i.attained != 0 || i.remaining >= 0 || (last && last->seq > i.seq)) { // last: size known, then unknown
            sized_.push(i);
            return;
        }
        StateOf(&i).listed = true;
        unsized_.append(i);
    }

    void erase(msfrs_item &i)
    {
        if (std::exchange(StateOf(&i).listed, false))
            unsized_.erase(i);
        else
            sized_.erase(i);
    }

private:
    Heap<msfrs_item, ItemTraits> sized_;
    ItemList unsized_{};
};

} // namespace msfrs::msf
