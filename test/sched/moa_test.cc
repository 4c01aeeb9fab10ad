// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// moa's counters, call by call. The orders themselves are in test/golden.
#include "support/engine_driver.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class Moa : public ::testing::Test {
protected:
    double sc(const msfrs_class &c) { return d.engine().gauges(&c).at(0); }
    void serve(const int64_t bytes)
    {
        auto *const t = d.pick();
        d.charge(*t, bytes);
        d.done(*t);
    }

    Driver d{ParseVariant("moa")};
};

TEST_F(Moa, Equation1WithTheUserCountOfTheMoment)
{
    auto &c = d.addClass("c", 2);
    auto *const a = d.arrive(c, "a", 0);
    d.pick();
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 1000 / (2.0 * 1));
    auto *const b = d.arrive(c, "b", 0);
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 500 + 1000 / (2.0 * 2)) << "b waits: two users are active";
    d.arrive(c, "b", 0);
    d.charge(*a, 1000);
    EXPECT_DOUBLE_EQ(sc(c), 750 + 250) << "a second request of b is no third user";
    d.done(*a);
    d.pick();
    d.charge(*b, 300);
    EXPECT_DOUBLE_EQ(sc(c), 1000 + 300 / (2.0 * 1));
    EXPECT_EQ(*c.service, sc(c)) << "the counter is the host's";
}

TEST_F(Moa, AnExcessIsTheClassesServiceEvenWhenItIsIdle)
{
    auto &c = d.addClass("c", 4);
    d.engine().chargeFlow(d.engine().flow(c, "a"), 4000, 0);
    EXPECT_DOUBLE_EQ(sc(c), 1000) << "an idle class counts as one user";
}

TEST_F(Moa, AllIdleResetsAllCountersToZero)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    d.arrive(a, "u", 0);
    d.arrive(b, "u", 0);
    serve(1000);
    serve(3000);
    EXPECT_GT(sc(a), 0);
    EXPECT_GT(sc(b), 0);
    d.arrive(b, "u", 0);
    EXPECT_EQ(sc(a), 0);
    EXPECT_EQ(sc(b), 0);
}

TEST_F(Moa, AnOutstandingResponseKeepsAClassActive)
{
    auto &a = d.addClass("a", 1);
    auto &b = d.addClass("b", 1);
    auto *const t = d.arrive(a, "u", 0);
    d.pick();
    d.charge(*t, 5000);
    d.arrive(b, "u", 0);
    EXPECT_EQ(sc(b), 5000) << "the least of the active ones is a's, which has nothing queued";
    d.arrive(a, "u", 0);
    EXPECT_EQ(sc(a), 5000) << "a was not idle";
}

TEST_F(Moa, AWakingClassTakesTheLeastOfTheActive)
{
    msfrs_class *c[4];
    for (int n = 0; n < 4; ++n)
        c[n] = &d.addClass("c" + std::to_string(n), 1);
    Tracked *t[3];
    for (int n = 0; n < 3; ++n) {
        t[n] = d.arrive(*c[n], "u", 0);
        d.pick();
    }
    d.charge(*t[0], 7000);
    d.charge(*t[1], 2000);
    d.charge(*t[2], 4000);
    d.arrive(*c[3], "u", 0);
    EXPECT_EQ(sc(*c[3]), 2000);
    d.done(*t[1]); // idle now
    d.done(*t[0]);
    d.arrive(*c[0], "u", 0);
    EXPECT_EQ(sc(*c[0]), 2000) << "a class that woke with 7000 would be punished for what it had";
}

} // namespace
} // namespace msfrs
