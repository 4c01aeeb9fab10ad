// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/sched/tag_heap.h"

#include "support/host.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace msfrs {
namespace {

TEST(TagHeap, EqualTagsGoBySlot)
{
    TagHeap heap;
    heap.reserve(2);
    heap.set(2, 1.0);
    heap.set(0, 1.0);
    heap.set(1, 1.0);
    EXPECT_EQ(heap.top(), 0u);
    heap.set(0, 2.0);
    EXPECT_EQ(heap.top(), 1u);
    heap.erase(1);
    EXPECT_EQ(heap.top(), 2u);
    EXPECT_FALSE(heap.holds(1));
    EXPECT_TRUE(heap.holds(0));
}

TEST(TagHeap, BehavesAsASortedSetDoes)
{
    test::Random random(3);
    TagHeap heap;
    std::map<uint32_t, double> tags;
    std::set<std::pair<double, uint32_t>> sorted;
    for (uint32_t slot = 0; slot < 200; ++slot)
        heap.reserve(slot);
    for (int step = 0; step < 20'000; ++step) {
        const auto slot = static_cast<uint32_t>(random.below(200));
        const auto found = tags.find(slot);
        ASSERT_EQ(heap.holds(slot), found != tags.end());
        if (found != tags.end())
            sorted.erase({found->second, slot});
        if (found != tags.end() && random.chance(0.4)) {
            heap.erase(slot);
            tags.erase(slot);
        } else {
            tags[slot] = static_cast<double>(random.below(50)); // many are equal
            heap.set(slot, tags[slot]);
            sorted.insert({tags[slot], slot});
        }
        ASSERT_EQ(heap.empty(), sorted.empty());
        if (!sorted.empty()) {
            ASSERT_EQ(heap.topTag(), sorted.begin()->first);
            ASSERT_EQ(heap.top(), sorted.begin()->second);
        }
    }
}

} // namespace
} // namespace msfrs
