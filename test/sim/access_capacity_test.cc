// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Links whose rate follows a trace, and the real scheduler that estimates it with TCP.
#include "sim/access/run.h"
#include "support/means.h"
#include "support/plugins.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace msfrs {
namespace {

using namespace sim;
using namespace sim::access;

std::vector<double> RatesOf(const RateTrace &trace)
{
    std::vector<double> rates;
    for (const auto &step : trace)
        rates.push_back(step.rate);
    std::sort(rates.begin(), rates.end());
    return rates;
}

TEST(AccessTrace, IsTheSameForTheSameSeedAndHoldsTogether)
{
    for (const char *const name : {"steps", "wave", "lte", "leo"}) {
        const auto trace = MakeTrace(name, 5e6, 600, 1), again = MakeTrace(name, 5e6, 600, 1);
        ASSERT_EQ(trace.size(), again.size()) << name;
        EXPECT_EQ(trace.front().at, 0) << name;
        for (size_t n = 1; n < trace.size(); ++n) {
            EXPECT_EQ(trace[n].rate, again[n].rate) << name;
            EXPECT_GT(trace[n].at, trace[n - 1].at) << name;
        }
    }
    EXPECT_NE(MakeTrace("lte", 5e6, 60, 1).back().rate, MakeTrace("lte", 5e6, 60, 2).back().rate);
}

TEST(AccessTrace, LteIsAsSpreadAsTheDriveThatItImitates)
{
    const auto trace = MakeTrace("lte", 5e6, 20'000, 1);
    EXPECT_NEAR(MeanRate(trace, 0, 20'000), 5e6, 0.5e6);
    const auto rates = RatesOf(trace);
    EXPECT_NEAR(rates[rates.size() / 10] / 5e6, 0.15, 0.03);
    EXPECT_EQ(rates.back(), 20e6);
}

TEST(AccessTrace, LeoAllotsAnewEveryFifteenSecondsWithOutagesBetween)
{
    const auto trace = MakeTrace("leo", 5e6, 3000, 1);
    size_t outages = 0;
    for (const auto &step : trace) {
        if (step.rate > 0)
            continue;
        ++outages;
        EXPECT_EQ(step.at % (15 * Second), 0);
    }
    EXPECT_NEAR(static_cast<double>(outages), 100, 25);
    EXPECT_NEAR(MeanRate(trace, 0, 3000), 5e6, 0.6e6);
}

TEST(AccessTrace, AFileOfMahimahisIsRepeatedAndAWrongOneRefused)
{
    const auto path = testing::TempDir() + "trace-of-" + std::to_string(getpid());
    const auto write = [&](const char *const text) { std::ofstream(path) << text; };
    write("0\n10\n49\n60\n");
    const auto trace = MakeTrace(path, 1, 0.2, 1);
    ASSERT_EQ(trace.size(), 4u);
    EXPECT_DOUBLE_EQ(trace[0].rate, 3 * 1504 * 8 / 0.05);
    EXPECT_DOUBLE_EQ(trace[1].rate, 1 * 1504 * 8 / 0.05);
    EXPECT_DOUBLE_EQ(trace[2].rate, trace[0].rate);
    const auto refusal = [&](const char *const text) {
        write(text);
        try {
            MakeTrace(path, 1, 1, 1);
        } catch (const ConfigError &e) {
            return std::string(e.what()).substr(path.size());
        }
        return std::string("taken");
    };
    EXPECT_EQ(refusal("5\n3\n"), ":2 is not allowed: expected times in ms, none less than the one before");
    EXPECT_EQ(refusal("5\nsix\n"), ":2: expected a number of ms");
    EXPECT_EQ(refusal(""), " is not a trace: expected steps, wave, lte, leo or a file in Mahimahi's format");
    std::remove(path.c_str());
}

TEST(AccessTrace, ALinkTakesItsNewRateAtOnceAndMayStandStill)
{
    Clock clock;
    Link link(clock, FullFrame * 8 * 1000, 100 * FullFrame); // a frame a millisecond
    int arrived = 0;
    for (int n = 0; n < 50; ++n)
        link.send(FullFrame, [&] { ++arrived; });
    clock.run(10 * Ms + 10);
    EXPECT_EQ(arrived, 12);
    link.setRate(0);
    clock.run(100 * Ms);
    EXPECT_EQ(arrived, 12);
    link.measureQueue();
    link.setRate(FullFrame * 8 * 100);
    clock.run(200 * Ms + 10);
    EXPECT_NEAR(arrived, 22, 1);
    EXPECT_GT(link.meanQueue(), 0.1) << "it has waited since the beginning";
}

RunParams Found(const std::string &trace, const double rate)
{
    RunParams params;
    params.config.pluginDir = test::PluginDir();
    params.trace = trace;
    params.rate = rate;
    params.buffer = 6.5; // a second
    params.seconds = 120;
    params.warmup = 20;
    params.config.bounds = {0.5e6, 100e6};
    return params;
}

TEST(AccessCapacity, OnALinkThatStaysFindingCostsNothingAndDoesNotSwing)
{
    size_t off = 0, all = 0;
    for (const auto &[rate, kernelTakesLeast] : {std::pair(2e6, false), {2e6, true}, {10e6, false}, {10e6, true}}) {
        auto params = Found("", rate);
        params.kernelTakesLeast = kernelTakesLeast;
        params.buffer = 1.5;
        const int seeds = rate > 6e6 ? 8 : 24; // with a third of the users
        if (rate > 6e6)
            params.workload.users = {12, 12, 12};
        auto told = params;
        told.config.bounds = {};
        // Means over the seeds. Where C is found against where it is configured: difference of the utilisation and of
        // the ratio of gold's bytes to bronze's, ratio of the mean latencies; and C over the link's rate.
        double utilisation = 0, share = 0, mean = 0, rates = 0;
        for (params.seed = 1; params.seed <= static_cast<uint64_t>(seeds); ++params.seed) {
            told.seed = params.seed;
            const auto found = Simulate(params), known = Simulate(told);
            utilisation += (found.utilisation - known.utilisation) / seeds;
            mean += found.all.mean / known.all.mean / seeds;
            rates += found.found / seeds;
            share += (found.perUser[0] / found.perUser[2] - known.perUser[0] / known.perUser[2]) / seeds;
            EXPECT_GT(found.rates[9].believed, 0.95 * rate) << "within ten seconds";
            for (size_t second = 20; second < found.rates.size(); ++second, ++all)
                off += std::abs(found.rates[second].believed / rate - 1) > 0.05;
        }
        EXPECT_GT(utilisation, -0.01) << rate;
        EXPECT_LT(mean, 1.1) << rate;
        EXPECT_NEAR(rates, 1, 0.03) << rate;
        EXPECT_NEAR(share, 0, 0.05) << rate;
    }
    EXPECT_LT(off, all / 100) << "0.3 % of the seconds, in one seed of three";
}

TEST(AccessCapacity, ServersWhoseOwnPathJumpsDoNotDecideForOthers)
{
    for (const bool takesLeast : {false, true}) {
        auto params = Found("", 5e6);
        params.kernelTakesLeast = takesLeast;
        params.workload.users = {8, 8, 8};
        params.workload.ownServers = true;
        params.paths.clear();
        for (int n = 0; n < 24; ++n)
            params.paths.push_back(12 * Ms + 284 * Ms * n / 23);
        LetJump(params.paths, 15, 290 * Ms, 2 * Second);
        double utilisation = 0, known = 0;
        size_t low = 0, all = 0;
        for (params.seed = 1; params.seed <= 6; ++params.seed) {
            auto told = params;
            told.config.bounds = {};
            known += Simulate(told).utilisation / 6;
            const auto result = Simulate(params);
            utilisation += result.utilisation / 6;
            for (size_t second = 20; second < result.rates.size(); ++second, ++all)
                low += result.rates[second].believed < 0.8 * params.rate;
        }
        EXPECT_GT(utilisation, 0.85 * known) << takesLeast; // the lowest tenth of all samples: 0.66, 0.84
        EXPECT_LT(static_cast<double>(low) / static_cast<double>(all), 0.34) << takesLeast;
    }
}

TEST(AccessCapacity, StepsByFourAreFollowed)
{
    auto params = Found("steps", 8e6);
    params.config.arbiter = {"msf", {{"favour", "0"}}};
    constexpr int Seeds = 10;
    int late = 0;
    for (const bool kernelTakesLeast : {false, true}) {
        params.kernelTakesLeast = kernelTakesLeast;
        double queue = 0; // single seeds vary from 0.2 to 0.7 s
        for (params.seed = 1; params.seed <= Seeds; ++params.seed) {
            const auto result = Simulate(params);
            queue += result.queueP95 / Seeds;
            EXPECT_GT(result.utilisation, 0.95);
            EXPECT_NEAR(result.found, 1, 0.1);
            for (size_t second = 25; second < result.rates.size(); ++second) {
                if (second % 20 > 4) // three seconds, plus the delay of a mean over the previous second
                    late += std::abs(result.rates[second].believed / result.rates[second].carries - 1) > 0.15;
            }
            EXPECT_NEAR(result.perUser[0] / result.perUser[2], 4, 0.3);
        }
        EXPECT_LT(queue, 0.6) << "by number it is 0.4, but three users are served as below";
    }
    EXPECT_LE(late, 4) << "seconds; 28 in 320 runs";
}

/// With releases by number C is 2.8 to 3.8 times too high there, the queue 1.4 to 2.8 s, and shares are 2:1.6:1.
TEST(AccessCapacity, IsFoundWithFewUsersToo)
{
    auto params = Found("lte", 5e6);
    params.seconds = 240;
    params.warmup = 60;
    params.workload.users = {1, 1, 1};
    params.workload.inFlight = 2;
    params.workload.fixedSize = 100'000'000;
    const auto means = test::MeansOf(params, 4);
    EXPECT_LT(means.queueP95, 0.75);
    EXPECT_NEAR(means.gold, 4, 0.3);
    EXPECT_GT(means.utilisation, 0.8);
}

TEST(AccessCapacity, AVariableRateIsUsedBetterAndWithLessOfAQueueThanByItsMean)
{
    for (const char *const trace : {"wave", "lte", "leo"}) {
        auto params = Found(trace, 5e6);
        const auto found = test::MeansOf(params, 12);
        params.config.bounds = {};
        const auto mean = test::MeansOf(params, 12);
        // 12 users with four downloads each do not fill the peaks of lte, so weights have no effect then.
        EXPECT_NEAR(found.gold, 4, trace == std::string("lte") ? 1.3 : 0.3) << trace;
        // A queue makes up for the mean of "wave", which hardly changes.
        EXPECT_GT(found.utilisation, mean.utilisation + (trace == std::string("wave") ? -0.02 : 0.04)) << trace;
        EXPECT_LT(found.queueMean, 0.7 * mean.queueMean) << trace;
        EXPECT_GT(found.utilisation, trace == std::string("lte") ? 0.7 : 0.9) << trace;
    }
}

TEST(AccessCapacity, AtAVariableRateTheQueueIsShortAndTheWeightsHold)
{
    for (const bool kernelTakesLeast : {false, true}) {
        auto params = Found("lte", 5e6);
        params.kernelTakesLeast = kernelTakesLeast;
        params.seconds = 240;
        params.warmup = 60; // the estimate must have settled
        const auto means = test::MeansOf(params, 24);
        EXPECT_LT(means.queueP95, 0.8) << kernelTakesLeast;
        EXPECT_NEAR(means.gold, 4, 0.2) << kernelTakesLeast;
        EXPECT_GT(means.utilisation, 0.91) << kernelTakesLeast;
    }
}

} // namespace
} // namespace msfrs
