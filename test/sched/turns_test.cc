// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// drr, fq, sfq and msfq compared: shares of classes whatever the number of users, weights that change, bytes used
/// while others waited or while nobody did, huge and empty items.
#include "support/engine_driver.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr int64_t Packet = 1000;

/// Serves `bytes` in total, while every user of every class always has two packets queued.
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

/// Costs known afterwards, several items in service: two with equal service stay equal, however long it took.
TEST_P(Turns, LongServiceBesideABacklogIsNotHeldAgainstAnyone)
{
    Driver d(variant());
    auto &a = d.addClass("a", 1), &b = d.addClass("b", 1);
    auto &download = *d.arrive(a, "long", 1'000'000, "download");
    d.pick();
    for (int n = 0; n < 40; ++n) { // b is served as much at the same time, and always has more queued
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

INSTANTIATE_TEST_SUITE_P(Plugins, Turns, ::testing::ValuesIn(Built({"drr", "fq", "sfq", "msfq"})),
                         [](const auto &test) { return std::string(test.param); });

} // namespace
} // namespace msfrs::test
