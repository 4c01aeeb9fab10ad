// SPDX-License-Identifier: GPL-2.0-or-later
#include "sched/msf_state.h"

#include "support/host.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>

namespace msfrs::msf {
namespace {

struct Item : msfrs_item {
    Item(const uint64_t n, const int64_t had, const int64_t left): msfrs_item{}
    {
        seq = n;
        attained = had;
        remaining = left;
        state = &mine;
    }
    ItemState mine{};
};

/// Fresh ones first, then by bytes remaining, then by arrival.
bool Before(const std::unique_ptr<Item> &a, const std::unique_ptr<Item> &b)
{
    const bool first = a->attained == 0, second = b->attained == 0;
    if (first != second)
        return first;
    return Left(*a) != Left(*b) ? Left(*a) < Left(*b) : a->seq < b->seq;
}

TEST(ItemQueue, BehavesAsASortedListDoes)
{
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        test::Random random(seed);
        ItemQueue queue;
        std::vector<std::unique_ptr<Item>> items;
        for (uint64_t n = 1; n < 1000; ++n) {
            if (random.chance(0.55)) {
                const int64_t sizes[] = {MSFRS_UNKNOWN, MSFRS_UNKNOWN, Small, 0, 100'000};
                items.push_back(std::make_unique<Item>(n, random.chance(0.7) ? 0 : Small, sizes[random.below(5)]));
                queue.push(*items.back());
            } else if (!items.empty()) {
                const auto at = items.begin() + static_cast<std::ptrdiff_t>(random.below(items.size()));
                ASSERT_TRUE(ItemQueue::Holds(**at));
                if (random.chance(0.3))
                    (*at)->remaining = 5000; // it has become known
                queue.erase(**at);
                ASSERT_FALSE(ItemQueue::Holds(**at));
                if ((*at)->remaining == 5000)
                    queue.push(**at);
                else
                    items.erase(at);
            }
            const auto least = std::min_element(items.begin(), items.end(), Before);
            ASSERT_EQ(queue.top(), items.empty() ? nullptr : least->get()) << "seed " << seed << ", step " << n;
        }
    }
}

} // namespace
} // namespace msfrs::msf
