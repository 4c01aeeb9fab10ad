// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A deficit round robin in which members that have just become busy go before those that have been busy for longer.
///
/// RFC 8290, section 4.2. There are two lists, new and old. A member that becomes busy and is in neither joins the new
/// one, with a quantum of credit. The head of the new list has the turn; if that list is empty, the head of the old
/// one:
///
///     credit <= 0:        it gets another quantum, and goes to the end of the old list
///     nothing queued:     it leaves the old list, or goes from the new one to the end of the old, so that a member
///                         that sends now and then is not new each time while others wait
///     otherwise:          its next item is sent and paid from its credit, which may fall below 0
///
/// Beyond the RFC, for the same reasons as in round.h: a member in debt keeps its position in the old list, queued or
/// not; service while no member is queued costs nothing; and rounds that serve no member are taken in one step.
#pragma once

#include "sched/round.h"

namespace msfrs {

struct NewFirstTurn : Turn {
    bool fresh;  ///< in the new list
    bool unpaid; ///< it has joined since its last turn, and has had no quantum yet
};

/// Has the same calls as Round. \tparam T derived from NewFirstTurn, with `bool queued() const`: whether it has an item
/// queued. Zeroed memory is empty.
template <class T>
class NewFirst {
public:
    bool busy() const { return queued_ > 0; }

    void ready(T &t)
    {
        ++queued_;
        if (t.next)
            return;
        t.fresh = t.unpaid = true;
        push(new_, t);
    }

    /// It stays in its list until its turn.
    void rest(T &) { --queued_; }

    void forget(T &t)
    {
        if (t.next)
            leave(t);
    }

    void spend(T &t, const double amount)
    {
        t.deficit -= amount;
        if (t.next)
            return;
        if (t.deficit < 0) {
            t.fresh = t.unpaid = false;
            push(old_, t);
        } else {
            t.deficit = 0; // no credit is saved up while idle
        }
    }

    template <class Visit>
    void save(const Visit &visit) const
    {
        for (const Turn *const head : {new_, old_}) {
            const Turn *turn = head;
            for (bool more = head; more; more = turn != head) {
                const T &t = *static_cast<const T *>(turn);
                visit(t, std::array<double, Figures>{t.deficit, t.fresh ? 1.0 : 0.0, t.unpaid ? 1.0 : 0.0});
                turn = turn->next;
            }
        }
    }
    void restore(T &t, const double *const figures)
    {
        t.deficit = figures[0];
        t.fresh = figures[1] != 0;
        t.unpaid = figures[2] != 0;
        push(t.fresh ? new_ : old_, t);
    }
    static constexpr uint32_t Figures = 3;

    template <class Cost, class Quantum>
    T &select(const Cost &, const Quantum &quantum)
    {
        for (auto visits = uint64_t(2) * size_ + 2;; --visits) {
            if (visits == 0) { // all are in the old list now
                SkipRounds<T>(old_, size_, [&](T &t) { return std::floor(-t.deficit / quantum(t)); }, quantum);
                visits = uint64_t(2) * size_ + 2;
            }
            T &t = *static_cast<T *>(new_ ? new_ : old_);
            if (t.unpaid) { // it has just joined; an older debt remains
                t.unpaid = false;
                t.deficit += quantum(t);
            }
            if (t.deficit <= 0) {
                t.deficit += quantum(t);
                pass(t);
            } else if (t.queued()) {
                return t;
            } else if (t.fresh) {
                pass(t);
            } else {
                leave(t);
            }
        }
    }

private:
    void push(Turn *&head, T &t)
    {
        ++size_;
        Link(head, t);
    }
    /// Moves t to the end of the old list.
    void pass(T &t)
    {
        Unlink(t.fresh ? new_ : old_, t);
        t.fresh = false;
        Link(old_, t);
    }
    void leave(T &t)
    {
        --size_;
        Unlink(t.fresh ? new_ : old_, t);
        t.fresh = t.unpaid = false;
        t.deficit = 0;
    }

    Turn *new_, *old_;
    uint32_t size_, queued_;
};

} // namespace msfrs
