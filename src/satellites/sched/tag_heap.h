// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A heap of tags, least first, for very many members. It differs from heap.h in its use of the cache: four children
/// per node, which fill one cache line, and positions in an array of 4 bytes per member, so that moving a member does
/// not write to the member's own memory. With 100,000 members this halves the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msfrs {

/// Members are slots, small dense numbers. Of equal tags the one with the lesser slot goes first.
class TagHeap {
public:
    bool empty() const { return size_ == 0; }
    /// The slot with the least tag; the heap must not be empty.
    uint32_t top() const { return at(0).slot; }
    double topTag() const { return at(0).tag; }
    bool holds(const uint32_t slot) const { return slot < places_.size() && places_[slot] != 0; }

    /// Reserves memory for a slot, so that set() does not allocate.
    void reserve(const uint32_t slot)
    {
        if (slot >= places_.size()) {
            places_.resize(slot + 1);
            lines_.resize((places_.size() + Fan - 1 + Fan - 1) / Fan);
        }
    }

    /// Inserts a slot, or changes its tag.
    void set(const uint32_t slot, const double tag)
    {
        size_t n = places_[slot];
        const Entry entry{tag, slot};
        if (n == 0)
            n = ++size_;
        --n;
        if (n > 0 && Before(entry, at((n - 1) / Fan)))
            up(n, entry);
        else
            down(n, entry);
    }

    void erase(const uint32_t slot)
    {
        const Entry last = at(--size_);
        const size_t n = places_[slot] - 1;
        places_[slot] = 0;
        if (last.slot != slot) {
            places_[last.slot] = static_cast<uint32_t>(n + 1);
            set(last.slot, last.tag);
        }
    }

private:
    struct Entry {
        double tag;
        uint32_t slot;
    };
    static constexpr size_t Fan = 4;
    struct alignas(64) Line {
        Entry entries[Fan];
    };

    static bool Before(const Entry &a, const Entry &b)
    {
        return (a.tag < b.tag) | ((a.tag == b.tag) & (a.slot < b.slot));
    }

    // The root is the last entry of the first line, so that the children of each node fill one line.
    Entry &at(const size_t n) { return lines_[(n + Fan - 1) / Fan].entries[(n + Fan - 1) % Fan]; }
    const Entry &at(const size_t n) const { return const_cast<TagHeap *>(this)->at(n); }

    void put(const size_t n, const Entry &entry)
    {
        at(n) = entry;
        places_[entry.slot] = static_cast<uint32_t>(n + 1);
    }

    void up(size_t n, const Entry &entry)
    {
        while (n > 0 && Before(entry, at((n - 1) / Fan))) {
            put(n, at((n - 1) / Fan));
            n = (n - 1) / Fan;
        }
        put(n, entry);
    }

    void down(size_t n, const Entry &entry)
    {
        for (;;) {
            const size_t first = Fan * n + 1;
            if (first >= size_)
                break;
            size_t least = first;
            if (first + Fan <= size_) { // one cache line, and no unpredictable branch
                const Entry *const e = &at(first);
                const size_t a = Before(e[1], e[0]), b = 2 + size_t(Before(e[3], e[2]));
                least += Before(e[b], e[a]) ? b : a;
            } else {
                for (size_t child = first + 1; child < size_; ++child)
                    least = Before(at(child), at(least)) ? child : least;
            }
            if (!Before(at(least), entry))
                break;
            put(n, at(least));
            n = least;
        }
        put(n, entry);
    }

    std::vector<Line> lines_;
    std::vector<uint32_t> places_; ///< by slot: position in the heap, from 1; 0: not in it
    size_t size_ = 0;
};

} // namespace msfrs
