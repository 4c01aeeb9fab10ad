// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The state of items, users and classes in msf, and their order; the rules are in msf.cc.
#pragma once

#include "plugin/msfrs_plugin.h"
#include "sched/heap.h"
#include "sched/item_list.h"
#include "sched/lead_tree.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace msfrs::msf {

enum Users { Fair, Fifo };
enum Wake { Virtual, Paper };
enum Order { Remaining, Attained };

constexpr msfrs_time Never = -1;
constexpr double NoBound = std::numeric_limits<double>::infinity();
constexpr int64_t Small = 4096; ///< bytes: least size that a response of unknown size counts as
constexpr double Little = 16384; ///< bytes: a response with more left does not go out of turn; a default quantum

struct ItemState {
    ItemLinks links;          ///< in ItemQueue's list; first, as ItemList expects
    uint32_t place;           ///< position in ItemQueue's heap
    bool listed;              ///< whether it is in the list
    bool ofFavour;            ///< went out of turn: no class is charged for it
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

/// The queued items of a user. Items without service come first, whatever remains of them: the reserve looks only at
/// the head. Most of these are of unknown size and go by arrival. They are in a list, since a heap of equal keys would
/// read several of them, spread over memory, for each one added or removed.
class ItemQueue {
public:
    /// Whether i is in the queue of any user.
    static bool Holds(msfrs_item &i) { return StateOf(&i).listed || Heap<msfrs_item, ItemTraits>::Holds(i); }

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

/// When a class or user was active.
struct Presence {
    msfrs_time idleSince = Never; ///< when it last had an item
    msfrs_time busySince = 0;     ///< while busy: since when, or earlier to count time before a pause
    bool busy = false;            ///< has an item, queued or in service

    void end(const msfrs_time now)
    {
        idleSince = now;
        busy = false;
    }

    /// A continuation does not count. The wait before a pause is forgotten over `memory` ns, so a user with one request
    /// after another has waited nearly as long as a user with all requests at once.
    void begin(const msfrs_time now, const double memory)
    {
        if (busy)
            return;
        busy = true;
        const double pause = idleSince == Never ? NoBound : static_cast<double>(now - idleSince);
        const double kept = std::max(1 - pause / memory, 0.0);
        busySince = now - static_cast<msfrs_time>(kept * static_cast<double>(idleSince - busySince));
    }
};

struct FlowState : Presence {
    msfrs_flow *flow;
    double service;      ///< bytes / weight of the flow
    uint32_t place[2];   ///< positions in ClassState::queued and ::fresh
    bool fifo;           ///< the instance's `users` parameter, copied for the key
    bool sorted;         ///< queued items are in `items`; else the engine's queue is the order
    msfrs_time servedAt; ///< when an item was last picked
    bool outOfOrder;     ///< that item was not the first of `items`
    ItemQueue items;
    LeadNode<FlowState> node; ///< in ClassState::users
};

/// The next item of a user; it must have one queued.
inline msfrs_item *Next(const FlowState &f) { return f.sorted ? f.items.top() : f.flow->head; }

template <int Which>
struct FlowTraits {
    static uint32_t &Place(FlowState &f) { return f.place[Which]; }
    static double Key(const FlowState &f) { return f.fifo ? static_cast<double>(f.flow->head->seq) : f.service; }
    static bool Before(const FlowState &a, const FlowState &b) { return Next(a)->seq < Next(b)->seq; }
};

struct ClassState : Presence {
    msfrs_class *cls;
    double earnedBy;     ///< greatest w_i * UC_i since the class was last not ahead of V
    double userTime;     ///< V among the users of this class
    uint32_t place[2];   ///< positions in Instance::queued and ::active
    bool sorted;         ///< users with a backlog are in `users`, else in `queued`
    Heap<FlowState, FlowTraits<0>> queued;
    LeadTree<FlowState, &FlowState::node> users;
    Heap<FlowState, FlowTraits<1>> fresh; ///< of those: users whose next item had no service yet

    double service() const { return *cls->service; }
    double share() const { return cls->weight * std::max(cls->users, 1u); } ///< w_i * UC_i
    bool anyQueued() const { return sorted ? !users.empty() : !queued.empty(); }
    /// Of those with a backlog, where there are any.
    FlowState &leastServed() const { return *(sorted ? users.first() : queued.top()); }
    double leastKey() const { return sorted ? users.leastKey() : queued.keyAt(0); }
};

template <int Which>
struct ClassTraits {
    static uint32_t &Place(ClassState &c) { return c.place[Which]; }
    static double Key(const ClassState &c) { return c.service(); }
    static bool Before(const ClassState &a, const ClassState &b)
    {
        if (a.share() != b.share())
            return a.share() > b.share();
        return a.cls->index < b.cls->index;
    }
};

/// For how much longer responses with little left may go out of turn.
class Favour {
public:
    explicit Favour(const double most = 0): most_(most) {}

