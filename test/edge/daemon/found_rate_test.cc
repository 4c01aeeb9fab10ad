// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// `link rate=auto` in front of users who download by TCP, over a link whose rate changes: the real packet path, the
/// simulator's TCP and bottleneck queue, and segments with timestamps, under a simulated clock.
#include "edge/daemon/packets.h"
#include "edge/daemon/segments.h"
#include "sim/access/connection.h"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <unordered_map>

namespace msfrs::test {
namespace {

using namespace edge;
namespace access = sim::access;

constexpr double Mbit = 1e6;
const std::string Shaper = "link rate=auto min=1Mbit max=80Mbit overhead=14B\nqueue number=0\nscheduler fq\naqm codel\n"
                           "inside 10.0.0.0/8\n";

class EdgeOnLink final : public Verdicts {
public:
    /// \param buffer bytes of the bottleneck queue
    explicit EdgeOnLink(const double rate, const int64_t buffer = 1'000'000,
                        const Config &config = *PathUnderTest::Parse(Shaper)):
        link(clock, rate, buffer),
        path(std::make_unique<Schedule>(std::make_shared<const Config>(config), host_.engine()), nullptr, nullptr,
             *this, 0),
        due_(clock, [this] { serve(); })
    {}

    /// Users with endless downloads, from servers 20 to 80 ms away; `set` decides which user has which.
    void download(const size_t n)
    {
        for (size_t i = 0; i < n; ++i)
            users_.push_back(std::make_unique<User>(*this, static_cast<uint8_t>(users_.size() + 1)));
    }
    /// Packets on the link that belong to no connection.
    void datagrams(const double rate, const msfrs_time until)
    {
        if (clock.now() >= until)
            return;
        link.send(sim::FullFrame, [this] {
            auto packet = Make({1, 1, 53, 53, 17, 0, 0, 0x10, 1500});
            const uint8_t user[] = {10, 0, 0, 200};
            std::copy(std::begin(user), std::end(user), &packet.bytes[16]);
            come(packet.bytes.data(), packet.captured, packet.length, [] {});
        });
        clock.after(static_cast<msfrs_time>(sim::FullFrame * 8e9 / rate), [this, rate, until] {
            datagrams(rate, until);
        });
    }

    void run(const msfrs_time time) { clock.run(clock.now() + time); }
    /// Runs until C is at least `wanted`, for `most` ns at most. \returns how long it took, s
    double until(const double wanted, const msfrs_time most)
    {
        const auto from = clock.now();
        while (found().capacity.rate < wanted && clock.now() - from < most)
            run(10 * Ms);
        return static_cast<double>(clock.now() - from) * 1e-9;
    }
    /// Runs until the bottleneck queue has been shorter than `seconds` for a whole second. \returns when that began, s
    double untilEmpty(const double seconds, const msfrs_time most)
    {
        const auto from = clock.now();
        auto began = from;
        while (clock.now() - from < most && clock.now() - began < Second) {
            run(10 * Ms);
            if (static_cast<double>(link.backlog()) * 8 / link.rate() >= seconds)
                began = clock.now();
        }
        return static_cast<double>(began - from) * 1e-9;
    }
    /// Least and greatest C during the time.
    std::pair<double, double> range(const msfrs_time time)
    {
        std::pair<double, double> all{found().capacity.rate, found().capacity.rate};
        for (const auto end = clock.now() + time; clock.now() < end; run(10 * Ms)) {
            all.first = std::min(all.first, found().capacity.rate);
            all.second = std::max(all.second, found().capacity.rate);
        }
        return all;
    }
    /// Fraction of the link's capacity used during the time.
    double utilisation(const msfrs_time time)
    {
        const auto before = link.counts().carried;
        run(time);
        return static_cast<double>(link.counts().carried - before) * 8e9 / link.rate() / static_cast<double>(time);
    }
    FoundReport found() const { return path.found()->report(clock.now()); }

    void give(const uint32_t id, const bool pass, std::optional<uint32_t>) override
    {
        if (pass)
            clock.at(clock.now(), std::move(held_.at(id)));
        held_.erase(id);
    }

    sim::Clock clock;
    sim::Link link;
    int set = 0;
    double loss = 0;           ///< fraction of servers' packets that are lost at random
    msfrs_time longer = 0;     ///< ns added to the delay of all paths
    bool stamps = true;

private:
    Host host_;

public:
    PacketPath path;

private:
    /// A user's connection: a server with unlimited data, and a receiver behind the edge.
    struct User {
        User(EdgeOnLink &on, const uint8_t n):
            edge(on), number(n), way((20 + (number + on.set) * 17 % 61) * Ms / 2),
            receiver(edge.clock, [this](const access::Ack &ack) { up(ack); },
                     [this] { receiver.read(int64_t{1} << 50); }, 0),
            sender(edge.clock, [this](const access::Segment &s) { down(s); }, receiver.edge(), 2 * way)
        {
            up({0, receiver.edge(), edge.clock.now(), {}}); // the end of the handshake
            edge.clock.after(way, [this, asked = edge.clock.now()] {
                sender.heard(asked);
                sender.write(int64_t{1} << 50);
            });
        }

