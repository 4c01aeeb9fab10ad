// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The tree of msf's lead against a linear search.
#include "sched/lead_tree.h"
#include "support/host.h"

#include <gtest/gtest.h>
#include <vector>

namespace msfrs {
namespace {

struct Element {
    LeadNode<Element> node{};
};
using Tree = LeadTree<Element, &Element::node>;

bool Before(const Element &a, const Element &b)
{
    return a.node.key != b.node.key ? a.node.key < b.node.key : a.node.tie < b.node.tie;
}

TEST(LeadTree, AnswersAsASearchThroughAllDoes)
{
    for (uint64_t seed = 1; seed <= 5; ++seed) {
        test::Random random(seed);
        std::vector<Element> all(120);
        Tree tree;
        uint64_t tie = 0;
        const auto few = [&] { return static_cast<double>(random.below(25)); }; // many are equal
        for (int step = 0; step < 5000 && !::testing::Test::HasFailure(); ++step) {
            tree.settle(all[random.below(all.size())], random.chance(0.6), few(), few(), ++tie);
            const double most = few() - 1;
            Element *first = nullptr, *best = nullptr;
            for (auto &e : all) {
                if (!e.node.held)
                    continue;
                if (!first || Before(e, *first))
                    first = &e;
                const auto better = [&] {
                    return e.node.value != best->node.value ? e.node.value < best->node.value : Before(e, *best);
                };
                if (e.node.key <= most && (!best || better()))
                    best = &e;
            }
            EXPECT_EQ(tree.first(), first);
            EXPECT_EQ(tree.best(most), best);
            EXPECT_EQ(tree.empty(), first == nullptr);
        }
    }
}

/// Depth of the tree below an element.
int Depth(const Element *const e)
{
    return e ? 1 + std::max(Depth(e->node.left), Depth(e->node.right)) : 0;
}

TEST(LeadTree, IsNotDeepWhateverTheOrderOfKeysAndValues)
{
    constexpr size_t Many = 1 << 14; // 14 levels at best, as many as there are elements at worst
    for (const bool falling : {false, true}) {
        std::vector<Element> all(Many);
        Tree tree;
        for (size_t n = 0; n < Many; ++n) {
            const auto key = static_cast<double>(falling ? Many - n : n);
            tree.settle(all[n], true, key, falling ? key : -key, n);
        }
        const Element *root = tree.first();
        int depth = 0;
        for (const auto &e : all)
            depth = std::max(depth, e.node.priority >= root->node.priority ? Depth(&e) : 0);
        EXPECT_LE(depth, 3 * 14);
    }
}

} // namespace
} // namespace msfrs
