// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Gateways with separate request schedulers that share one link by msfrs-share: weights, an idle share, and the loss
/// of the store.
#include "fake_store.h"
#include "ledger/party_sim.h"
#include "satellites/share/segment_board.h"

#include <array>
#include <gtest/gtest.h>
#include <numeric>

namespace msfrs::test {
namespace {

using namespace share;

/// Two gateways, each with its own segment and interface.
class GatewaySim : public PartySim {
public:
    explicit GatewaySim(const double rate = 10e6, const uint64_t seed = 1): PartySim(2, rate, seed, 2)
    {
        for (uint32_t n = 0; n < 2; ++n)
            gateways_.push_back(std::make_unique<Daemon>(*this, n, n));
        everyStep = [this] {
            for (auto &g : gateways_)
                g->step(now);
        };
    }
    ~GatewaySim() override { gateways_.clear(); }

    /// Bytes of each gateway's users in the latest measure(), without those of users at both.
    std::vector<double> byGateway() const
    {
        std::vector<double> had(2);
        for (const auto &u : users) {
            if (u.parties.size() == 1)
                had[u.parties[0]] += static_cast<double>(u.bytes);
        }
        return had;
    }
    StoreState state(const uint32_t n) const { return gateways_[n]->sharing->report(now).state; }
    /// A gateway's msfrs-share starts again, beside its schedulers.
    void restartSharing(const uint32_t n)
    {
        gateways_[n].reset(); // before the next one uses its board
        gateways_[n] = std::make_unique<Daemon>(*this, n, 100 + n);
    }
    /// Mean of what both gateways take for their own, as a part of W+.
    double claimed(const msfrs_time time)
    {
        double sum = 0;
        const auto times = static_cast<int>(time / (100 * Ms));
        for (int k = 0; k < times; ++k) {
            run(100 * Ms);
            double others = 0;
            for (const auto &g : gateways_)
                others += static_cast<double>(g->sharing->report(now).others[0].shown);
            sum += 2 - others / scheduler(0).window().limit;
        }
        return sum / times;
    }

    Server server;

private:
    struct Daemon {
        Daemon(GatewaySim &sim, const uint32_t n, const uint64_t life):
            board(1), store(sim.server, {Name(n), Name(1 - n)})
        {
            board.use(&sim.segmentOf(n));
            SharingParams params;
            params.gateway = Name(n);
            params.others = {Name(1 - n)};
            sharing = std::make_unique<Sharing>(params, board, store, [](const std::string &) {}, life, sim.now);
        }
        ~Daemon() { board.use(nullptr); }
        static std::string Name(const uint32_t n) { return n == 0 ? "north" : "south"; }
        void step(const msfrs_time now)
        {
            store.step(now);
            if (now >= due)
                due = sharing->tick(now);
        }

        SegmentBoard board;
        FakeStore store;
        std::unique_ptr<Sharing> sharing;
        msfrs_time due = 0;
    };

    std::vector<std::unique_ptr<Daemon>> gateways_;
};

void ExpectShares(const std::vector<double> &had, const double most)
{
    EXPECT_NEAR(had[0] / had[2] / 4, 1, most);
    EXPECT_NEAR(had[1] / had[2] / 2, 1, most);
}

class ShareGatewaysOnALink : public testing::TestWithParam<uint64_t> {
protected:
    GatewaySim sim{10e6, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Seeds, ShareGatewaysOnALink, testing::Values(1));

TEST_P(ShareGatewaysOnALink, UsersOfBothByWeight)
{
    sim.everywhere({4, 4, 4});
    sim.run(20 * Second);
    ExpectShares(sim.measure(200 * Second), 0.03);
    EXPECT_GT(sim.utilisation, 0.97);
}

TEST_P(ShareGatewaysOnALink, UsersOfOneEachByWeight)
{
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n % 2});
    sim.run(20 * Second);
    ExpectShares(sim.measure(200 * Second), 0.03);
    EXPECT_GT(sim.utilisation, 0.97);
}

/// Each gateway has its own account of the bytes that correct the shares. After a restart of one they would differ.
TEST_P(ShareGatewaysOnALink, NoSlotStaysFreeAfterARestartOfSharing)
{
    sim.farLatency = 300 * Ms;
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n % 2});
    sim.run(60 * Second);
    EXPECT_NEAR(sim.claimed(10 * Second), 1, 0.04);
    sim.restartSharing(1);
    sim.run(20 * Second);
    EXPECT_NEAR(sim.claimed(20 * Second), 1, 0.04);
}

/// A slot carries less at a gateway whose servers are distant: equal slots would give the near one twice as much.
TEST_P(ShareGatewaysOnALink, DistantServersCostAGatewayNothing)
{
    sim.farLatency = 300 * Ms;
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n % 2});
    sim.run(30 * Second);
    ExpectShares(sim.measure(100 * Second), 0.03);
    const auto had = sim.byGateway();
    EXPECT_NEAR(had[0] / had[1], 1, 0.05);
    EXPECT_GT(sim.utilisation, 0.97);
}

