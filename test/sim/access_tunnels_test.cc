// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// HTTP/2 in tunnels through the simulated gateway, and the waiting times of users.
#include "sim/access/run.h"
#include "sim/access/http2_session.h"
#include "support/plugins.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace sim;
using namespace sim::access;
using Traffic = RunParams::Traffic;

RunParams Defaults(const Traffic traffic, const bool scheduled = true)
{
    RunParams params;
    params.config.pluginDir = test::PluginDir();
    params.traffic = traffic;
    params.scheduled = scheduled;
    return params;
}

/// A gateway with one server and one user.
struct Scene {
    explicit Scene(const bool kept, const bool scheduled = true, const double rate = 100e6):
        link(clock, rate, 1 << 20), gateway(clock, link, {100 * Ms}, config(rate, scheduled), 1),
        clients(clock, [this](const Wish &wish, std::shared_ptr<Http2Session> session) {
            gateway.tunnel(wish.cls, wish.user, wish.server, std::move(session));
        }, kept)
    {
    }

    static std::optional<RequestConfig> config(const double rate, const bool scheduled)
    {
        auto found = Defaults(Traffic::Tunnels).config;
        found.rate = rate;
        found.interface = "link";
        return scheduled ? std::optional(found) : std::nullopt;
    }
    /// \returns bytes of the body that have arrived
    std::shared_ptr<int64_t> ask(const int64_t size, const std::function<void()> &ended = [] {})
    {
        const auto had = std::make_shared<int64_t>(0);
        const auto received = [had](const int64_t bytes) { *had += bytes; };
        clients.fetch({0, "user", 0, size}, {received, [ended](bool) { ended(); }});
        return had;
    }

    Clock clock;
    Link link;
    Gateway gateway;
    Clients clients;
};

TEST(AccessTunnels, KeepTheWeightsWhileTheLinkIsSaturated)
{
    for (const auto law : {WindowLaw::Paper, WindowLaw::Bytes}) {
        auto params = Defaults(Traffic::Tunnels);
        params.config.window.law = law;
        params.seconds = 460;
        const auto result = Simulate(params);
        EXPECT_NEAR(result.perUser[0] / result.perUser[2], 4, 0.12);
        EXPECT_NEAR(result.perUser[1] / result.perUser[2], 2, 0.06);
        EXPECT_GT(result.utilisation, 0.98);
        EXPECT_LT(result.queueMean, 0.12);
        EXPECT_LT(result.dropped, 0.01);
    }
}

TEST(AccessTunnels, UnscheduledAllHaveTheSame)
{
    auto params = Defaults(Traffic::Tunnels, false);
    params.seconds = 460;
    const auto result = Simulate(params);
    EXPECT_NEAR(result.perUser[0] / result.perUser[2], 1, 0.1);
    EXPECT_NEAR(result.perUser[1] / result.perUser[2], 1, 0.1);
    EXPECT_GT(result.utilisation, 0.99);
    EXPECT_GT(result.queueMean, 0.15);
}

TEST(AccessTunnels, TakeThreeRoundTripsToTheFirstResponseAndThenOne)
{
    for (const bool scheduled : {true, false}) {
        Scene scene(true, scheduled);
        msfrs_time ended = -1;
        scene.ask(5000, [&] { ended = scene.clock.now(); });
        scene.clock.run(Second);
        EXPECT_NEAR(Seconds(ended), 0.3, 0.005);
        scene.ask(5000, [&] { ended = scene.clock.now(); });
        scene.clock.run(2 * Second);
        EXPECT_NEAR(Seconds(ended), 1.1, 0.005);
    }
}

