// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A binary heap of pointers that knows where each element stands, so that an element whose key has changed
/// can be moved, and one that is not on top can be taken out, in O(log n).
#ifndef MSFRS_SCHED_HEAP_H
#define MSFRS_SCHED_HEAP_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msfrs {

/// \tparam T element
/// \tparam Traits `static bool Before(const T &, const T &)`, a strict weak order;
///         `static uint32_t &Place(T &)`, where the heap keeps the element's place: 0 while it is not in it,
///         so that zeroed state is right from the start
template <class T, class Traits>
class Heap {
public:
    bool empty() const { return elements_.empty(); }
    size_t size() const { return elements_.size(); }
    T *top() const { return elements_.empty() ? nullptr : elements_.front(); }
    T *at(const size_t n) const { return elements_[n]; }
    static bool Holds(T &t) { return Traits::Place(t) != 0; }

    void push(T &t)
    {
        elements_.push_back(&t);
        Traits::Place(t) = static_cast<uint32_t>(elements_.size());
        up(elements_.size() - 1);
    }

    void erase(T &t)
    {
        const size_t n = Traits::Place(t) - 1;
        T *const last = elements_.back();
        elements_.pop_back();
        Traits::Place(t) = 0;
        if (last != &t) {
            put(n, last);
            update(*last);
        }
    }

    /// The key of an element that is in the heap has changed.
    void update(T &t)
    {
        up(Traits::Place(t) - 1);
        down(Traits::Place(t) - 1);
    }

    /// Puts in, moves or takes out, so that t is in the heap exactly if `wanted`.
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
    void put(const size_t n, T *const t)
    {
        elements_[n] = t;
        Traits::Place(*t) = static_cast<uint32_t>(n + 1);
    }

    void up(size_t n)
    {
        T *const t = elements_[n];
        while (n > 0) {
            const size_t parent = (n - 1) / 2;
            if (!Traits::Before(*t, *elements_[parent]))
                break;
            put(n, elements_[parent]);
            n = parent;
        }
        put(n, t);
    }

    void down(size_t n)
    {
        T *const t = elements_[n];
        for (;;) {
            size_t child = 2 * n + 1;
            if (child >= elements_.size())
                break;
            if (child + 1 < elements_.size() && Traits::Before(*elements_[child + 1], *elements_[child]))
                ++child;
            if (!Traits::Before(*elements_[child], *t))
                break;
            put(n, elements_[child]);
            n = child;
        }
        put(n, t);
    }

    std::vector<T *> elements_;
};

} // namespace msfrs

#endif