        void up(const access::Ack &ack)
        {
            SegmentOf of;
            of.user = number;
            of.server = number;
            of.from = 1;
            of.acknowledged = static_cast<uint32_t>(ack.next);
            if (edge.stamps)
                of.stamps = {static_cast<uint32_t>(ack.sent / Ms), 0};
            auto bytes = MadeSegment(of);
            edge.come(bytes.data(), static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(bytes.size()),
                      [this, ack] { edge.clock.after(way + edge.longer, [this, ack] { sender.acknowledged(ack); }); });
        }
        void down(const access::Segment &s)
        {
            edge.clock.after(way, [this, s] {
                if (edge.random() < edge.loss)
                    return;
                edge.link.send(s.bytes.end - s.bytes.begin + sim::Headers, [this, s] { arrive(s); });
            });
        }
        void arrive(const access::Segment &s)
        {
            SegmentOf of;
            of.user = number;
            of.server = number;
            of.down = true;
            of.from = static_cast<uint32_t>(s.bytes.begin);
            of.payload = static_cast<uint32_t>(s.bytes.end - s.bytes.begin);
            if (edge.stamps)
                of.stamps = {0, static_cast<uint32_t>(s.echo / Ms)};
            auto bytes = MadeSegment(of);
            edge.come(bytes.data(), static_cast<uint32_t>(bytes.size()),
                      static_cast<uint32_t>(bytes.size()) + of.payload, [this, s] { receiver.arrived(s); });
        }

        EdgeOnLink &edge;
        uint8_t number;
        msfrs_time way; ///< ns, one way
        access::Receiver receiver;
        access::Sender sender;
    };

    void come(uint8_t *const data, const uint32_t captured, const uint32_t length, sim::Clock::Event passes)
    {
        const Arrival a{++ids_, 0, data, captured, length};
        held_.emplace(ids_, std::move(passes));
        path.arrive(&a, 1, clock.now());
        arm();
    }
    void serve()
    {
        path.service(clock.now());
        arm();
    }
    void arm()
    {
        if (const auto next = path.next())
            due_.set(std::max(*next, clock.now()));
    }
    double random() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