TEST(AccessTunnels, AreKeptFromOneExchangeToTheNext)
{
    for (const bool kept : {true, false}) {
        Scene scene(kept);
        std::vector<std::shared_ptr<int64_t>> had;
        for (int n = 1; n <= 5; ++n) {
            had.push_back(scene.ask(20'000));
            scene.clock.run(n * 2 * Second);
            EXPECT_EQ(scene.gateway.scheduler()->window().outstanding, 0) << "an idle tunnel has no place";
        }
        for (const auto &bytes : had)
            EXPECT_EQ(*bytes, 20'000);
        EXPECT_EQ(scene.gateway.connections().size(), kept ? 1u : 5u);
        EXPECT_EQ(scene.gateway.open(), kept ? 1u : 0u);
        const auto report = scene.gateway.scheduler()->classes(scene.clock.now()).front();
        EXPECT_EQ(report.requests, kept ? 1u : 5u);
        EXPECT_EQ(report.exchanges, kept ? 4u : 0u);
    }
}

TEST(AccessTunnels, HoldWhatIsAskedInThemUntilItsTurn)
{
    constexpr uint32_t Count = 40;
    Scene scene(true, true, 2e6);
    const auto askAll = [&](const int64_t size) {
        for (uint32_t n = 0; n < Count; ++n)
            scene.clients.fetch({0, "user-" + std::to_string(n), 0, size}, {[](int64_t) {}, [](bool) {}});
    };
    askAll(1000);
    scene.clock.run(10 * Second);
    std::vector<int64_t> before;
    for (const auto &connection : scene.gateway.connections())
        before.push_back(connection->sender()->written());
    ASSERT_EQ(before.size(), Count);
    const auto answering = [&] {
        uint32_t found = 0, n = 0;
        for (const auto &connection : scene.gateway.connections())
            found += connection->sender()->written() > before[n++];
        return found;
    };
    askAll(20'000);
    scene.clock.run(scene.clock.now() + 200 * Ms); // the server is 50 ms away
    const auto queued = scene.gateway.scheduler()->classes(scene.clock.now()).front().queued;
    EXPECT_GT(queued, Count / 2);
    EXPECT_EQ(answering(), Count - queued);
    scene.clock.run(scene.clock.now() + 30 * Second);
    EXPECT_EQ(answering(), Count);
}

TEST(AccessTunnels, ThatNobodyUsesStayIdle)
{
    Scene scene(true);
    for (int n = 0; n < 20; ++n)
        scene.clients.idle({0, "user", 0, 0});
    scene.clock.run(5 * Second);
    EXPECT_EQ(scene.gateway.open(), 20u);
    EXPECT_EQ(scene.gateway.scheduler()->window().outstanding, 0);
    const auto carried = scene.link.counts().carried;
    EXPECT_GT(carried, 20 * 1000);
    EXPECT_LT(carried, 20 * 3000);
    scene.clock.run(100 * Second);
    EXPECT_EQ(scene.link.counts().carried, carried);
}

RunParams Crowd(const Traffic traffic, const bool scheduled = true)
{
    auto params = Defaults(traffic, scheduled);
    params.workload.kind = WorkloadParams::Kind::Burst;
    params.workload.fixedSize = 30'000;
    params.rate = 5e6;
    params.warmup = 0;
    return params;
}

TEST(AccessTunnels, AThousandThatAreOpenedAtOnceDoNotOverflowTheQueue)
{
    for (const auto law : {WindowLaw::Paper, WindowLaw::Bytes}) {
        auto params = Crowd(Traffic::NewTunnels);
        params.config.window.law = law;
        EXPECT_LT(Simulate(params).dropped, 0.01);
    }
    EXPECT_GT(Simulate(Crowd(Traffic::NewTunnels, false)).dropped, 0.3);
}

/// Every request uses a tunnel that another one has opened.
TEST(AccessTunnels, ACrowdMayFindItsTunnelsOpen)
{
    auto params = Crowd(Traffic::Tunnels, false);
    params.workload.burst = 100;
    params.workload.burstAt = 20;
    params.workload.opened = true;
    params.rate = 1e9;
    params.paths.assign(9, 100 * Ms);
    params.workload.fixedSize = 1000;
    params.warmup = 19;
    params.seconds = 25;
    const auto result = Simulate(params);
    EXPECT_EQ(result.all.count, 100u);
    EXPECT_NEAR(result.all.mean, 0.1, 0.001) << "one round trip";
}

/// The large response was requested first and has filled the socket. From then on the responses take turns.
TEST(AccessTunnels, TheServerTakesTurnsInAConnection)
{
    constexpr int64_t Turn = 32'768, Ahead = 5 * Turn; // three of these are in the socket
    Scene scene(true);
    scene.ask(1000);
    scene.clock.run(Second);
    const auto large = scene.ask(1'000'000);
    std::vector<int64_t> meanwhile;
    const auto note = [&] { meanwhile.push_back(*large); };
    scene.ask(10'000, note);
    scene.ask(300'000, note);
    scene.ask(300'000, note);
    scene.clock.run(20 * Second);
    EXPECT_EQ(*large, 1'000'000);
    ASSERT_EQ(meanwhile.size(), 3u);
    EXPECT_GT(meanwhile[0], 2 * Turn);
    EXPECT_LE(meanwhile[0], Ahead);
    for (const auto bytes : {meanwhile[1], meanwhile[2]}) {
        EXPECT_GT(bytes, 300'000);
        EXPECT_LE(bytes, 300'000 + Ahead);
    }
}

/// Bytes in the server's socket are not overtaken.
TEST(AccessTunnels, AResponseWaitsForWhatItsServerHasWritten)
{
    Scene scene(true, false, 2e6);
    scene.ask(1000);
    scene.clock.run(Second);
    const auto large = scene.ask(1'000'000);
    scene.clock.run(2 * Second);
    int64_t before = *large, meanwhile = 0;
    scene.ask(1000, [&] { meanwhile = *large; });
    scene.clock.run(10 * Second);
    const auto &sender = scene.gateway.connections().front()->sender();
    ASSERT_TRUE(sender);
    EXPECT_EQ(*large, 1'000'000);
    EXPECT_GT(meanwhile - before, 80'000) << "the least that a socket of Linux holds";
    EXPECT_LT(meanwhile - before, sender->room() + 100'000);
}

TEST(AccessWork, CountsWhatIsAskedForAndNotThereYet)
{
    Clock clock;
    Link link(clock, FullFrame * 8 * 1000, 100 * FullFrame); // a frame a millisecond
    const RateTrace offered = {{0, FullFrame * 8 * 1000}};
    Work work(clock, link, offered);
    clock.at(0, [&] { work.asked(500); });
    clock.at(Second, [&] { work.measure(); });
    clock.at(2 * Second, [&] { work.asked(1000); });
    clock.at(4 * Second, [&] { work.received(900); });
    clock.at(5 * Second, [&] { work.ended(0); });
    clock.at(6 * Second, [&] { work.ended(600); });
    for (int n = 0; n < 7000; ++n)
        clock.at(n * 2 * Ms, [&] { link.send(FullFrame, [] {}); });
    clock.run(11 * Second);
    EXPECT_DOUBLE_EQ(work.unfinished(), (1 * 500 + 2 * 1500 + 2 * 600) / 10.0);
    EXPECT_NEAR(work.utilisation(), 0.5, 0.001);
}

TEST(AccessWork, IsWhatARequestThatIsAloneComesTo)
{
    for (const auto &[traffic, trips] : {std::pair(Traffic::Http1, 2), {Traffic::Tunnels, 3}}) {
        auto params = Defaults(traffic);
        params.rate = 100e6;
        params.paths = {100 * Ms};
        params.workload.kind = WorkloadParams::Kind::Recorded;
        params.workload.recorded = {{2, 0, 0, 10'000}};
        params.seconds = 10;
        params.warmup = 0;
        EXPECT_NEAR(Simulate(params).unfinished, 10'000 * trips * 0.1 / 10, 1);
    }
}

/// Bytes of responses of unknown size. A tunnel's exchange covers all its streams: the later ones count from the first
/// request on.
TEST(AccessWork, IsSeenByTheSchedulerWhichKnowsNoSizes)
{
    for (const auto &[traffic, within] : {std::pair(Traffic::Http1, 0.1), {Traffic::Tunnels, 0.25}}) {
        double asked = 0, seen = 0;
        for (const uint64_t seed : {1, 2, 3, 4}) {
            auto params = Defaults(traffic);
            params.workload.kind = WorkloadParams::Kind::Open;
            params.seed = seed;
            params.seconds = 240;
            const auto result = Simulate(params);
            asked += result.unfinished;
            seen += result.unfinishedSeen;
        }
        EXPECT_NEAR(seen / asked, 1, within);
    }
}

/// A thousand open tunnels with simultaneous requests: losses and queueing must not make a server look silent, as its
/// slot would go to the next request, and more would be lost. Stock drops 65 %.
TEST(AccessTunnels, AskedAtOnceInAThousandOpenOnesMostArrives)
{
    double dropped = 0;
    for (const uint64_t seed : {1, 2, 3, 4}) {
        auto params = Crowd(Traffic::Tunnels);
        params.paths.clear();
        for (int n = 0; n < 84; ++n)
            params.paths.push_back(12 * Ms + 284 * Ms * n / 83);
        params.workload.burst = 1008;
        params.workload.burstAt = 60;
        params.workload.opened = true;
        params.warmup = 59;
        params.seed = seed;
        dropped += Simulate(params).dropped / 4;
    }
    EXPECT_LT(dropped, 0.2);
}

} // namespace
} // namespace msfrs