TEST_P(ShareGatewaysOnALink, AClassThatSitsOnOneOfThem)
{
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n / 4 == 0 ? 0u : 1u});
    sim.run(20 * Second);
    ExpectShares(sim.measure(200 * Second), 0.03);
    EXPECT_GT(sim.utilisation, 0.97);
}

TEST_P(ShareGatewaysOnALink, WhatOneLeavesIsForTheOther)
{
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n % 2}, 8);
    sim.run(20 * Second);
    for (auto &u : sim.users)
        u.asks = u.parties[0] == 0;
    sim.run(5 * Second);
    sim.measure(10 * Second);
    EXPECT_GT(sim.utilisation, 0.95);
}

/// Thirty seconds without the store, with users of both gateways in proportion to the static shares.
TEST_P(ShareGatewaysOnALink, WithoutTheStore)
{
    for (uint32_t n = 0; n < 12; ++n)
        sim.user(n / 4, "u" + std::to_string(n), {n % 2});
    sim.run(60 * Second);
    sim.server.there = false;
    sim.run(10 * Second);
    EXPECT_EQ(sim.state(0), StoreState::Static);
    ExpectShares(sim.measure(20 * Second), 0.05);
    const auto had = sim.byGateway();
    EXPECT_NEAR(had[0] / had[1], 1, 0.05);
    EXPECT_GT(sim.utilisation, 0.95);
    sim.server.there = true;
    sim.run(3 * Second);
    EXPECT_EQ(sim.state(0), StoreState::Together);
    EXPECT_EQ(sim.state(1), StoreState::Together);
    ExpectShares(sim.measure(100 * Second), 0.03);
}

/// Users by gateway and class: a class with one user at a gateway and up to six at the other.
using Counts = std::array<std::array<uint32_t, 3>, 2>;
constexpr Counts Uneven = {{{1, 2, 5}, {4, 2, 1}}}, OneOfEach = {{{6, 6, 5}, {1, 1, 1}}};

/// The classes of each gateway, checked one by one: averages over gateways look right even if one has a fifth of its
/// share and the other makes up for it.
class ShareOfAClassAtAGateway : public testing::Test {
protected:
    void begin(const Counts &counts)
    {
        sim.reset(); // interface names are unique
        sim = std::make_unique<GatewaySim>();
        for (uint32_t gateway = 0; gateway < 2; ++gateway) {
            for (uint32_t cls = 0; cls < 3; ++cls) {
                for (uint32_t n = 0; n < counts[gateway][cls]; ++n)
                    sim->user(cls, "u" + std::to_string(gateway * 100 + cls * 10 + n), {gateway});
            }
        }
        sim->run(60 * Second);
    }
    /// Measured from 3 to 13 s after a disturbance.
    void expectShares(const std::string &after)
    {
        sim->run(3 * Second);
        sim->measure(10 * Second);
        std::array<double, 6> had{}, weights{};
        for (const auto &u : sim->users) {
            const auto row = u.parties[0] * 3 + u.cls;
            had[row] += static_cast<double>(u.bytes);
            weights[row] += sim->config.classes[u.cls].weight;
        }
        const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (size_t n = 0; n < had.size(); ++n)
            EXPECT_NEAR(had[n] / sim->carried / (weights[n] / all), 1, 0.15)
                << "gateway " << n / 3 << ", class " << n % 3 << ", after " << after;
        sim->run(20 * Second);
    }

    std::unique_ptr<GatewaySim> sim;
};

/// If the static shares favour users of one gateway, nobody pays for it after the store's return: usage while the
/// gateways did not know of each other is not charged to any class or user.
TEST_F(ShareOfAClassAtAGateway, HoldsAfterAnOutage)
{
    for (const auto &counts : {Uneven, OneOfEach}) {
        begin(counts);
        for (const int outage : {12, 15, 18, 19}) {
            auto &server = sim->server;
            (outage % 2 ? server.refuses : server.there) = outage % 2; // the process has exited, or is stopped
            sim->run(outage * Second);
            EXPECT_EQ(sim->state(0), StoreState::Static);
            server.there = true;
            server.refuses = false;
            expectShares(std::to_string(outage) + " s");
            EXPECT_EQ(sim->state(0), StoreState::Together);
        }
    }
}

TEST_F(ShareOfAClassAtAGateway, HoldsAfterARestart)
{
    begin(Uneven);
    for (uint32_t n = 0; n < 2; ++n) {
        sim->kill(n);
        sim->run(5 * Second);
        sim->start(n);
        expectShares("gateway " + std::to_string(n) + " was away");
    }
}

TEST_F(ShareOfAClassAtAGateway, HoldsWhenUsersComeToTheOther)
{
    for (const auto &counts : {Uneven, OneOfEach}) {
        begin(counts);
        for (uint32_t n = 0; n < 2; ++n) {
            for (auto &u : sim->users)
                u.asks = u.parties[0] == n || u.cls == 1;
            sim->run(15 * Second);
            for (auto &u : sim->users)
                u.asks = true;
            expectShares("gold and bronze came to gateway " + std::to_string(1 - n));
        }
    }
}

} // namespace
} // namespace msfrs::test
