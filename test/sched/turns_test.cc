// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// drr, fq, sfq and msfq beside each other: shares of classes whatever the number of users, weights that change, what was
/// used while others waited or while nobody did, huge and empty items; and what is sfq's own: collisions and salt.
#include "support/engine_driver.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr int64_t Packet = 1000;

Driver::Setup Exact()
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    return setup;
}

/// Serves `bytes` in all, every user of every class having two packets queued all the time.
std::map<std::string, int64_t> Serve(Driver &d, const std::vector<std::pair<msfrs_class *, int>> &users, int64_t bytes)
{
    std::map<std::string, int64_t> had;
    const auto fill = [&] {
        for (const auto &[cls, count] : users) {
            for (int n = 0; n < count; ++n) {
                const auto user = cls->name + std::to_string(n);
                while (d.engine().flow(*cls, user).backlog < 2)
                    d.arrive(*cls, user, Packet);
            }
        }
    };
    for (; bytes > 0; bytes -= Packet) {
        fill();
        auto *const t = d.pick();
        had[t->cls->name] += t->size;
        had[static_cast<const NamedFlow *>(t->item->flow)->name()] += t->size;
        d.finish(*t);
    }
    return had;
}

class Turns : public ::testing::TestWithParam<const char *> {
protected:
    Variant variant(const std::string &settings = "") const { return ParseVariant(GetParam() + (" " + settings)); }
};

TEST_P(Turns, ClassesShareByWeightWhateverTheNumberOfUsers)
{
    Driver d(variant(), Exact());
    auto &gold = d.addClass("gold", 4), &silver = d.addClass("silver", 2), &bronze = d.addClass("bronze", 1);
    auto had = Serve(d, {{&gold, 1}, {&silver, 3}, {&bronze, 8}}, 700 * Packet);
    EXPECT_NEAR(static_cast<double>(had["gold"]), 400e3, 8e3);
    EXPECT_NEAR(static_cast<double>(had["silver"]), 200e3, 8e3);
    EXPECT_NEAR(static_cast<double>(had["bronze"]), 100e3, 8e3);
}

TEST_P(Turns, OrUsersDoWithShareUser)
{
    if (GetParam() == std::string("fq"))
        return; // it has no such mode
    Driver d(variant("share=user"), Exact());
    auto &gold = d.addClass("gold", 4), &bronze = d.addClass("bronze", 1);
    auto had = Serve(d, {{&gold, 1}, {&bronze, 6}}, 500 * Packet); // 4 : 6
    EXPECT_NEAR(static_cast<double>(had["gold"]), 200e3, 8e3);
    EXPECT_NEAR(static_cast<double>(had["bronze"]), 300e3, 8e3);
}

TEST_P(Turns, AWeightThatChangesWhileBackloggedHoldsFromThenOn)
{
    Driver d(variant(), Exact());
    auto &a = d.addClass("a", 4), &b = d.addClass("b", 1);
    Serve(d, {{&a, 2}, {&b, 2}}, 200 * Packet);
    d.engine().setWeight(a, 1);
    d.engine().setWeight(b, 4);
    auto had = Serve(d, {{&a, 2}, {&b, 2}}, 200 * Packet);
    EXPECT_NEAR(static_cast<double>(had["b"]), 160e3, 8e3);
}

/// Costs told afterwards, several in service: two that had the same are equal afterwards, however long it took.
TEST_P(Turns, LongServiceBesideABacklogIsNotHeldAgainstAnyone)
{
    Driver d(variant());
    auto &a = d.addClass("a", 1), &b = d.addClass("b", 1);
    auto &download = *d.arrive(a, "long", 1'000'000, "download");
    d.pick();
    for (int n = 0; n < 40; ++n) { // b is served as much at the same time, always with more queued
        d.arrive(b, "busy", 10 * Packet);
        d.arrive(b, "busy", 10 * Packet);
        auto *const t = d.pick();
        d.charge(download, t->size);
        d.finish(*t);
    }
    d.arrive(a, "next", Packet, "next");
    int before = 0;
    for (Tracked *t; (t = d.pick())->name != "next"; d.finish(*t))
        ASSERT_LT(++before, 4) << "a pays for what b had as well";
}

TEST_P(Turns, ButWhoHadMoreWaits)
{
    Driver d(variant());
    auto &a = d.addClass("a", 1), &b = d.addClass("b", 1);
    d.arrive(a, "greedy", 100 * Packet);
    d.arrive(b, "modest", Packet);
    auto *const first = d.pick();
    ASSERT_EQ(first->cls, &a);
    d.charge(*first, first->size);
    d.done(*first);
    for (int n = 0; n < 120; ++n)
        d.arrive(b, "modest", Packet);
    d.arrive(a, "greedy", Packet, "again");
    int before = 0;
    for (Tracked *t; (t = d.pick())->name != "again"; ++before)
        d.finish(*t);
    EXPECT_NEAR(before, 100, 5);
}

TEST_P(Turns, ItemsOfAnySizeAreServedInTime)
{
    Driver d(variant(), Exact());
    auto &a = d.addClass("a", 1e-6), &b = d.addClass("b", 1e6);
    d.arrive(a, "huge", int64_t(1) << 50);
    d.arrive(b, "tiny", 1);
    for (int n = 0; n < 20; ++n)
        d.arrive(b, "empty", 0);
    d.drain(); // without walking a billion rounds
}

TEST_P(Turns, EmptyItemsDoNotStarveOthers)
{
    Driver d(variant(), Exact());
    auto &a = d.addClass("a", 1);
    d.arrive(a, "empty", 0);
    d.arrive(a, "other", 1500, "other");
    for (int picks = 0;; ++picks) {
        ASSERT_LT(picks, 5000);
        d.arrive(a, "empty", 0);
        auto *const t = d.pick();
        const bool other = t->name == "other";
        d.finish(*t);
        if (other)
            break;
    }
}

INSTANTIATE_TEST_SUITE_P(Plugins, Turns, ::testing::Values("drr", "fq", "sfq", "msfq"),
                         [](const auto &test) { return std::string(test.param); });

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

/// Which of a and b go first: with one share each they alternate, with one together they go in order of arrival.
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
            d.clock.advance(random.chance(0.1) ? 10'000 * Second : Second); // and else it stands still
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

} // namespace
} // namespace msfrs::test
