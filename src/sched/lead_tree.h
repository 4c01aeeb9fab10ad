// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A search tree of pointers ordered by a key, in which every element knows the least value in its subtree. It finds
/// the element with the least value among those whose key is at most a bound. A treap, expected O(log n) for each call.
/// Its shape depends only on a hash of the order of insertion, so that equal runs take equal time.
#pragma once

#include <cstdint>

namespace msfrs {

/// An element's node in a LeadTree. Zeroed: in no tree.
template <class T>
struct LeadNode {
    double key, value;
    uint64_t tie;           ///< unique; the least goes first, of equal keys, and of equal values and keys
    T *left, *right, *best; ///< best: element with the least value in this subtree
    uint32_t priority;      ///< at least that of the elements below
    bool held;
};

/// \tparam Node the member of T that is its node in this tree
template <class T, LeadNode<T> T::*Node>
class LeadTree {
public:
    bool empty() const { return !root_; }
    /// The element with the least key, or null.
    T *first() const { return first_; }
    double leastKey() const { return At(*first_).key; }

    /// The element with the least value among those whose key is at most `most`, or null; of equal values the least
    /// key.
    T *best(const double most) const
    {
        T *best = nullptr;
        for (T *t = root_; t;) {
            const auto &node = At(*t);
            if (!(node.key <= most)) {
                t = node.left;
                continue;
            }
            best = Better(Better(best, t), node.left ? At(*node.left).best : nullptr);
            t = node.right;
        }
        return best;
    }

    /// Adds, moves or removes t, so that it is in the tree exactly if `wanted`.
    void settle(T &t, const bool wanted, const double key, const double value, const uint64_t tie)
    {
        auto &node = At(t);
        if (node.held && wanted && node.key == key && node.value == value && node.tie == tie)
            return;
        if (node.held)
            root_ = Without(root_, t);
        if (wanted) {
            node = {key, value, tie, nullptr, nullptr, &t, next(), true};
            root_ = With(root_, t);
        } else {
            node = {};
        }
        first_ = root_;
        while (first_ && At(*first_).left)
            first_ = At(*first_).left;
    }

private:
    static LeadNode<T> &At(T &t) { return t.*Node; }

    static bool Before(const T &a, const T &b)
    {
        const auto &x = a.*Node, &y = b.*Node;
        return x.key != y.key ? x.key < y.key : x.tie < y.tie;
    }

    static T *Better(T *const a, T *const b)
    {
        if (!a || !b)
            return a ? a : b;
        const double x = At(*a).value, y = At(*b).value;
        return x != y ? (x < y ? a : b) : (Before(*a, *b) ? a : b);
    }

    static T *Settled(T *const t)
    {
        auto &node = At(*t);
        node.best = t;
        for (T *const below : {node.left, node.right}) {
            if (below)
                node.best = Better(node.best, At(*below).best);
        }
        return t;
    }

    /// Splits a subtree into the elements before `at` and those behind it.
    static void Split(T *const root, const T &at, T *&before, T *&behind)
    {
        if (!root) {
            before = behind = nullptr;
            return;
        }
        if (Before(*root, at)) {
            Split(At(*root).right, at, At(*root).right, behind);
            before = Settled(root);
        } else {
            Split(At(*root).left, at, before, At(*root).left);
            behind = Settled(root);
        }
    }

    /// Joins two subtrees, all of a being before all of b.
    static T *Join(T *const a, T *const b)
    {
        if (!a || !b)
            return a ? a : b;
        if (At(*a).priority > At(*b).priority) {
            At(*a).right = Join(At(*a).right, b);
            return Settled(a);
        }
        At(*b).left = Join(a, At(*b).left);
        return Settled(b);
    }

    static T *With(T *const root, T &t)
    {
        if (!root)
            return &t;
        if (At(t).priority > At(*root).priority) {
            Split(root, t, At(t).left, At(t).right);
            return Settled(&t);
        }
        auto *&side = Before(t, *root) ? At(*root).left : At(*root).right;
        side = With(side, t);
        return Settled(root);
    }

    static T *Without(T *const root, T &t)
    {
        if (root == &t)
            return Join(At(t).left, At(t).right);
        auto *&side = Before(t, *root) ? At(*root).left : At(*root).right;
        side = Without(side, t);
        return Settled(root);
    }

    /// The finalizer of MurmurHash3 over a counter: as good as random here.
    uint32_t next()
    {
        uint32_t h = ++count_;
        h = (h ^ h >> 16) * 0x85ebca6bu;
        h = (h ^ h >> 13) * 0xc2b2ae35u;
        return h ^ h >> 16;
    }

    T *root_ = nullptr, *first_ = nullptr;
    uint32_t count_ = 0;
};

} // namespace msfrs
