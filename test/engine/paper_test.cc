// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Section 4.1 of the paper: its worked example and equations (4) to (6), with msfrs_quantum none, reserve 0,
/// users=fifo and wake=paper, on an equally shared link.
#include "support/backlog.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

struct Times {
    double queued = 0, served = 0; ///< T_q, T_s, means in seconds
    double active() const { return queued + served; }
};

/// m requests for L bytes arrive at once at a gateway that allows W+ outstanding responses.
Times Batch(const uint32_t m, const uint32_t wplus, const int64_t bytes, const double rate, const bool oneClass)
{
    auto config = TrialConfig(true);
    config.rate = rate;
    LinkOptions options;
    options.fixedWindow = wplus;
    options.piece = bytes;
    LinkSim sim(config, options);
    for (uint32_t n = 0; n < m; ++n)
        sim.arrive(oneClass ? 0 : n % 3, "u" + std::to_string(n % 5), bytes);
    sim.runOut();
    Times t;
    for (const auto &transfer : sim.transfers()) {
        t.queued += static_cast<double>(transfer.granted - transfer.arrived) * 1e-9 / m;
        t.served += static_cast<double>(transfer.ended - transfer.granted) * 1e-9 / m;
    }
    return t;
}

/// An ordinary gateway forwards everything at once: no window is ever full.
Times OrdinaryBatch(const uint32_t m, const int64_t bytes, const double rate) { return Batch(m, m, bytes, rate, true); }

TEST(Paper, WorkedExampleOfSection41)
{
    // Four concurrent responses take one second.
    constexpr int64_t Bytes = 25'000;
    constexpr double Rate = 4 * Bytes * 8;
    const auto ordinary = OrdinaryBatch(12, Bytes, Rate);
    EXPECT_NEAR(ordinary.queued, 0, 1e-6);
    EXPECT_NEAR(ordinary.served, 3, 1e-6);
    for (bool oneClass : {true, false}) {
        const auto msf = Batch(12, 4, Bytes, Rate, oneClass);
        EXPECT_NEAR(msf.queued, 1, 1e-6);
        EXPECT_NEAR(msf.served, 1, 1e-6);
        EXPECT_NEAR(msf.active(), 2, 1e-6) << "2 s against 3 s";
    }
}

TEST(Paper, WorkedExampleThreeRounds)
{
    auto config = TrialConfig(true);
    config.rate = 800'000;
    LinkOptions options;
    options.fixedWindow = 4;
    LinkSim sim(config, options);
    for (int n = 0; n < 12; ++n)
        sim.arrive(0, "u", 25'000);
    const auto start = sim.now();
    sim.runOut();
    for (size_t n = 0; n < 12; ++n) {
        const auto &t = sim.transfers()[n];
        EXPECT_NEAR(static_cast<double>(t.granted - start) * 1e-9, static_cast<double>(n / 4), 1e-5) << n;
        EXPECT_NEAR(static_cast<double>(t.ended - start) * 1e-9, static_cast<double>(n / 4 + 1), 1e-5) << n;
        EXPECT_EQ(t.grants, 1u) << "without quanta there is one grant";
    }
}

double Equation4(const double m, const double bytes, const double rate) { return m * bytes * 8 / rate; }

double Equation5(const uint32_t m, const uint32_t wplus, const double bytes, const double rate)
{
    const uint32_t rounds = m / wplus, rest = m % wplus;
    double sum = 0;
    for (uint32_t n = 0; n < rounds; ++n)
        sum += n;
    return (wplus * sum + rest * static_cast<double>(rounds)) / m * wplus * bytes * 8 / rate;
}

double Equation6(const uint32_t m, const uint32_t wplus, const double bytes, const double rate)
{
    const uint32_t rest = m % wplus;
    return (static_cast<double>(m - rest) * wplus + static_cast<double>(rest) * rest) / m * bytes * 8 / rate;
}

TEST(Paper, Equations4To6OverAGridOfMAndW)
{
    constexpr int64_t Bytes = 10'000;
    constexpr double Rate = 2e6;
    for (uint32_t m : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 12u, 16u, 23u, 40u}) {
        const auto ordinary = OrdinaryBatch(m, Bytes, Rate);
        ASSERT_NEAR(ordinary.active(), Equation4(m, Bytes, Rate), 1e-6) << "m = " << m;
        for (uint32_t wplus : {1u, 2u, 3u, 4u, 6u, 8u, 20u, 50u}) {
            const auto t = Batch(m, wplus, Bytes, Rate, m % 2 == 0);
            const double worst = Equation6(m, wplus, Bytes, Rate);
            ASSERT_NEAR(t.queued, Equation5(m, wplus, Bytes, Rate), 1e-6) << "m = " << m << ", W+ = " << wplus;
            ASSERT_NEAR(t.served, worst, 1e-6) << "m = " << m << ", W+ = " << wplus;
            ASSERT_LE(t.active(), ordinary.active() + 1e-6) << "figure 5: never worse";
            if (m == 2 * wplus) {
                ASSERT_NEAR(t.active() / ordinary.active(), 0.75, 1e-6) << "section 4.1: 25 % less when m is 2 W+";
            }
        }
    }
}

} // namespace
} // namespace msfrs
