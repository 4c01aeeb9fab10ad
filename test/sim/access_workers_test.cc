// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Several workers of a gateway, with one ledger, on the simulated access link: they behave like a single worker.
#include "sim/access/run.h"
#include "support/means.h"
#include "support/plugins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace msfrs {
namespace {

using namespace sim;
using namespace sim::access;

class AccessWorkers : public ::testing::TestWithParam<uint32_t> {
protected:
    AccessWorkers()
    {
        params.config.pluginDir = test::PluginDir();
        params.workers = GetParam();
        params.seconds = 260;
    }
    static void expectWeights(const std::vector<double> &had, const double most)
    {
        EXPECT_NEAR(had[0] / had[2], 4, 4 * most);
        EXPECT_NEAR(had[1] / had[2], 2, 2 * most);
    }
    /// Sums over several seeds: with several workers, users' bytes vary by up to 5 % in a single seed.
    std::vector<double> together(const std::function<std::vector<double>(const RunResult &)> &what,
                                 const uint64_t seeds = 4)
    {
        std::vector<double> sum;
        for (params.seed = 1; params.seed <= seeds; ++params.seed) {
            const auto had = what(Simulate(params));
            sum.resize(had.size());
            std::transform(had.begin(), had.end(), sum.begin(), sum.begin(), std::plus<>());
        }
        params.seed = 1;
        return sum;
    }
    RunResult alone() const
    {
        auto one = params;
        one.workers = 1;
        return Simulate(one);
    }

    RunParams params;
};

INSTANTIATE_TEST_SUITE_P(Workers, AccessWorkers, ::testing::Values(2, 4));

TEST_P(AccessWorkers, KeepTheWeightsAndTheLinkFull)
{
    const auto result = Simulate(params), one = alone();
    expectWeights(together([](const RunResult &r) { return r.perUser; }, 16), 0.02);
    for (size_t cls = 0; cls < result.userError.size(); ++cls)
        EXPECT_LT(result.userError[cls], one.userError[cls] + 0.12) << cls;
    EXPECT_NEAR(result.utilisation, one.utilisation, 0.01);
    EXPECT_LT(result.queueMean, 1.3 * one.queueMean + 0.01);
    EXPECT_EQ(result.log, "");
}

/// If each compared alone, the queue would be that of the others' windows: 0.6 s with four workers.
TEST_P(AccessWorkers, FindTogetherThatAConstantStreamDoesNotYield)
{
    params.buffer = 10;
    params.seconds = 600;
    params.warmup = 100;
    params.others.constant = 0.6;
    params.others.from = 100 * Second;
    EXPECT_LT(test::MeansOf(params, 6).queueMean, 0.22);
}

TEST_P(AccessWorkers, KeepTheWeightsWhereAllRequestsAreSmall)
{
    params.workload.fixedSize = 20'000; // of a class's few requests none waits at some workers
    expectWeights(together([](const RunResult &r) { return r.perUser; }, 8), 0.05);
}

TEST_P(AccessWorkers, KeepTheWeightsWhereAClassComesToOneOfThem)
{
    params.split = RunParams::Split::Class;
    const auto result = Simulate(params);
    expectWeights(result.perUser, 0.03);
    EXPECT_GT(result.utilisation, 0.97);
}

TEST_P(AccessWorkers, KeepTheWeightsWhereEachUserComesToOneOfThem)
{
    params.split = RunParams::Split::User;
    params.workload.users = {3, 5, 7};
    const auto result = Simulate(params);
    expectWeights(result.perUser, 0.03);
    EXPECT_GT(result.utilisation, 0.96);
}

TEST_P(AccessWorkers, FindARateThatChangesAsOneDoes)
{
    params.trace = "steps";
    params.rate = 8e6;
    params.buffer = 6.5; // a second
    params.seconds = 120;
    params.warmup = 20;
    params.config.bounds = {0.5e6, 100e6};
    for (const auto split : {RunParams::Split::Random, RunParams::Split::User}) {
        params.split = split;
        constexpr int Seeds = 4;
        double less = 0; // U of a single seed varies by a percent
        for (params.seed = 1; params.seed <= Seeds; ++params.seed) {
            const auto result = Simulate(params), one = alone();
            less += (one.utilisation - result.utilisation) / Seeds;
            EXPECT_LT(result.queueMean, 1.6 * one.queueMean); // each worker sees fewer RTT samples
            EXPECT_NEAR(result.found, 1, 0.1);
            expectWeights(result.perUser, 0.1);
            EXPECT_EQ(result.log, "");
        }
        EXPECT_LT(less, 0.02);
    }
}

TEST_P(AccessWorkers, AreAsSoonWithSmallObjects)
{
    params.workload.load = 0.9;
    for (const auto kind : {WorkloadParams::Kind::Backlogged, WorkloadParams::Kind::Open}) {
        SCOPED_TRACE(kind == WorkloadParams::Kind::Open ? "open" : "backlogged");
        params.workload.kind = kind;
        const auto times = [](const RunResult &r) { return std::vector<double>{r.smallMean, r.all.mean}; };
        params.workers = GetParam();
        const auto several = together(times, 16);
        params.workers = 1;
        const auto one = together(times, 16);
        // If a user has requests at several workers, each learns of its bytes with a delay. By number it is 1.06.
        EXPECT_LT(several[0], (kind == WorkloadParams::Kind::Open ? 1.1 : 1.3) * one[0]);
        EXPECT_LT(several[1], (kind == WorkloadParams::Kind::Open ? 1.1 : 1.3) * one[1]);
    }
}

TEST_P(AccessWorkers, GiveClassesThatComeBackTheirShare)
{
    params.seconds = 400;
    params.workload.parts = 4;
    params.workload.active = {0b1001, 0b1011, 0b1111};
    // The parts of a run, one after the other.
    const auto had = together([](const RunResult &r) {
        std::vector<double> all;
        for (const auto &part : r.parts)
            all.insert(all.end(), part.begin(), part.end());
        return all;
    });
    ASSERT_EQ(had.size(), 12u);
    for (const size_t part : {0, 3})
        expectWeights({had.begin() + 3 * part, had.begin() + 3 * part + 3}, 0.1);
    EXPECT_NEAR(had[4] / had[5], 2, 0.2);
}

} // namespace
} // namespace msfrs
