// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Servers that are silent, slow or steady must not take the link from the users of others.
#include "sim/access/run.h"
#include "support/plugins.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace sim;
using namespace sim::access;

constexpr uint64_t Seeds = 4;

/// Six users with two downloads each at 5 Mbit/s.
RunParams Downloads(const uint64_t seed)
{
    RunParams params;
    params.config.pluginDir = test::PluginDir();
    params.rate = 5e6;
    params.workload.users = {2, 2, 2};
    params.workload.inFlight = 2;
    params.workload.fixedSize = 10'000'000;
    params.warmup = 5;
    params.seconds = 25;
    params.seed = seed;
    return params;
}

/// Downloads keep the link full beside these requests, and the queue short.
/// \param before use of the link when each held its booking
void ExpectAFullLink(double BesideParams::*requests, const double rate, const char *before)
{
    for (uint64_t seed = 1; seed <= Seeds; ++seed) {
        auto params = Downloads(seed);
        params.beside.*requests = rate;
        const auto result = Simulate(params);
        EXPECT_GT(result.utilisation, 0.95) << before;
        EXPECT_LT(result.queueMean, 0.12);
    }
}

TEST(AccessSilent, AFloodToServersThatNeverAnswerLeavesTheLinkToOthers)
{
    ExpectAFullLink(&BesideParams::silent, 100, "0.13 if each holds its slot's share of the link");
}

TEST(AccessSilent, NorDoThreeUsersWithTenRequestsASecondEach)
{
    double used = 0;
    for (uint64_t seed = 1; seed <= Seeds; ++seed) {
        auto params = Downloads(seed);
        params.beside.silent = 30;
        params.beside.silentUsers = 3;
        used += Simulate(params).utilisation / Seeds;
    }
    EXPECT_GT(used, 0.95) << "0.64";
}

TEST(AccessSilent, ServersThatThinkForTwoSecondsLeaveTheLinkToOthers)
{
    ExpectAFullLink(&BesideParams::thinking, 30, "0.55");
}

/// A user alone with its pages at 3 Mbit/s, beside streams of 48 kbit/s, each of its own user.
RunResult PagesBesideStreams(const uint64_t seed, const uint32_t streams)
{
    auto params = Downloads(seed);
    params.rate = 3e6;
    params.traffic = RunParams::Traffic::Tunnels;
    params.workload.kind = WorkloadParams::Kind::Pages;
    params.workload.users = {1, 0, 0};
    params.workload.fixedSize = 0;
    params.beside.streams = streams;
    params.seconds = 105;
    return Simulate(params);
}

TEST(AccessSilent, StreamsHoldNobodysPages)
{
    for (uint64_t seed = 1; seed <= Seeds; ++seed) {
        EXPECT_LT(PagesBesideStreams(seed, 4).heldP95.front(), 0.1)
            << "0.6 to 0.9 if each books its share of the link";
    }
}

TEST(AccessSilent, StreamsTakeNoMoreOfAPagesWindowsThanTheyUse)
{
    double alone = 0, beside = 0;
    for (uint64_t seed = 1; seed <= Seeds; ++seed) {
        alone += PagesBesideStreams(seed, 0).all.mean;
        beside += PagesBesideStreams(seed, 10).all.mean;
    }
    EXPECT_LT(beside, 1.4 * alone) << "1.2 since they use a sixth of the link; 1.6 if each had its user's share";
}

/// Every variant of a run gets the same requests, answered after the same times.
TEST(AccessSilent, ServersTakeTheSameTimeForARequestInEveryVariant)
{
    const auto offered = [](const bool scheduled) {
        auto params = Downloads(1);
        params.scheduled = scheduled;
        params.rate = 100e6;
        params.paths.assign(3, 20 * Ms);
        params.workload.kind = WorkloadParams::Kind::Open;
        params.workload.fixedSize = 1000;
        params.workload.load = 0.01;
        params.workload.firstByte = 60 * Ms;
        params.drain = 10;
        return Simulate(params).all;
    };
    const auto with = offered(true), without = offered(false);
    EXPECT_GT(with.count, 1000u);
    EXPECT_NEAR(with.mean, without.mean, 0.002);
    EXPECT_GT(with.mean, 0.02 + 0.1) << "the mean of the lognormal is 123 ms";
    EXPECT_EQ(with.unfinished, 0u);
}

} // namespace
} // namespace msfrs
