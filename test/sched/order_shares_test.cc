// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Limits of the cost of msf's order by bytes remaining: shares over a minute, and every user's service.
#include "support/backlog.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

constexpr int64_t Endless = int64_t(1) << 40;

/// Three classes 4:2:1 on a full link of 2 Mbit/s, servers that state the sizes of their responses, and one user of the
/// last class, "large", with two endless responses: one waits while the other is served.
class OrderShares : public ::testing::TestWithParam<uint64_t> {
protected:
    explicit OrderShares(int64_t (*says)(const Transfer &) = [](const Transfer &t) { return t.size - t.received; }):
        sim(TrialConfig(false), optionsFor(says)), gold(sim, 0, 1, 4, GetParam()), silver(sim, 1, 1, 4, GetParam())
    {
        gold.start();
        silver.start();
        for (auto &one : large)
            one = sim.arrive(2, "large", Endless);
    }
    ~OrderShares() override
    {
        gold.stop();
        silver.stop();
        on = false;
        for (const auto one : large)
            sim.abort(one);
    }
    static LinkOptions optionsFor(int64_t (*says)(const Transfer &))
    {
        LinkOptions options;
        options.latency = 50 * Ms;
        options.piece = 2000;
        options.fixedWindow = 4;
        options.says = says;
        options.seed = GetParam();
        return options;
    }

    /// Users of the last class, each of whom keeps three small responses open.
    void small(const int users)
    {
        for (int u = 0; u < users; ++u) {
            for (int n = 0; n < 3; ++n)
                request("small" + std::to_string(u));
        }
    }
    void request(const std::string &user)
    {
        sim.arrive(2, user, random.between(500, 12'000), [this, user](const Transfer &) {
            if (on)
                request(user);
        });
    }
    int64_t had(const std::string &user) const { return sim.bytes(2, user); }

    LinkSim sim;
    Backlog gold, silver;
    Random random{GetParam()};
    size_t large[2] = {};
    bool on = true;
};

TEST_P(OrderShares, WhoWantsManySmallThingsGetsNoMoreThanHisShareOverAMinute)
{
    small(1);
    for (int minute = 0; minute < 4; ++minute) {
        const auto others = had("large"), his = had("small0");
        sim.run(sim.now() + 60 * Second);
        if (minute == 0) { // user_ahead, which the reserve lends once, and the rest of the lead after a minute
            EXPECT_LE(had("small0") - had("large"), 262'144 + 2'097'152 / 50);
        } else {
            EXPECT_LE(static_cast<double>(had("small0") - his) / static_cast<double>(had("large") - others), 1.03)
                << "minute " << minute;
        }
    }
}

TEST_P(OrderShares, ALargeResponseIsNeverWithoutServiceForLong)
{
    msfrs_time longest = 0, last = 0;
    int64_t before = 0;
    sim.onPiece = [&](const uint32_t cls, int64_t) {
        if (cls != 2 || had("large") == before)
            return;
        before = had("large");
        longest = std::max(longest, sim.now() - last);
        last = sim.now();
    };
    small(12);
    sim.run(300 * Second);
    EXPECT_LT(sim.now() - last, 30 * Second);
    EXPECT_LT(longest, 30 * Second);
    EXPECT_GT(longest, Second) << "the small ones go first at all";
}

INSTANTIATE_TEST_SUITE_P(Seeds, OrderShares, ::testing::Values(1, 2, 3));

/// Servers of "liar" always state one byte remaining, whatever they have sent.
class Liars : public OrderShares {
protected:
    Liars(): OrderShares([](const Transfer &t) { return t.user == "liar" ? 1 : t.size - t.received; }) {}
};

TEST_P(Liars, GainNothingOverAMinute)
{
    const size_t liar[] = {sim.arrive(2, "liar", Endless), sim.arrive(2, "liar", Endless)};
    for (int minute = 0; minute < 3; ++minute) {
        const auto others = had("large"), his = had("liar");
        sim.run(sim.now() + 60 * Second);
        EXPECT_LE(static_cast<double>(had("liar") - his) / static_cast<double>(had("large") - others), 1.03)
            << "minute " << minute;
    }
    for (const auto one : liar)
        sim.abort(one);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Liars, ::testing::Values(1, 2, 3));

} // namespace
} // namespace msfrs
