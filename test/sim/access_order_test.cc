// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The properties of the order, over TCP and with the real window: test/sched/order_shares_test.cc checks the same for
/// msf alone. Each property is contrasted with an order that violates it.
#include "sim/access/run.h"
#include "support/plugins.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>

namespace msfrs {
namespace {

using namespace sim;
using namespace sim::access;

using Settings = std::vector<Setting>;
const Settings Default;
const Settings NoFavour = {{"favour", "0"}};
const Settings NoShares = {{"ahead", "inf"}};
/// The response with fewer bytes remaining stays ahead, however long the others wait.
const Settings NoDecay = {{"lead", "1000000000"}, {"lead_time", "1000000"}};

class AccessOrder : public ::testing::TestWithParam<uint64_t> {
protected:
    static RunParams saturated(const Settings &settings)
    {
        RunParams params;
        params.config.pluginDir = test::PluginDir();
        params.config.arbiter = {"msf", settings};
        params.seconds = 460;
        params.seed = GetParam();
        return params;
    }
};

/// Greatest deviation of users' bytes from their weights: each class compared with the last one.
double Off(const std::vector<double> &bytes, const std::vector<double> &weights)
{
    double worst = 0;
    for (size_t n = 0; n + 1 < bytes.size(); ++n)
        worst = std::max(worst, std::abs(bytes[n] / bytes.back() * weights.back() / weights[n] - 1));
    return worst;
}

/// Bytes of the classes from `first` on, in parts [from, to) of a run.
template <class Parts>
std::vector<double> BytesIn(const Parts &parts, const size_t from, const size_t to, const size_t first = 0)
{
    std::vector<double> bytes;
    for (size_t cls = first; cls < 3; ++cls) {
        bytes.push_back(0);
        for (size_t part = from; part < to; ++part)
            bytes.back() += parts[part][cls];
    }
    return bytes;
}

TEST_P(AccessOrder, ClassesHaveTheirSharesToAPercent)
{
    const auto off = [&](const Settings &settings) { return Off(Simulate(saturated(settings)).perUser, {4, 2, 1}); };
    EXPECT_LT(off(Default), 0.01);
    EXPECT_GT(off(NoShares), 0.5);
}

/// Over thirty seeds 1.8 % on average, and 3.4 % at most; the target is 3 %.
TEST_P(AccessOrder, UsersOfAClassHaveTheSame)
{
    const auto worst = [&](const Settings &settings) {
        const auto result = Simulate(saturated(settings));
        return *std::max_element(result.userError.begin(), result.userError.end());
    };
    EXPECT_LT(worst(Default), 0.035);
    EXPECT_GT(worst(NoDecay), 0.3);
}

/// As the field trial evaluates phases: without the first part of each, in which earlier requests are still served.
/// Over thirty seeds 2.2 % on average, and 3.8 % at most; the target is 3 %.
TEST_P(AccessOrder, ClassesHaveTheirSharesInEveryPhase)
{
    const auto worst = [&](const Settings &settings) {
        auto params = saturated(settings);
        params.seconds = 400;
        params.workload.parts = 32;
        // All; all but the first; only the last; all.
        params.workload.active = {0xff0000ff, 0xff00ffff, 0xffffffff};
        const auto parts = Simulate(params).parts;
        const auto phase = [&](const size_t number, const size_t from) {
            const std::vector<double> weights = {4, 2, 1};
            return Off(BytesIn(parts, number * 8 + 1, number * 8 + 8, from),
                       {weights.begin() + static_cast<std::ptrdiff_t>(from), weights.end()});
        };
        return std::max({phase(0, 0), phase(1, 1), phase(3, 0)});
    };
    EXPECT_LT(worst(Default), 0.04);
    EXPECT_GT(worst(NoShares), 0.06);
}

/// A user without competitors for 12.5 s, then a backlog of others; measured from 62.5 s after that, for 87 s.
TEST_P(AccessOrder, WhatClassesHadOutOfTurnIsGoneAfterAMinute)
{
    const auto off = [&](const Settings &settings) {
        auto params = saturated(settings);
        params.seconds = 162.5;
        params.config.classes.push_back({"guest", 1});
        params.workload.users.push_back(1);
        params.workload.parts = 13;
        params.workload.active = {0x1ffe, 0x1ffe, 0x1ffe, 0x0001};
        return Off(BytesIn(Simulate(params).parts, 6, 13), {4, 2, 1});
    };
    const double some = off(Default);
    EXPECT_LT(some, 0.05);
    EXPECT_GT(off({{"favour", "600"}}), 5 * some);
}

TEST(AccessOpen, WhatClassesHaveOutOfTurnIsGainedByAll)
{
    std::map<std::string, double> all, last;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        for (const char *const favour : {"0", "60"}) {
            RunParams params;
            params.config.pluginDir = test::PluginDir();
            params.config.arbiter = {"msf", {{"favour", favour}}};
            params.workload.kind = WorkloadParams::Kind::Open;
            params.seed = seed;
            const auto result = Simulate(params);
            all[favour] += result.all.mean;
            last[favour] += result.classes.back().mean;
        }
    }
    EXPECT_LT(all["60"], 0.97 * all["0"]);
    EXPECT_LT(last["60"], 0.95 * last["0"]);
}

/// Users who are always backlogged at the gateway, on the field trial's link of 2 Mbit/s.
class Scene {
public:
    Scene(const Settings &settings, const uint64_t seed):
        link_(clock_, params_.rate, 57'750), gateway_(clock_, link_, params_.paths, config(settings), seed),
        draws_(seed, "scene")
    {
    }

    struct Asking {
        uint32_t cls;
        std::string user;
        uint32_t inFlight;
        int64_t least, most; ///< bytes of a response
        std::function<int64_t(int64_t)> says = {};
    };
    /// Keeps this many responses open to the end.
    void keepAsking(const Asking &asking)
    {
        for (uint32_t n = 0; n < asking.inFlight; ++n)
            ask(asking);
    }
    void run(const double seconds) { clock_.run(clock_.now() + std::llround(seconds * 1e9)); }

    double had(const std::string &user) { return static_cast<double>(users_[user].had); }
    /// The longest time that a backlogged user got nothing, s.
    double longest(const std::string &user)
    {
        return Seconds(std::max(users_[user].longest, clock_.now() - users_[user].last));
    }
    /// Unused fraction of the link's capacity.
    double idle() const
    {
        return 1 - static_cast<double>(link_.counts().carried) / (Seconds(clock_.now()) * params_.rate / 8);
    }

private:
    struct User {
        int64_t had = 0;
        msfrs_time last = 0, longest = 0;
    };

    RequestConfig config(const Settings &settings) const
    {
        auto config = params_.config;
        config.pluginDir = test::PluginDir();
        config.rate = params_.rate;
        config.interface = "link";
        config.arbiter = {"msf", settings};
        return config;
    }
    void ask(const Asking &asking)
    {
        const auto server = draws_.below(static_cast<uint32_t>(params_.paths.size()));
        const auto range = static_cast<double>(asking.most - asking.least);
        const auto size = asking.least + std::llround(draws_.uniform() * range);
        Watcher watcher;
        watcher.received = [this, name = asking.user](const int64_t bytes) {
            auto &user = users_[name];
            user.had += bytes;
            user.longest = std::max(user.longest, clock_.now() - user.last);
            user.last = clock_.now();
        };
        watcher.ended = [this, asking](bool) { ask(asking); };
        gateway_.fetch({asking.cls, asking.user, server, size, asking.says}, std::move(watcher));
    }

    const RunParams params_;
    Clock clock_;
    Link link_;
    Gateway gateway_;
    Draws draws_;
    std::map<std::string, User> users_;
};

constexpr int64_t Endless = 1'000'000'000;

TEST_P(AccessOrder, ALargeResponseOfTheLastClassIsNeverWithoutServiceForLong)
{
    const auto longest = [&](const Settings &settings, const int users) {
        Scene scene(settings, GetParam());
        for (int user = 0; user < users; ++user) {
            for (const uint32_t cls : {0, 1, 2}) {
                const auto name = std::to_string(cls) + "-" + std::to_string(user);
                scene.keepAsking({cls, name, cls == 2 ? 9u : 3u, 500, 12'000});
            }
        }
        scene.keepAsking({2, "large", 1, Endless, Endless});
        scene.run(300);
        EXPECT_LT(scene.idle(), 0.05) << "the small ones have to fill the link";
        return scene.longest("large");
    };
    EXPECT_LT(longest(Default, 4), 30);
    EXPECT_LT(longest(Default, 8), 30) << "among more, whom the reserve could serve for longer";
    EXPECT_GT(longest(NoShares, 4), 30);
    EXPECT_GT(longest(NoDecay, 4), 30);
}

/// A lesson begins: new users do not pay for the bytes that one user of their class received before.
TEST_P(AccessOrder, ACrowdHasItsShareAfterFiveSecondsWhateverOneOfItsClassHadBefore)
{
    Scene scene(NoFavour, GetParam()); // favour= would let short bursts pass whatever the weights
    scene.keepAsking({2, "early", 2, Endless, Endless});
    scene.keepAsking({0, "teacher", 1, 500, 100'000});
    scene.run(4);
    constexpr int Pupils = 80, Teachers = 40;
    const auto crowd = [&](const uint32_t cls, const int users) {
        for (int user = 0; user < users; ++user)
            scene.keepAsking({cls, std::to_string(cls) + "-" + std::to_string(user), 2, 5'000, 60'000});
    };
    const auto had = [&](const uint32_t cls, const int users) {
        double sum = cls == 2 ? scene.had("early") : scene.had("teacher");
        for (int user = 0; user < users; ++user)
            sum += scene.had(std::to_string(cls) + "-" + std::to_string(user));
        return sum;
    };
    crowd(2, Pupils);
    crowd(0, Teachers);
    scene.run(5); // afterwards the initial service out of turn of either class is made up for
    const double pupils = had(2, Pupils), teachers = had(0, Teachers);
    scene.run(10);
    const double pupilsHad = had(2, Pupils) - pupils, teachersHad = had(0, Teachers) - teachers;
    const double due = (Pupils + 1.0) / (Pupils + 1 + 4 * (Teachers + 1));
    EXPECT_NEAR(pupilsHad / (pupilsHad + teachersHad), due, 0.1 * due);
}

/// Bytes of a user of the last class in excess of those of another with two endless downloads, as a fraction of the
/// latter: the most of three minutes, after a first one in which the lead and the reserve lend bytes.
class AccessGain : public AccessOrder {
protected:
    /// Mean over three seeds.
    double gain(const Settings &settings, const Scene::Asking &his) const
    {
        double sum = 0;
        for (uint64_t seed = 3 * GetParam() - 2; seed <= 3 * GetParam(); ++seed)
            sum += gainOf(settings, his, seed);
        return sum / 3;
    }

private:
    static double gainOf(const Settings &settings, const Scene::Asking &his, const uint64_t seed)
    {
        Scene scene(settings, seed);
        scene.keepAsking({0, "gold", 4, 500, 100'000});
        scene.keepAsking({1, "silver", 4, 500, 100'000});
        scene.keepAsking({2, "honest", 2, Endless, Endless});
        scene.keepAsking(his);
        scene.run(60);
        double most = -1;
        for (int minute = 1; minute <= 3; ++minute) {
            const double his0 = scene.had(his.user), honest = scene.had("honest");
            scene.run(60);
            most = std::max(most, (scene.had(his.user) - his0) / std::max(scene.had("honest") - honest, 1.0) - 1);
        }
        return most;
    }
};

TEST_P(AccessGain, WhoAsksForManySmallThingsGetsNoMoreThanHisShareOverAMinute)
{
    const Scene::Asking small = {2, "small", 8, 500, 12'000};
    EXPECT_LT(gain(Default, small), 0.03);
    EXPECT_GT(gain(NoShares, small), 1);
    EXPECT_GT(gain(NoDecay, small), 1);
}

/// Single seeds have up to 5 %. A quantum is 0.9 % of a user's bytes in a minute here.
TEST_P(AccessGain, SizesThatLieGainNothingOverAMinute)
{
    const auto lie = [](std::function<int64_t(int64_t)> says, const int64_t size) {
        return Scene::Asking{2, "liar", 2, size, size, std::move(says)};
    };
    const auto byte = [](int64_t) { return int64_t(1); };
    const auto tenth = [](const int64_t left) { return left / 10; };
    for (const auto size : {Endless, int64_t(300'000)}) {
        EXPECT_LT(gain(Default, lie(byte, size)), 0.05) << size;
        EXPECT_LT(gain(Default, lie(tenth, size)), 0.05) << size;
        EXPECT_LT(gain(Default, lie([](int64_t) { return int64_t(-5); }, size)), 0.05) << size;
        EXPECT_LT(gain(Default, lie([](int64_t) { return int64_t(1) << 62; }, size)), 0.05) << size;
        EXPECT_GT(gain(NoDecay, lie(byte, size)), 0.1) << size;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AccessOrder, ::testing::Values(1, 2, 3));
INSTANTIATE_TEST_SUITE_P(Seeds, AccessGain, ::testing::Values(1, 2, 3));

} // namespace
} // namespace msfrs
