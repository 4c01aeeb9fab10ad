// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A binary heap of pointers that tracks the position of each element. An element whose key has changed can be moved,
/// and one that is not on top can be removed, in O(log n). Keys are kept in the heap's own array: a comparison then
/// seldom reads the elements, which are spread over memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace msfrs {

/// \tparam T element
/// \tparam Traits `static double Key(const T &)`, least first;
///         `static bool Before(const T &, const T &)`, a strict weak order among equal keys;
///         `static uint32_t &Place(T &)`, where the heap keeps the element's position: 0 while it is not in the heap,
///         so that zeroed state is right from the start
template <class T, class Traits>
class Heap {
public:
    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }
    T *top() const { return entries_.empty() ? nullptr : entries_.front().element; }
    T *at(const size_t n) const { return entries_[n].element; }
    double keyAt(const size_t n) const { return entries_[n].key; }
    /// Whether the element at position a goes before the one at position b.
    bool before(const size_t a, const size_t b) const { return Before(entries_[a], entries_[b]); }
    static bool Holds(T &t) { return Traits::Place(t) != 0; }

    /// Reserves room for n elements, so that no push up to then allocates. \throws std::bad_alloc
    void reserve(const size_t n)
    {
        if (n > entries_.capacity())
            entries_.reserve(std::max(n, 2 * entries_.capacity()));
    }

    void push(T &t)
    {
        entries_.push_back({Traits::Key(t), &t});
        Traits::Place(t) = static_cast<uint32_t>(entries_.size());
        up(entries_.size() - 1);
    }

    void erase(T &t)
    {
        const size_t n = Traits::Place(t) - 1;
        const Entry last = entries_.back();
        entries_.pop_back();
        Traits::Place(t) = 0;
        if (last.element != &t) {
            put(n, last);
            move(n);
        }
    }

    /// The key of an element that is in the heap has changed.
    void update(T &t)
    {
        const size_t n = Traits::Place(t) - 1;
        entries_[n].key = Traits::Key(t);
        move(n);
    }

    /// Adds, moves or removes t, so that it is in the heap exactly if `wanted`.
    void settle(T &t, const bool wanted)
    {
        if (!Holds(t)) {
            if (wanted)
                push(t);
        } else if (wanted) {
            update(t);
        } else {
            erase(t);
        }
    }

private:
    struct Entry {
        double key;
        T *element;
    };

    static bool Before(const Entry &a, const Entry &b)
    {
        return a.key != b.key ? a.key < b.key : Traits::Before(*a.element, *b.element);
    }

    void put(const size_t n, const Entry &entry)
    {
        entries_[n] = entry;
        Traits::Place(*entry.element) = static_cast<uint32_t>(n + 1);
    }

    void move(const size_t n)
    {
        if (n > 0 && before(n, (n - 1) / 2))
            up(n);
        else
            down(n);
    }

    void up(size_t n)
    {
        const Entry entry = entries_[n];
        while (n > 0 && Before(entry, entries_[(n - 1) / 2])) {
            put(n, entries_[(n - 1) / 2]);
            n = (n - 1) / 2;
        }
        put(n, entry);
    }

    void down(size_t n)
    {
        const Entry entry = entries_[n];
        for (;;) {
            size_t child = 2 * n + 1;
            if (child >= entries_.size())
                break;
            if (child + 1 < entries_.size() && before(child + 1, child))
                ++child;
            if (!Before(entries_[child], entry))
                break;
            put(n, entries_[child]);
            n = child;
        }
        put(n, entry);
    }

    std::vector<Entry> entries_;
};

} // namespace msfrs