    /// \returns ns
    double left(const msfrs_time now) const
    {
        if (waits_)
            return std::max(left_ - static_cast<double>(now - since_), 0.0);
        const auto until = std::min(now, servedAt_ + Silence);
        return std::min(left_ + Earned * static_cast<double>(std::max<msfrs_time>(until - since_, 0)), most_);
    }
    /// Whether the next slot may go out of turn: at most every second one, so that no class waits for all others.
    bool next(const msfrs_time now) const { return inTurn_ && left(now) > 0; }
    bool inTurn() const { return inTurn_; } ///< whether the latest slot was
    void picked(const bool outOfTurn) { inTurn_ = !outOfTurn; }
    msfrs_time servedAt() const { return servedAt_; } ///< when bytes last arrived
    void restore(const double left, const bool inTurn, const msfrs_time servedAt, const msfrs_time now)
    {
        set(left, now);
        inTurn_ = inTurn;
        servedAt_ = servedAt;
    }
    /// Bytes have arrived, or are charged in advance. Without any, nobody may wait because nothing is asked, or because
    /// the link is down.
    void served(const msfrs_time now)
    {
        set(left(now), now);
        servedAt_ = now;
    }
    /// Sets whether anybody waits from now on.
    void settle(const bool waits, const msfrs_time now)
    {
        if (waits == waits_)
            return;
        set(left(now), now);
        waits_ = waits;
    }

private:
    static constexpr double Earned = 15; ///< by each ns in which nobody waits
    static constexpr msfrs_time Silence = 300'000'000; ///< ns after bytes in which a link in use may be silent: an RTT

    void set(const double left, const msfrs_time now)
    {
        left_ = std::min(left, most_);
        since_ = now;
    }

    double most_, left_ = 0; ///< ns
    msfrs_time since_ = 0, servedAt_ = 0;
    bool waits_ = false, inTurn_ = true;
};

struct Instance {
    int64_t users, wake;
    bool sorted;                                    ///< sizes count
    double ahead;                                   ///< bytes of a class of weight 1
    int64_t lag;                                    ///< bytes of a user of weight 1
    int64_t userAhead;                              ///< bytes of any user
    double lead, leadFloor;                         ///< bytes of any user
    double leadTime;                                ///< ns
    Favour favour;
    double lagTime;                                 ///< ns
    msfrs_time now;                                 ///< of the latest call
    int64_t debt;                                   ///< bytes of a user of weight 1
    double *virtualTime;                            ///< V
    const uint64_t *elsewhere, *sharers;            ///< see msfrs_host
    std::vector<ClassState *> all;
    Heap<ClassState, ClassTraits<0>> queued;        ///< classes with a backlog
    Heap<ClassState, ClassTraits<1>> active;        ///< classes with a user, queued or served
};

inline Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
inline ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }
inline FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }

inline bool AnybodyWaits(const Instance &self) { return !self.queued.empty() || *self.elsewhere > 0; }

/// Brings all heaps up to date after any change of the flow or its class.
inline void Settle(Instance &self, msfrs_flow &f)
{
    auto &flow = StateOf(&f);
    auto &cls = StateOf(f.cls);
    const auto next = f.head ? Next(flow) : nullptr;
    if (!cls.sorted)
        cls.queued.settle(flow, next != nullptr);
    else if (next)
        cls.users.settle(flow, true, flow.service, Left(*next) / f.weight, next->seq);
    else
        cls.users.settle(flow, false, 0, 0, 0);
    cls.fresh.settle(flow, next && next->attained == 0);
    self.queued.settle(cls, f.cls->backlog > 0);
    self.active.settle(cls, f.cls->users > 0);
    self.favour.settle(AnybodyWaits(self), self.now);
}

/// An item has joined its user's queue.
inline void Insert(msfrs_item &i)
{
    auto &flow = StateOf(i.flow);
    if (flow.sorted)
        flow.items.push(i);
}

/// An item has left its user's queue.
inline void Erase(msfrs_item &i)
{
    auto &flow = StateOf(i.flow);
    if (flow.sorted)
        flow.items.erase(i);
}

} // namespace msfrs::msf
