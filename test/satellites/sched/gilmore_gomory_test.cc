// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The order of a loop against all possible orders.
#include "satellites/sched/gilmore_gomory.h"
#include "support/host.h"

#include <gtest/gtest.h>
#include <numeric>

namespace msfrs {
namespace {

using test::Random;

/// Idle time of the first machine in this order, with the gap after the previous job and without that after the last:
/// the sum of G in equation (6). \param before B of the previous job, 0 if there was none
int64_t IdleTime(const std::vector<Job> &jobs, const std::vector<uint32_t> &order, int64_t before)
{
    int64_t idle = 0;
    for (const auto n : order) {
        idle += std::max<int64_t>(before - jobs[n].a, 0);
        before = jobs[n].b;
    }
    return idle;
}

/// Least idle time over all orders.
int64_t LeastIdleTime(const std::vector<Job> &jobs, const int64_t before)
{
    std::vector<uint32_t> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    int64_t least = INT64_MAX;
    do
        least = std::min(least, IdleTime(jobs, order, before));
    while (std::next_permutation(order.begin(), order.end()));
    return least;
}

std::string Text(const std::vector<Job> &jobs, const int64_t before)
{
    std::string text = "before " + std::to_string(before) + ", A/B";
    for (const auto &j : jobs)
        text += " " + std::to_string(j.a) + "/" + std::to_string(j.b);
    return text;
}

void IsOptimal(GilmoreGomory &g, const std::vector<Job> &jobs, const int64_t before)
{
    std::vector<uint32_t> order, places;
    g.order(jobs, before, order);
    places = order;
    std::sort(places.begin(), places.end());
    for (uint32_t n = 0; n < places.size(); ++n)
        ASSERT_EQ(places[n], n) << "each job once; " << Text(jobs, before);
    ASSERT_EQ(places.size(), jobs.size());
    ASSERT_EQ(IdleTime(jobs, order, before), LeastIdleTime(jobs, before)) << Text(jobs, before);
}

TEST(GilmoreGomory, IsOptimalForAllSmallLoops)
{
    // Every loop of up to three jobs with times 0, 1, 2 after any job: all possible ties and zeros.
    GilmoreGomory g;
    for (uint32_t n = 1; n <= 3; ++n) {
        const auto loops = static_cast<uint32_t>(std::pow(9, n));
        for (uint32_t code = 0; code < loops; ++code) {
            std::vector<Job> jobs;
            for (uint32_t rest = code; jobs.size() < n; rest /= 9)
                jobs.push_back({rest % 3, rest / 3 % 3});
            for (int64_t before = 0; before <= 3; ++before)
                ASSERT_NO_FATAL_FAILURE(IsOptimal(g, jobs, before));
        }
    }
}

class Loops : public ::testing::TestWithParam<int64_t> {}; ///< greatest time: small ones tie

TEST_P(Loops, AreOptimalUpToEightJobs)
{
    GilmoreGomory g; // one for all: no state of a loop must remain for the next
    Random random(static_cast<uint64_t>(GetParam()));
    for (int n = 0; n < 400; ++n) {
        std::vector<Job> jobs(n % 20 == 0 ? 8 : 2 + random.below(6));
        for (auto &j : jobs)
            j = {random.between(0, GetParam()), random.between(0, GetParam())};
        if (random.chance(0.3))
            jobs.back() = jobs.front();
        ASSERT_NO_FATAL_FAILURE(IsOptimal(g, jobs, random.chance(0.3) ? 0 : random.between(0, 2 * GetParam())));
    }
}

INSTANTIATE_TEST_SUITE_P(UpTo, Loops, ::testing::Values(1, 3, 6, 100, int64_t(1) << 50));

TEST(GilmoreGomory, NoExchangeImprovesALargeLoop)
{
    GilmoreGomory g;
    Random random(4);
    std::vector<Job> jobs(300);
    for (auto &j : jobs)
        j = {random.between(0, 1000), random.between(0, 1000)};
    std::vector<uint32_t> order;
    g.order(jobs, 500, order);
    const auto least = IdleTime(jobs, order, 500);
    for (int n = 0; n < 20'000; ++n) {
        auto other = order;
        const auto from = random.below(300), to = from + random.below(300 - from);
        switch (n % 3) {
        case 0: std::swap(other[from], other[to]); break;
        case 1: std::reverse(other.begin() + from, other.begin() + to + 1); break;
        case 2: std::rotate(other.begin() + from, other.begin() + to, other.end()); break;
        }
        ASSERT_GE(IdleTime(jobs, other, 500), least);
    }
}

TEST(GilmoreGomory, AnswersForNoJobsAndForOne)
{
    GilmoreGomory g;
    std::vector<uint32_t> order{7, 7};
    g.order({}, 3, order);
    EXPECT_TRUE(order.empty());
    g.order({{0, 0}}, 3, order);
    EXPECT_EQ(order, std::vector<uint32_t>{0});
}

TEST(GilmoreGomory, DependsOnItsInputAlone)
{
    GilmoreGomory used, fresh;
    const std::vector<Job> jobs{{2, 2}, {2, 2}, {0, 2}, {2, 0}, {2, 2}};
    std::vector<uint32_t> a, b;
    used.order({{5, 1}, {1, 5}, {3, 3}}, 2, a);
    used.order(jobs, 1, a);
    fresh.order(jobs, 1, b);
    EXPECT_EQ(a, b);
}

} // namespace
} // namespace msfrs
