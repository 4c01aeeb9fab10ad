// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// diffserv: shares and delays of backlogged classes, and the values behind its order; the orders themselves are in
/// test/golden.
#include "support/engine_driver.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

namespace msfrs {
namespace {

using namespace test;

const std::pair<const char *, double> SixClasses[] = {{"be", 1}, {"af4", 2}, {"af3", 4}, {"af2", 8}, {"af1", 16},
                                                      {"ef", 32}};

class Diffserv : public ::testing::TestWithParam<int64_t> {
protected:
    Diffserv(): d(ParseVariant("diffserv quantum=" + std::to_string(GetParam())), exact())
    {
        for (const auto &[name, weight] : SixClasses)
            classes.push_back(&d.addClass(name, weight));
    }

    static Driver::Setup exact()
    {
        Driver::Setup s;
        s.cost = Engine::Cost::Exact;
        return s;
    }

    double credit(const msfrs_class &c) { return d.engine().gauges(&c).at(0); }

    Driver d;
    std::vector<msfrs_class *> classes;
};

TEST_P(Diffserv, NeighboursShareTwoToOneWhateverThePacketsAre)
{
    Random random(1);
    std::map<const msfrs_class *, int64_t> bytes;
    const auto arrive = [&](msfrs_class &c) { d.arrive(c, "", random.between(40, 1500)); };
    for (auto *const c : classes) {
        arrive(*c);
        arrive(*c);
    }
    int64_t sent = 0;
    while (sent < 20'000'000) {
        auto *const t = d.pick();
        ASSERT_TRUE(t);
        arrive(*t->cls);
        bytes[t->cls] += t->size;
        sent += t->size;
        d.finish(*t);
        // Deficit round robin: a class is never off its weighted share by more than its quantum plus a packet.
        for (const auto *const c : classes) {
            ASSERT_GE(credit(*c), 0);
            ASSERT_LT(credit(*c), c->weight * static_cast<double>(GetParam()) + 1500) << c->name;
        }
    }
    // After R replenishments a class has had R quanta less its credit, all of them 63 R less the sum of the credits.
    for (const auto *const c : classes) {
        const double fair = static_cast<double>(sent) * c->weight / 63, quantum = static_cast<double>(GetParam());
        EXPECT_LE(static_cast<double>(bytes[c]), fair + c->weight / 63 * (63 * quantum + 6 * 1500)) << c->name;
        EXPECT_GE(static_cast<double>(bytes[c]), fair - c->weight * quantum - 1500) << c->name;
    }
}

TEST_P(Diffserv, AnEmptyQueueHasNoCredit)
{
    auto &af1 = *classes[4], &be = *classes[0];
    for (int n = 0; n < 3; ++n) {
        d.arrive(be, "", 1500);
        d.finish(*d.pick());
        EXPECT_EQ(credit(be), 0) << "it has sent its last";
        EXPECT_EQ(credit(af1), 0) << "it has nothing to send";
    }
    d.arrive(af1, "", 1);
    d.arrive(be, "", 1500);
    d.finish(*d.pick());
    EXPECT_EQ(credit(af1), 0);
    EXPECT_EQ(d.pick()->cls, &be);
    d.drain();
}

TEST_P(Diffserv, FirstComeFirstServedWithinAClass)
{
    auto &c = *classes[2];
    for (int n = 0; n < 30; ++n)
        d.arrive(c, "flow" + std::to_string(n * 7 % 5), 1 + n);
    for (int n = 0; n < 30; ++n) {
        auto *const t = d.pick();
        ASSERT_EQ(t->size, 1 + n);
        d.finish(*t);
    }
}

TEST_P(Diffserv, AWeightThatChangesCountsFromTheNextQuantum)
{
    auto &ef = *classes[5], &be = *classes[0];
    for (int n = 0; n < 1000; ++n) {
        d.arrive(ef, "", 1000);
        d.arrive(be, "", 1000);
    }
    d.finish(*d.pick());
    d.engine().setWeight(be, 2); // be is heavier now: scanned first
    d.engine().setWeight(ef, 1);
    for (double left = credit(ef); left >= 1000; left -= 1000) // the rest of the quantum of 32
        d.finish(*d.pick());
    int64_t of[2] = {};
    for (int n = 0; n < 600; ++n) {
        auto *const t = d.pick();
        ++of[t->cls == &be];
        d.finish(*t);
    }
    EXPECT_NEAR(static_cast<double>(of[1]), 400, 19) << "two of three, as far as a round of 9 and 18 goes";
    d.drain();
}

INSTANTIATE_TEST_SUITE_P(Quantum, Diffserv, ::testing::Values(1, 1500, 9000),
                         [](const auto &test) { return std::to_string(test.param); });

TEST(DiffservStrict, EfGoesFirstWhateverItsWeight)
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    Driver d(ParseVariant("diffserv strict=on"), setup);
    auto &af = d.addClass("af1", 16), &ef = d.addClass("ef", 0.5);
    for (int n = 0; n < 10; ++n)
        d.arrive(af, "", 1500);
    d.finish(*d.pick());
    for (int n = 0; n < 50; ++n)
        d.arrive(ef, "", 9000);
    for (int n = 0; n < 50; ++n) {
        auto *const t = d.pick();
        ASSERT_EQ(t->cls, &ef);
        d.finish(*t);
    }
    EXPECT_EQ(d.pick()->cls, &af);
    d.drain();
}

} // namespace
} // namespace msfrs
