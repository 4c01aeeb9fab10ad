// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The upper level of the round robins: deficit round robin between classes by weight. The level below decides what a
/// class sends in its turn.
#pragma once

#include "plugin/msfrs_plugin.h"
#include "sched/kept.h"
#include "sched/round.h"

namespace msfrs {

/// The cost of an item to its turn. At least one byte, so that a queue of empty items cannot keep the turn for ever.
inline double CostOf(const msfrs_item &i) { return static_cast<double>(std::max<int64_t>(i.est[0], 1)); }

/// The first two rows of the parameter table of a scheduler that uses ClassRound, in this order.
constexpr msfrs_param QuantumParam = {
    "quantum", MSFRS_INT, "bytes", "1514", 1, 1e9, nullptr,
    "bytes for a weight of 1 in a round; O(1) a packet if at least the largest packet"};
constexpr msfrs_param ShareParam = {
    "share", MSFRS_CHOICE, "", "class", 0, 0, "class|user", "owner of the weight: the class, or each of its users"};

constexpr msfrs_gauge DeficitGauge = {
    "deficit", "bytes", "deficit of a class; negative: debt for bytes charged after they were sent"};

/// \tparam ClassState derived from Turn, with `msfrs_class *cls` and `Round<Member> members`
template <class ClassState>
class ClassRound {
public:
    /// \param shares whether the table has the second row; without it weights are the classes'
    void init(const msfrs_value *const params, const bool shares = true)
    {
        quantum_ = static_cast<double>(params[0].i);
        perUser_ = shares && params[1].i == 1;
    }

    /// bytes per round for a weight of 1
    double quantum() const { return quantum_; }

    /// The next item, or null when nothing is queued. \param nextOf the next item of a class with something queued
    template <class NextOf>
    msfrs_item *next(const NextOf &nextOf)
    {
        if (!classes_.busy())
            return nullptr;
        auto &c = classes_.select([&](ClassState &some) { return CostOf(*nextOf(some)); },
                                  [&](const ClassState &some) {
                                      return quantum_ * some.cls->weight *
                                             (perUser_ ? std::max(some.cls->users, 1u) : 1u);
                                  });
        return nextOf(c);
    }

    /// An item of m was queued. \param first whether m had none
    template <class Member>
    void enqueued(ClassState &c, Member &m, const bool first)
    {
        if (first)
            c.members.ready(m);
        if (c.cls->backlog == 1)
            classes_.ready(c);
    }
    /// An item of m left its queue.
    /// \param empty whether it was m's last one; \param cost bytes paid; 0: it was not served
    template <class Member>
    void left(ClassState &c, Member &m, const bool empty, const double cost)
    {
        classes_.spend(c, cost);
        c.members.spend(m, cost);
        if (empty)
            c.members.rest(m);
        if (c.cls->backlog == 0)
            classes_.rest(c);
    }
    /// Service while nothing is queued costs nothing.
    template <class Member>
    void charged(ClassState &c, Member &m, const double amount)
    {
        if (amount < 0 || classes_.busy())
            classes_.spend(c, amount);
        if (amount < 0 || c.members.busy())
            c.members.spend(m, amount);
    }
    void forget(ClassState &c) { classes_.forget(c); }

    /// Saves positions and deficits of the classes, in the order of their turns.
    void save(const msfrs_move &move) const
    {
        classes_.save([&](const ClassState &c, const auto &figures) {
            Put(move, {c.cls, nullptr, nullptr}, figures);
        });
    }
    /// \returns as msfrs_sched_ops::restore
    int restore(ClassState &c, const double *const figures, const uint32_t n)
    {
        if (n != Round<ClassState>::Figures)
            return -1;
        classes_.restore(c, figures);
        return 0;
    }

private:
    double quantum_;
    bool perUser_;
    Round<ClassState> classes_;
};

} // namespace msfrs