    std::unordered_map<uint32_t, sim::Clock::Event> held_;
    std::vector<std::unique_ptr<User>> users_;
    sim::Timer due_;
    std::mt19937_64 random_{1};
    uint32_t ids_ = 0;
};

TEST(FoundRate, IsFoundFromTheLeast)
{
    constexpr int Sets = 8;
    for (const double rate : {2 * Mbit, 10 * Mbit, 50 * Mbit}) {
        double queue = 0; // at 2 Mbit/s it varies with the RTTs, from 60 to 120 ms
        for (int set = 0; set < Sets; ++set) {
            EdgeOnLink edge(rate);
            edge.set = set;
            edge.download(8);
            EXPECT_EQ(edge.found().capacity.rate, 1 * Mbit);
            EXPECT_LE(edge.until(0.95 * rate, 20 * Second), 10) << rate;
            edge.run(5 * Second);
            const auto [least, most] = edge.range(20 * Second);
            EXPECT_GE(least, 0.9 * rate) << rate;
            EXPECT_LE(most, 1.1 * rate) << rate;
            edge.link.measureQueue();
            EXPECT_GE(edge.utilisation(20 * Second), 0.95) << rate;
            queue += edge.link.queueQuantile(0.95) / Sets;
        }
        EXPECT_LE(queue, 0.1) << rate;
    }
}

TEST(FoundRate, AStepDownIsFollowed)
{
    EdgeOnLink edge(10 * Mbit);
    edge.download(8);
    edge.run(20 * Second);
    edge.link.setRate(2.5 * Mbit);
    EXPECT_LE(edge.untilEmpty(0.1, 10 * Second), 2.5);
    edge.run(2 * Second);
    const auto [least, most] = edge.range(10 * Second);
    EXPECT_GE(least, 0.85 * 2.5 * Mbit);
    EXPECT_LE(most, 1.15 * 2.5 * Mbit);
}

TEST(FoundRate, AStepUpIsFollowed)
{
    EdgeOnLink edge(2.5 * Mbit);
    edge.download(8);
    edge.run(20 * Second);
    edge.link.setRate(10 * Mbit);
    EXPECT_LE(edge.until(9 * Mbit, 20 * Second), 3);
}

TEST(FoundRate, RandomLossIsNoReason)
{
    EdgeOnLink edge(10 * Mbit);
    edge.loss = 0.01;
    edge.download(8);
    edge.run(10 * Second);
    EXPECT_GE(edge.range(20 * Second).first, 0.85 * 10 * Mbit);
}

TEST(FoundRate, StaysWithinItsBounds)
{
    EdgeOnLink edge(0.4 * Mbit); // less than min=
    edge.download(8);
    EXPECT_GE(edge.range(20 * Second).first, 1 * Mbit);
    EXPECT_GE(edge.found().pace, 1'000'000);
    edge.link.setRate(200 * Mbit);
    EXPECT_LE(edge.range(20 * Second).second, 80 * Mbit);
    EXPECT_LE(edge.found().pace, 80'000'000);
}

TEST(FoundRate, StaysWhileTheLinkIsDown)
{
    EdgeOnLink edge(10 * Mbit);
    edge.download(8);
    edge.run(20 * Second);
    edge.link.setRate(0);
    edge.run(5 * Second);
    edge.link.setRate(10 * Mbit);
    edge.run(5 * Second);
    EXPECT_GE(edge.range(10 * Second).first, 0.85 * 10 * Mbit);
}

TEST(FoundRate, ALongerPathIsNoQueue)
{
    EdgeOnLink edge(10 * Mbit);
    edge.download(8);
    edge.run(20 * Second);
    edge.longer = 100 * Ms;
    edge.run(10 * Second);
    EXPECT_GE(edge.range(10 * Second).first, 0.7 * 10 * Mbit);
}

TEST(FoundRate, WithoutRoundTripsOnlyGrows)
{
    EdgeOnLink edge(10 * Mbit);
    edge.stamps = false;
    edge.download(8);
    edge.run(20 * Second);
    EXPECT_LT(edge.found().capacity.queue, 0);
    EXPECT_LE(edge.found().capacity.rate, 10.6 * Mbit);
    EXPECT_GE(edge.found().capacity.rate, 1 * Mbit);
}

TEST(FoundRate, DatagramsAloneOnlyRaiseIt)
{
    EdgeOnLink edge(10 * Mbit);
    edge.datagrams(5 * Mbit, 5 * Second);
    edge.run(10 * Second);
    EXPECT_NEAR(edge.found().capacity.rate, 5 * Mbit, 0.3 * Mbit);
}

TEST(FoundRate, TheShippedConfigurationFindsIt)
{
    EdgeOnLink edge(10 * Mbit, 1'000'000, ReadConfig(TreeFile("conf/edge/downlink-auto.conf"), PluginDir()));
    edge.download(8);
    EXPECT_LE(edge.until(9.5 * Mbit, 20 * Second), 10);
}

/// Packets to the outside pass at once, and are counted.
TEST(FoundRate, WhatGoesUpDoesNotWait)
{
    PathUnderTest t("link rate=auto min=1Mbit max=2Mbit\nqueue number=0\ninside 198.18.0.0/16\n");
    for (int n = 0; n < 100; ++n)
        t.arrive({});
    EXPECT_EQ(t.verdicts.passed().size(), 100u);
    EXPECT_EQ(t.total().passed.packets, 100u);
    PathUnderTest down("link rate=auto min=1Mbit max=2Mbit\nqueue number=0\ninside 198.19.0.0/16\n");
    for (int n = 0; n < 100; ++n)
        down.arrive({});
    EXPECT_EQ(down.verdicts.passed().size(), 1u);
}

TEST(FoundRate, AReloadTakesOtherBoundsOver)
{
    EdgeOnLink edge(10 * Mbit);
    edge.download(8);
    edge.run(20 * Second);
    Host host;
    const auto reload = [&](const std::string &link) {
        const auto rest = Shaper.substr(Shaper.find('\n') + 1);
        edge.path.replace(std::make_unique<Schedule>(PathUnderTest::Parse(link + rest), host.engine()),
                          edge.clock.now());
    };
    reload("link rate=auto min=2Mbit max=6Mbit\n");
    EXPECT_EQ(edge.found().capacity.rate, 6 * Mbit);
    edge.run(Second);
    reload("link rate=3Mbit\n");
    EXPECT_EQ(edge.path.found(), nullptr);
    EXPECT_NEAR(edge.utilisation(5 * Second) * 10, 3, 0.3);
}

} // namespace
} // namespace msfrs::test
