// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The weighted random draw, and the drop profile.
#include "satellites/aqm/red.h"
#include "satellites/aqm/weighted_set.h"

#include "support/host.h"

#include <gtest/gtest.h>
#include <map>

namespace msfrs::test {
namespace {

struct Element {
    double weight = 0;
    Place place{};
    int name = 0;
};

class WeightedSetTest : public ::testing::Test {
protected:
    WeightedSetTest()
    {
        host.ctx = this;
        host.random = [](void *ctx) {
            ++static_cast<WeightedSetTest *>(ctx)->draws;
            return static_cast<WeightedSetTest *>(ctx)->random.bits();
        };
    }

    msfrs_host host{};
    Random random{5};
    Dice dice{&host};
    uint64_t draws = 0;
    WeightedSet<Element> set;
    Element &make(const int name, const double weight)
    {
        auto &e = elements[name];
        e.name = name;
        e.weight = weight;
        return e;
    }
    std::map<int, Element> elements;
};

TEST_F(WeightedSetTest, DrawsInProportionToWeight)
{
    const double weights[] = {1, 2, 3, 0.1, 1000, 64, 5.5};
    double total = 0;
    for (int n = 0; n < 7; ++n) {
        set.add(make(n, weights[n]));
        total += weights[n];
    }
    EXPECT_DOUBLE_EQ(set.total(), total);
    std::map<int, int> drawn;
    constexpr int Draws = 2'000'000;
    for (int n = 0; n < Draws; ++n)
        ++drawn[set.draw(dice).name];
    for (int n = 0; n < 7; ++n) {
        const double wanted = Draws * weights[n] / total;
        EXPECT_NEAR(drawn[n], wanted, 5 * std::sqrt(wanted)) << "weight " << weights[n]; // 5 standard deviations
    }
    EXPECT_LT(draws, 2u * 3 * Draws) << "a group, an element, and less than one more try";
}

TEST_F(WeightedSetTest, OneDrawIsOneRandomNumberWhileWeightsAreEqual)
{
    for (const double weight : {1.0, 0.25, 3.0}) {
        WeightedSet<Element> equal;
        for (int n = 0; n < 100; ++n)
            equal.add(make(n, weight));
        draws = 0;
        for (int n = 0; n < 1000; ++n)
            equal.draw(dice);
        if (weight != 3)
            EXPECT_EQ(draws, 1000u);
        else
            EXPECT_LT(draws, 3500u) << "an element is kept with 3/4";
    }
}

TEST_F(WeightedSetTest, KeepsPlacesRightWhateverComesAndGoes)
{
    std::map<int, double> model;
    for (int step = 0; step < 20000; ++step) {
        const int name = static_cast<int>(random.below(60));
        if (model.count(name)) {
            set.remove(elements[name]);
            EXPECT_FALSE(elements[name].place.held());
            model.erase(name);
        } else {
            model[name] = std::exp2(static_cast<double>(random.between(-3, 3))) * 1.1;
            set.add(make(name, model[name]));
        }
        ASSERT_EQ(set.size(), model.size());
        double total = 0;
        for (const auto &m : model) {
            Place at = elements[m.first].place;
            --at.slot;
            ASSERT_EQ(set.next(at).name, m.first) << "it stands where its place says";
            total += m.second;
        }
        ASSERT_NEAR(set.total(), total, 1e-9);
        if (!set.empty()) {
            ASSERT_TRUE(model.count(set.draw(dice).name));
        }
    }
}

TEST_F(WeightedSetTest, ARoundVisitsEverybodyOnce)
{
    for (int n = 0; n < 50; ++n)
        set.add(make(n, n % 3 ? 1.0 : 10.0));
    Place turn{};
    std::map<int, int> seen;
    for (int n = 0; n < 100; ++n)
        ++seen[set.next(turn).name];
    EXPECT_EQ(seen.size(), 50u);
    for (const auto &s : seen)
        EXPECT_EQ(s.second, 2);
}

TEST(Profile, IsContinuousAndNeverFalls)
{
    struct Shape { double low, high, certain, maxp; };
    for (const auto &s : {Shape{25, 50, 100, 0.02}, Shape{0, 1, 2, 0}, Shape{-0.5, -0.25, 0, 0.02},
                          Shape{5, 6, 6.5, 1}}) {
        const auto p = [&](const double u) { return GentleProfile(u, s.low, s.high, s.certain, s.maxp); };
        const double span = s.certain - s.low;
        const double steepest = std::max(s.maxp / (s.high - s.low), (1 - s.maxp) / (s.certain - s.high));
        const double step = span / 4096;
        for (double u = s.low - span; u < s.certain + span; u += step) {
            ASSERT_GE(p(u + step), p(u)) << "at " << u;
            ASSERT_LE(p(u + step) - p(u), steepest * step * (1 + 1e-6) + 1e-12) << "a jump at " << u;
        }
        EXPECT_EQ(p(s.low), 0);
        EXPECT_EQ(p(s.high), s.maxp);
        EXPECT_EQ(p(s.certain), 1);
    }
}

} // namespace
} // namespace msfrs::test
