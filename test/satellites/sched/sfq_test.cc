// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Features of sfq alone: collisions, and a salt that changes. Also that the build has every plugin of the papers;
/// without them the tests of the core are skipped.
#include "support/engine_driver.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr int64_t Packet = 1000;

TEST(Sfq, FlowsThatCollideShareOneShareInOrderOfArrival)
{
    Driver d(ParseVariant("sfq quantum=1000"), Exact());
    auto &c = d.addClass("c", 1);
    for (const auto *const user : {"a", "b"})
        d.engine().flow(c, user).key = 7;
    std::map<std::string, int64_t> had;
    for (int n = 0; n < 30; ++n) {
        for (const auto *const user : {"a", "b", "c"})
            d.arrive(c, user, Packet);
    }
    for (int n = 0; n < 30; ++n) {
        auto *const t = d.pick();
        had[static_cast<const NamedFlow *>(t->item->flow)->name()] += t->size;
        d.finish(*t);
    }
    EXPECT_NEAR(static_cast<double>(had["c"]), 15e3, 1e3);
    EXPECT_NEAR(static_cast<double>(had["a"]), 7.5e3, 1e3);
    EXPECT_NEAR(static_cast<double>(had["b"]), 7.5e3, 1e3);
}

/// Whether a and b have separate queues: then they alternate; with a common queue they go in order of arrival.
bool Apart(Driver &d, msfrs_class &c)
{
    for (const auto *const name : {"a1", "a2", "a3", "b1", "b2", "b3"})
        d.arrive(c, std::string(name, 1), Packet, name);
    std::vector<std::string> order;
    while (!d.queued().empty()) {
        auto *const t = d.pick();
        order.push_back(t->name);
        d.finish(*t);
    }
    const std::vector<std::string> arrival{"a1", "a2", "a3", "b1", "b2", "b3"};
    for (const char flow : {'a', 'b'}) {
        std::string ranks;
        for (const auto &name : order)
            ranks += name[0] == flow ? name.substr(1) : "";
        EXPECT_EQ(ranks, "123") << "a flow's order";
    }
    return order != arrival;
}

TEST(Sfq, NewSaltSeparatesThoseThatCollided)
{
    Driver d(ParseVariant("sfq quantum=1000 divisor=2 perturb=10"), Exact());
    auto &c = d.addClass("c", 1);
    int apart = 0;
    for (int n = 0; n < 64; ++n) {
        const bool now = Apart(d, c);
        apart += now;
        d.clock.advance(9 * Second);
        EXPECT_EQ(Apart(d, c), now) << "not before its time";
        d.clock.advance(2 * Second);
    }
    EXPECT_GT(apart, 16);
    EXPECT_LT(apart, 48);
}

TEST(Sfq, WhatIsQueuedIsSortedAnewAndNothingIsLost)
{
    Driver d(ParseVariant("sfq divisor=4 perturb=1"), Exact());
    auto &c = d.addClass("c", 1), &other = d.addClass("other", 2);
    Random random(2);
    std::map<std::string, uint64_t> latest;
    for (int n = 0; n < 1500; ++n) {
        if (random.chance(0.55))
            d.arrive(random.chance(0.5) ? c : other, std::to_string(random.below(12)), random.between(0, 1500));
        else if (auto *const t = d.pick())
            d.finish(*t); // Driver checks the order within flows
        if (random.chance(0.05))
            d.clock.advance(random.chance(0.1) ? 10'000 * Second : Second); // otherwise the clock stands still
    }
    d.drain();
}

TEST(Sfq, WithoutPerturbationTheSaltStays)
{
    Driver d(ParseVariant("sfq quantum=1000 divisor=2 perturb=0"), Exact());
    auto &c = d.addClass("c", 1);
    const bool apart = Apart(d, c);
    for (int n = 0; n < 32; ++n) {
        d.clock.advance(100'000 * Second);
        EXPECT_EQ(Apart(d, c), apart);
    }
}

TEST(Satellites, HaveEveryPluginOfThePapers)
{
    for (const char *const name : {"msfq", "sfq", "drfq", "atfq", "diffserv", "red", "choke", "fred", "sfed", "faba"})
        EXPECT_TRUE(IsBuilt(name)) << name;
}

} // namespace
} // namespace msfrs::test
