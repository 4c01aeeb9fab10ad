// SPDX-License-Identifier: GPL-2.0-or-later
#include "sched/heap.h"

#include "support/host.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>

namespace msfrs {
namespace {

using test::Random;

struct Element {
    double key = 0;
    int rank = 0;       ///< among equal keys
    uint32_t place = 0; ///< zeroed state means that it is not in the heap
};

struct Traits {
    static double Key(const Element &e) { return e.key; }
    static bool Before(const Element &a, const Element &b) { return a.rank < b.rank; }
    static uint32_t &Place(Element &e) { return e.place; }
};

using ElementHeap = Heap<Element, Traits>;

TEST(Heap, EmptyHasNoTop)
{
    ElementHeap heap;
    EXPECT_TRUE(heap.empty());
    EXPECT_EQ(heap.top(), nullptr);
    Element e;
    EXPECT_FALSE(ElementHeap::Holds(e));
    heap.settle(e, false);
    EXPECT_TRUE(heap.empty());
}

TEST(Heap, EqualKeysGoByTheTieRule)
{
    ElementHeap heap;
    Element a{1, 2}, b{1, 1}, c{1, 3};
    heap.push(a);
    heap.push(b);
    heap.push(c);
    EXPECT_EQ(heap.top(), &b);
    b.rank = 9;
    heap.update(b);
    EXPECT_EQ(heap.top(), &a);
    heap.erase(a);
    EXPECT_EQ(heap.top(), &c);
    EXPECT_FALSE(ElementHeap::Holds(a));
    EXPECT_TRUE(ElementHeap::Holds(b));
}

TEST(Heap, BehavesAsASortedListDoes)
{
    Random random(5);
    ElementHeap heap;
    std::vector<std::unique_ptr<Element>> all;
    for (int n = 0; n < 64; ++n)
        all.push_back(std::make_unique<Element>());
    std::vector<Element *> inside;
    const auto least = [](const Element *a, const Element *b) {
        return a->key != b->key ? a->key < b->key : a->rank < b->rank;
    };
    for (int step = 0; step < 50'000; ++step) {
        auto &e = *all[random.below(all.size())];
        const bool wanted = random.chance(0.7);
        if (random.chance(0.8)) {
            e.key = static_cast<double>(random.below(12));
            e.rank = static_cast<int>(random.below(1000)) * 64 + static_cast<int>(&e - all[0].get()) % 64;
        }
        heap.settle(e, wanted);
        inside.erase(std::remove(inside.begin(), inside.end(), &e), inside.end());
        if (wanted)
            inside.push_back(&e);
        ASSERT_EQ(heap.size(), inside.size());
        ASSERT_EQ(ElementHeap::Holds(e), wanted);
        if (inside.empty()) {
            ASSERT_EQ(heap.top(), nullptr);
        } else {
            const auto *const best = *std::min_element(inside.begin(), inside.end(), least);
            ASSERT_EQ(heap.top()->key, best->key);
            ASSERT_EQ(heap.top()->rank, best->rank);
        }
        for (size_t n = 0; n < heap.size(); ++n) {
            ASSERT_EQ(heap.at(n)->place, n + 1) << "an element does not know its place";
            ASSERT_EQ(heap.keyAt(n), heap.at(n)->key);
            if (n > 0) {
                ASSERT_FALSE(least(heap.at(n), heap.at((n - 1) / 2))) << "a child goes before its parent";
            }
        }
    }
}

} // namespace
} // namespace msfrs
