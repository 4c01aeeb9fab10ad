// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// pie against RFC 8033: its probability after each update, and arrivals that are exempt from drops.
#include "aqm/aqm_queue.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr int64_t Full = 1000; ///< bytes
const std::string Pie = "pie packet=1000 queue=all";

/// One departure and `arrivals` arrivals each ms. \returns signs of the arrivals
std::string Feed(AqmQueue &q, msfrs_class &c, const int ms, const int arrivals)
{
    std::string signs;
    for (int n = 0; n < ms; ++n) {
        q.clock.advance(Ms);
        if (!q.queued().empty())
            q.send();
        for (int k = 0; k < arrivals; ++k)
            signs += q.offer(c, "a", Full);
    }
    return signs;
}

/// Section 4.2, with 5.5's bound on the steps; p from 0 to 1, waits in ms.
double Updated(double p, const double wait, const double before)
{
    constexpr double Bounds[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1}, Scales[] = {2048, 512, 128, 32, 8, 2};
    double step = 0.125 * (wait - 15) / 1e3 + 1.25 * (wait - before) / 1e3;
    for (int n = 0; n < 6; ++n) {
        if (p < Bounds[n]) {
            step /= Scales[n];
            break;
        }
    }
    if (p >= 0.1)
        step = std::min(step, 0.02);
    p = std::clamp(p + step, 0.0, 1.0);
    return wait == 0 && before == 0 ? 0.98 * p : p;
}

TEST(Pie, ChangesTheProbabilityByTheWaitAtEachUpdate)
{
    AqmQueue q(Pie);
    auto &c = q.addClass("c", 1);
    Random random(5);
    double p = 0, before = 0, most = 0;
    bool decayed = false;
    q.offer(c, "a", Full); // updates are due 15, 30 ... ms from here
    const auto begin = q.clock.now();
    for (int ms = 1; ms < 60'000 && !HasFailure(); ++ms) {
        q.clock.set(begin + ms * Ms);
        const double wait = q.queued().empty() ? 0 : q.gauge("wait");
        if (!q.queued().empty())
            q.send();
        else
            q.offer(c, "a", 0);
        if (ms % 15 == 0) {
            decayed = decayed || (wait == 0 && before == 0 && p > 0);
            p = Updated(p, wait, before);
            before = wait;
            most = std::max(most, p);
        }
        ASSERT_NEAR(q.gauge("probability"), 100 * p, 1e-9) << ms;
        // Loads of 0 to 4 times the link's rate, some seconds each.
        const auto load = static_cast<double>(ms / 3000 * 7 % 5);
        for (int k = 0; k < 4; ++k) {
            if (random.chance(load / 4))
                q.offer(c, "a", Full);
        }
    }
    EXPECT_GT(most, 0.2) << "the last scales and the bound on steps were not reached";
    EXPECT_TRUE(decayed);
}

TEST(Pie, SparesABurst)
{
    AqmQueue q(Pie);
    auto &c = q.addClass("c", 1);
    const auto signs = Feed(q, c, 1000, 2);
    const auto first = signs.find('-');
    ASSERT_NE(first, std::string::npos);
    EXPECT_GT(first, 2u * 150) << "the allowance is 150 ms";
    while (!q.queued().empty())
        q.send();
    q.clock.advance(30 * Second); // the probability is 0 again
    EXPECT_EQ(Feed(q, c, 130, 2).find('-'), std::string::npos);

    AqmQueue none(Pie + " burst=0");
    EXPECT_LT(Feed(none, none.addClass("c", 1), 1000, 2).find('-'), first);
}

TEST(Pie, SparesTwoFullPacketsAndAQueueThatWaitsForHalfOfTheTarget)
{
    AqmQueue q(Pie);
    auto &c = q.addClass("c", 1);
    Feed(q, c, 3000, 3);
    EXPECT_GT(q.gauge("probability"), 20);
    while (q.queued().size() > 2)
        q.send();
    EXPECT_EQ(q.offer(c, "a", Full), '+');
    std::string signs;
    while (signs.size() < 200) {
        signs += q.offer(c, "a", Full);
        while (q.queued().size() > 3)
            q.send();
    }
    EXPECT_NE(signs.find('-'), std::string::npos) << "three are a queue";

    AqmQueue calm(Pie + " burst=0 beta=0 alpha=1");
    auto &five = calm.addClass("c", 1);
    while (calm.gauge("probability") < 16)
        Feed(calm, five, 1, 2);
    while (calm.queued().size() > 5)
        calm.send();
    const auto keep = [&](const int ms) {
        std::string all;
        for (int n = 0; n < ms; ++n) {
            all += Feed(calm, five, 1, 1);
            while (calm.queued().size() < 5)
                all += calm.offer(five, "a", Full);
        }
        return all;
    };
    keep(31); // D is the time of five packets now
    EXPECT_GT(calm.gauge("probability"), 3);
    EXPECT_EQ(keep(200).find('-'), std::string::npos);
}

TEST(Pie, SpreadsItsDrops)
{
    // With alpha and beta of 0 the probability is constant: 0.85 / p to 8.5 / p arrivals between two drops.
    AqmQueue q(Pie + " target=1 update=1000 burst=0 beta=0 alpha=0.05");
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 30; ++n)
        q.offer(c, "a", Full);
    double p = 0;
    for (int n = 0; p < 0.05; ++n) {
        ASSERT_LT(n, 3000);
        q.clock.advance(Second); // all packets have waited for at least a second
        q.offer(c, "a", 0);
        q.send();
        q.offer(c, "a", Full);
        p = q.gauge("probability") / 100;
    }
    int gap = 0, drops = 0;
    for (int n = 0; n < 20'000; ++n) {
        ++gap;
        if (q.offer(c, "a", 0) == '-') {
            if (drops++) {
                EXPECT_GE(gap, static_cast<int>(0.85 / p));
                EXPECT_LE(gap, static_cast<int>(8.5 / p) + 1);
            }
            gap = 0;
        } else {
            q.remove(*q.queued().back());
        }
    }
    EXPECT_GT(drops, 200);
}

TEST(Pie, MarksWhileTheProbabilityIsSmall)
{
    for (const std::string ecn : {"on", "off"}) {
        AqmQueue q(Pie + " ecn=" + ecn);
        auto &c = q.addClass("c", 1);
        q.itemFlags = MSFRS_ECN_CAPABLE;
        int marked = 0, dropped = 0;
        for (int n = 0; n < 4000; ++n) {
            const auto signs = Feed(q, c, 1, n % 2 ? 1 : 2);
            const bool small = q.gauge("probability") <= 10;
            marked += signs.find('*') != std::string::npos;
            dropped += signs.find('-') != std::string::npos;
            EXPECT_TRUE(small || signs.find('*') == std::string::npos) << n;
            EXPECT_TRUE(!small || ecn == "off" || signs.find('-') == std::string::npos) << n;
        }
        EXPECT_EQ(marked > 0, ecn == "on");
        EXPECT_GT(dropped, 0);
    }
}

TEST(Pie, BeginsAnewAfterAMinuteOfNothing)
{
    AqmQueue q(Pie);
    auto &c = q.addClass("c", 1);
    Feed(q, c, 3000, 3);
    EXPECT_GT(q.gauge("probability"), 1);
    q.clock.advance(61 * Second);
    q.offer(c, "a", Full);
    EXPECT_EQ(q.gauge("probability"), 0);
}

} // namespace
} // namespace msfrs::test
