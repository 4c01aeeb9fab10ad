// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A deficit round robin among members of one level: classes, the flows of a class, hash buckets.
///
/// M. Shreedhar, G. Varghese, "Efficient fair queuing using deficit round-robin", IEEE/ACM Trans. Networking 4 (3),
/// 1996. A member's turn begins with its quantum added to its deficit and lasts while the deficit covers its next item;
/// the rest is kept for the next round, except by a member that has nothing more queued.
///
/// Beyond the paper, for costs that are only known afterwards and for items larger than a quantum:
///   - A deficit may go below 0. A member in debt keeps its position in the ring, queued or not, and the quanta of the
///     rounds pay its debt: a member that is served for a long time while others queue keeps its debt, less the
///     service of the others in the same time.
///   - Service while no member of the level is queued costs nothing, and is not recorded.
///   - A round in which no deficit suffices is repeated in one step, as often as needed, so that a debt or an item of
///     any size costs at most two passes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace msfrs {

/// A member of a ring. Zeroed memory is right for one that has never been in a ring.
struct Turn {
    Turn *prev, *next;  ///< in the ring; null while out of it
    double deficit;     ///< bytes
};

/// Puts t at the end of a ring.
inline void Link(Turn *&head, Turn &t)
{
    if (!head) {
        head = t.prev = t.next = &t;
        return;
    }
    t.next = head;
    t.prev = head->prev;
    t.prev->next = t.next->prev = &t;
}
inline void Unlink(Turn *&head, Turn &t)
{
    if (head == &t)
        head = t.next == &t ? nullptr : t.next;
    t.prev->next = t.next;
    t.next->prev = t.prev;
    t.prev = t.next = nullptr;
}

/// Takes at once all rounds before the first one in which a queued member of a ring may send.
/// \param roundsOf that a queued member has to wait for
template <class T, class RoundsOf, class Quantum>
void SkipRounds(Turn *turn, const uint32_t size, const RoundsOf &roundsOf, const Quantum &quantum)
{
    double rounds = std::numeric_limits<double>::infinity();
    for (auto n = size; n > 0; --n, turn = turn->next) {
        T &t = *static_cast<T *>(turn);
        if (t.queued())
            rounds = std::min(rounds, roundsOf(t));
    }
    for (auto n = size; n > 0 && rounds > 0; --n, turn = turn->next) {
        T &t = *static_cast<T *>(turn);
        t.deficit += rounds * quantum(t);
        if (!t.queued())
            t.deficit = std::min(t.deficit, 0.0); // its debt is paid: it leaves at its next turn
    }
}

/// The ring of one level. \tparam T derived from Turn, with `bool queued() const`: whether it has an item queued.
/// Zeroed memory is an empty ring.
template <class T>
class Round {
public:
    /// Whether any member has an item queued.
    bool busy() const { return queued_ > 0; }

    /// t had nothing queued, and has an item now.
    void ready(T &t)
    {
        ++queued_;
        if (!t.next)
            join(t);
    }

    /// t has nothing queued any more: its last item has left.
    void rest(T &t)
    {
        --queued_;
        if (t.next && t.deficit >= 0)
            leave(t);
    }

    /// t, which has nothing queued, is about to be freed.
    void forget(T &t)
    {
        if (t.next)
            leave(t);
    }

    /// t is served `amount` bytes; negative: a refund.
    void spend(T &t, const double amount)
    {
        t.deficit -= amount;
        if (t.deficit < 0) {
            if (!t.next)
                join(t);
        } else if (!t.queued()) { // no deficit is saved up while idle
            if (t.next)
                leave(t);
            t.deficit = 0;
        }
    }

    /// Calls visit(t, figures) for each member, in the order in which restore() expects them.
    template <class Visit>
    void save(const Visit &visit) const
    {
        const Turn *turn = head_;
        for (auto n = size_; n > 0; --n, turn = turn->next) {
            visit(*static_cast<const T *>(turn),
                  std::array<double, Figures>{turn->deficit, turn == head_ && granted_ ? 1.0 : 0.0});
        }
    }
    /// t, which is out of the ring and has nothing queued, joins it again. \param figures from save()
    void restore(T &t, const double *const figures)
    {
        join(t);
        t.deficit = figures[0];
        if (head_ == &t)
            granted_ = figures[1] != 0;
    }
    static constexpr uint32_t Figures = 2;

    /// The member whose turn it is. At least one must be queued.
    /// \param cost of a queued member's next item, > 0; \param quantum of a member, > 0; both in bytes
    template <class Cost, class Quantum>
    T &select(const Cost &cost, const Quantum &quantum)
    {
        for (;;) {
            for (auto visits = size_ + 1; visits > 0; --visits) {
                T &t = *static_cast<T *>(head_);
                if (!granted_) {
                    granted_ = true;
                    t.deficit += quantum(t);
                }
                const bool queued = t.queued();
                if (queued && t.deficit >= cost(t))
                    return t;
                if (queued || t.deficit < 0) {
                    granted_ = false;
                    head_ = t.next;
                } else {
                    leave(t);
                }
            }
            SkipRounds<T>(head_, size_, [&](T &t) {
                return std::ceil((cost(t) - t.deficit) / quantum(t)) - 1;
            }, quantum);
        }
    }

private:
    void join(T &t)
    {
        ++size_;
        granted_ = granted_ && head_;
        Link(head_, t);
    }

    void leave(T &t)
    {
        --size_;
        granted_ = granted_ && head_ != &t;
        Unlink(head_, t);
        t.deficit = 0;
    }

    Turn *head_;
    uint32_t size_, queued_;
    bool granted_;      ///< the head's turn has begun: it has had its quantum of this round
};

} // namespace msfrs
