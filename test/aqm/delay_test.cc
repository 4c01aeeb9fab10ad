// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The purpose of codel and pie: a full link with a short queue.
#include "support/bottleneck.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr double LinkRate = 1.25e6; ///< bytes/s
constexpr int64_t Packet = 1000;

struct Kept {
    double wait = 0; ///< mean of the queue, ms on the link
    double busy = 0; ///< fraction of the time
};

/// Ten sources with windows, at an RTT of 50 ms, for 40 s after 10 s.
Kept Keep(const std::string &sched, const std::string &aqm)
{
    Bottleneck b(ParseVariant(sched), ParseVariant(aqm, MSFRS_AQM), LinkRate, 1000);
    auto &c = *b.engine().addClass("c", 1);
    for (int n = 0; n < 10; ++n)
        b.adaptive(b.engine().flow(c, std::to_string(n)), 50 * Ms, Packet);
    b.run(10 * Second);
    b.startMeasuring();
    Kept kept;
    constexpr int Samples = 4000;
    for (int n = 0; n < Samples; ++n) {
        b.run(b.now() + 10 * Ms);
        kept.wait += 1e3 * static_cast<double>(b.engine().totals().queued.cost) / LinkRate / Samples;
    }
    kept.busy = b.busy() / 40;
    return kept;
}

TEST(Delay, IsShortOnAFullLink)
{
    const auto tail = Keep("fifo", "droptail");
    EXPECT_GT(tail.wait, 200);
    const std::pair<std::string, std::string> with[] = {
        {"fifo", "codel queue=all"}, {"fifo", "pie queue=all"}, {"fq", "codel"}};
    for (const auto &[sched, aqm] : with) {
        const auto kept = Keep(sched, aqm + " packet=1000");
        EXPECT_LT(kept.wait, 40) << sched << " " << aqm;
        EXPECT_GT(kept.busy, 0.93) << sched << " " << aqm;
    }
}

TEST(Delay, OfAFlowThatSendsNowAndThenIsNoneBehindFqAndCodel)
{
    // 8 kbit/s beside ten that fill the link: none of its packets is lost, and none waits for more than two others.
    Bottleneck b(ParseVariant("fq"), ParseVariant("codel packet=1000", MSFRS_AQM), LinkRate, 1000);
    auto &c = *b.engine().addClass("c", 1);
    for (int n = 0; n < 10; ++n)
        b.adaptive(b.engine().flow(c, std::to_string(n)), 50 * Ms, Packet);
    auto &sparse = b.constant(b.engine().flow(c, "sparse"), 1000, 1, 100);
    double longest = 0;
    for (int n = 0; n < 30'000; ++n) {
        b.run(b.now() + Ms);
        if (const auto *const head = sparse.flow->head)
            longest = std::max(longest, static_cast<double>(b.now() - head->enqueued) / Ms);
    }
    EXPECT_EQ(sparse.lost, 0u);
    EXPECT_GT(sparse.sent, 200u);
    EXPECT_LE(longest, 2);
}

} // namespace
} // namespace msfrs::test
