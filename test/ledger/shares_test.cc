// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Max-min shares: examples, and properties for any demands.
#include "ledger/shares.h"
#include "support/host.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace msfrs::ledger {
namespace {

constexpr double Anything = std::numeric_limits<double>::infinity();

TEST(Shares, GoByDemandWhereEverybodyCanUseThem)
{
    EXPECT_EQ(Shares({{4, Anything}, {2, Anything}, {1, Anything}}, 7), (std::vector<double>{4, 2, 1}));
    EXPECT_EQ(Shares({}, 7), std::vector<double>());
}

TEST(Shares, WhatSomebodyCannotUseGoesToTheOthers)
{
    EXPECT_EQ(Shares({{4, 1}, {2, Anything}, {1, Anything}}, 7), (std::vector<double>{1, 4, 2}));
    EXPECT_EQ(Shares({{1, 0}, {1, 2}, {1, 100}}, 10), (std::vector<double>{0, 2, 8}));
}

TEST(Shares, WhoHasNoDemandGetsWhatOthersLeave)
{
    EXPECT_EQ(Shares({{0, Anything}, {1, 3}, {0, 1}}, 10), (std::vector<double>{6, 3, 1}));
    EXPECT_EQ(Shares({{0, Anything}, {1, Anything}}, 10), (std::vector<double>{0, 10}));
}

/// Demands of every kind.
std::vector<Want> Draw(test::Random &random)
{
    std::vector<Want> wants(random.below(12));
    for (auto &w : wants) {
        w.demand = random.chance(0.2) ? 0 : std::pow(10, static_cast<double>(random.between(-6, 6)));
        w.most = random.chance(0.3) ? Anything : static_cast<double>(random.below(100));
    }
    return wants;
}

TEST(Shares, HoldForAnyWants)
{
    test::Random random(1);
    for (int n = 0; n < 20000; ++n) {
        const auto wants = Draw(random);
        const auto capacity = static_cast<double>(random.below(200));
        const auto shares = Shares(wants, capacity);
        ASSERT_EQ(shares.size(), wants.size());
        const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
        double most = 0;
        for (const auto &w : wants)
            most += w.most;
        ASSERT_NEAR(sum, std::min(capacity, most), 1e-6) << "all is given, and no more";
        for (size_t a = 0; a < wants.size(); ++a) {
            ASSERT_GE(shares[a], 0);
            ASSERT_LE(shares[a], wants[a].most);
            if (capacity > 0 && wants[a].demand > 0 && wants[a].most > 0) {
                ASSERT_GT(shares[a], 0) << "nobody starves";
            }
            for (size_t b = 0; b < wants.size(); ++b) {
                // A party that could use more has no less for its demand than any other.
                if (shares[a] >= wants[a].most - 1e-6 || wants[a].demand == 0)
                    continue;
                if (wants[b].demand > 0) {
                    ASSERT_GE(shares[a] / wants[a].demand * (1 + 1e-6) + 1e-6, shares[b] / wants[b].demand);
                } else {
                    ASSERT_LT(shares[b], 1e-6) << "without a demand, before one with a demand";
                }
            }
        }
    }
}

TEST(Shares, DoNotDependOnTheOrderOfTheWants)
{
    test::Random random(2);
    for (int n = 0; n < 2000; ++n) {
        const auto wants = Draw(random);
        std::vector<size_t> order(wants.size());
        std::iota(order.begin(), order.end(), size_t(0));
        for (size_t k = order.size(); k > 1; --k)
            std::swap(order[k - 1], order[random.below(k)]);
        std::vector<Want> other;
        for (const auto k : order)
            other.push_back(wants[k]);
        const auto shares = Shares(wants, 50), permuted = Shares(other, 50);
        for (size_t k = 0; k < order.size(); ++k)
            ASSERT_NEAR(permuted[k], shares[order[k]], 1e-6);
    }
}

} // namespace
} // namespace msfrs::ledger
