// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/sharing.h"

#include "fake_store.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>

namespace msfrs::test {
namespace {

using namespace share;

constexpr int64_t Ms = 1'000'000, S = 1000 * Ms;
constexpr double Rate = 8e6;

struct FakeBoard final : Board {
    Sums local(int64_t) override { return sums; }
    void show(const size_t other, const Sums &s, const bool leads, const int64_t now) override
    {
        shown[other] = {s, leads, now};
    }
    void hide(const size_t other) override { shown.erase(other); }

    struct Shown {
        Sums sums;
        bool leads;
        int64_t at;
    };
    Sums sums;
    std::map<size_t, Shown> shown;
};

struct Gateway {
    Gateway(Server &server, const std::string &name, const std::vector<std::string> &others, const double share,
            const uint64_t life, const int64_t now):
        store(server, Names(name, others))
    {
        board.sums.rate = Rate;
        board.sums.limit = 8;
        SharingParams params;
        params.gateway = name;
        params.others = others;
        params.share = share;
        sharing = std::make_unique<Sharing>(params, board, store, [this](const std::string &t) { said.push_back(t); },
                                            life, now);
    }
    static std::vector<std::string> Names(const std::string &name, std::vector<std::string> others)
    {
        others.insert(others.begin(), name);
        return others;
    }
    void step(const int64_t now)
    {
        store.step(now);
        if (now >= due)
            due = sharing->tick(now);
    }
    const Sums &seen(const size_t other = 0) { return board.shown.at(other).sums; }

    FakeStore store;
    FakeBoard board;
    std::vector<std::string> said;
    std::unique_ptr<Sharing> sharing;
    int64_t due = 0;
};

class ShareGateways : public testing::Test {
protected:
    void run(const int64_t time)
    {
        for (const auto end = now + time; now < end; now += Ms) {
            a.step(now);
            b.step(now);
        }
    }
    static void Wants(Gateway &g, const double demand, const uint64_t places, const uint64_t waiting)
    {
        g.board.sums.demand = demand;
        g.board.sums.places = places;
        g.board.sums.waiting = waiting;
    }

    int64_t now = S;
    Server server;
    Gateway a{server, "a", {"b"}, 0.75, 100, S}, b{server, "b", {"a"}, 0.25, 200, S};
};

TEST_F(ShareGateways, OneSeesTheOtherWithin300Milliseconds)
{
    Wants(a, 1, 4, 0);
    run(S);
    EXPECT_EQ(b.seen().places, 4u);
    const auto before = b.seen().received;
    Wants(a, 2, 3, 0);
    a.board.sums.received = 5000;
    a.board.sums.classes = {{77, 900, 2}};
    a.board.sums.users = {{55, 1000, 1, 1}};
    run(300 * Ms);
    EXPECT_EQ(b.seen().places, 3u);
    EXPECT_EQ(b.seen().demand, 2);
    EXPECT_EQ(b.seen().received - before, 5000u);
    EXPECT_EQ(b.seen().classes.at(0).served, 900u);
    EXPECT_EQ(b.seen().users.at(0).key, 55u);
    EXPECT_EQ(b.said, (std::vector<std::string>{"store: answers", "gateway a: is present"}));
}

TEST_F(ShareGateways, TheFirstNameLeads)
{
    run(S);
    EXPECT_TRUE(b.board.shown.at(0).leads);
    EXPECT_FALSE(a.board.shown.at(0).leads);
}

/// b has had the whole link; as soon as a waits, each sees the other with its fair share.
TEST_F(ShareGateways, PlacesAreSharedByDemandWhileBothWait)
{
    Wants(a, 3, 0, 0);
    Wants(b, 1, 8, 100);
    run(S);
    EXPECT_EQ(b.seen().places, 0u);
    Wants(a, 3, 0, 100);
    run(S);
    EXPECT_EQ(a.seen().places, 2u);
    EXPECT_EQ(b.seen().places, 6u);
}

TEST_F(ShareGateways, FractionsOfPlacesHoldOnAverage)
{
    Wants(a, 1, 4, 100);
    Wants(b, 1, 4, 100);
    a.board.sums.limit = b.board.sums.limit = 7;
    run(S);
    double sum = 0;
    for (int n = 0; n < 100; ++n) {
        run(100 * Ms);
        sum += static_cast<double>(a.seen().places);
    }
    EXPECT_NEAR(sum / 100, 3.5, 0.1);
}

TEST_F(ShareGateways, ReceivedBytesGrowAsTheOthersDo)
{
    uint64_t before = 0;
    for (int n = 0; n < 50; ++n) {
        b.board.sums.received += 50'000;
        run(100 * Ms);
        EXPECT_GE(a.seen().received, before);
        before = a.seen().received;
    }
    EXPECT_NEAR(static_cast<double>(before), 2.5e6, 2e5);
}

/// No reply: a continues with b's last state, then with its static share, and logs each change once.
TEST_F(ShareGateways, WithoutTheStore)
{
    Wants(a, 1, 4, 100);
    Wants(b, 1, 4, 100);
    for (int n = 0; n < 20; ++n) {
        b.board.sums.received += 50'000;
        run(100 * Ms);
    }
    const auto before = a.seen().received;
    server.refuses = true;
    run(1500 * Ms);
    EXPECT_EQ(a.seen().places, 4u);
    EXPECT_EQ(a.seen().waiting, 100u);
    EXPECT_NEAR(static_cast<double>(a.seen().received - before), 0.5e6 * 1.5, 2e5); // it continues at its last rate
    run(3 * S);
    EXPECT_EQ(a.sharing->report(now).state, StoreState::Static);
    EXPECT_EQ(a.seen().places, 2u); // a has 75 % of 8
    EXPECT_EQ(b.seen().places, 6u);
    EXPECT_EQ(a.seen().waiting, 0u);
    EXPECT_FALSE(b.board.shown.at(0).leads); // b measures on its own
    const auto at = a.seen().received;
    run(10 * S);
    EXPECT_NEAR(static_cast<double>(a.seen().received - at), 10 * Rate / 8 * 0.25, 2e5);
    EXPECT_GE(a.board.shown.at(0).at, now - 200 * Ms); // and is live
    EXPECT_EQ(a.said, (std::vector<std::string>{
        "store: answers", "gateway b: is present",
        "store: cannot connect: Connection refused; the last shares hold for 2 s",
        "store: no answer for 2 s (cannot connect: Connection refused); this gateway keeps to its static share of 75 % "
        "of the link"}));

    server.refuses = false;
    const auto back = a.seen().received;
    run(500 * Ms);
    EXPECT_EQ(a.sharing->report(now).state, StoreState::Together);
    EXPECT_EQ(a.seen().places, 4u);
    EXPECT_LE(a.seen().received - back, 200'000u); // not the bytes of the outage at once
    ASSERT_EQ(a.said.size(), 5u);
    EXPECT_EQ(a.said.back(), "store: answers, after 14.7 s");
}

/// Bytes charged to a during an outage do not make it look ahead of b.
TEST_F(ShareGateways, BytesOfAnOutageAreNotHeldAgainstUs)
{
    Wants(a, 1, 4, 100);
    Wants(b, 1, 4, 100);
    a.board.sums.classes = b.board.sums.classes = {{77, 0, 1}};
    run(S);
    server.refuses = true;
    for (int n = 0; n < 15; ++n) {
        a.board.sums.classes[0].served += 100'000;
        run(100 * Ms);
    }
    EXPECT_EQ(a.sharing->report(now).state, StoreState::Last);
    EXPECT_EQ(a.seen().places, 4u);
}

/// Before the store is known to be silent: otherwise a link that looks half empty would get a wider window.
TEST_F(ShareGateways, BytesGoOnWhileNewsAreOverdue)
{
    Wants(a, 1, 4, 100);
    Wants(b, 1, 4, 100);
    a.board.sums.classes = b.board.sums.classes = {{77, 0, 1}};
    const auto carry = [this](const int tenths) {
        for (int n = 0; n < tenths; ++n) {
            b.board.sums.received += 50'000;
            a.board.sums.classes[0].served += 50'000;
            b.board.sums.classes[0].served += 50'000;
            run(100 * Ms);
        }
    };
    carry(40);
    const auto before = a.seen().received;
    server.there = false;
    carry(13);
    EXPECT_EQ(a.sharing->report(now).state, StoreState::Together);
    EXPECT_NEAR(static_cast<double>(a.seen().received - before), 13 * 50'000, 100'000);
    EXPECT_EQ(a.seen().places, 4u); // our own bytes meanwhile are not held against us either
    server.there = true;
    carry(20);
    EXPECT_NEAR(static_cast<double>(a.seen().received - before), 33 * 50'000, 150'000); // and none is counted twice
    EXPECT_NEAR(static_cast<double>(a.seen().places), 4, 1);
}

TEST_F(ShareGateways, AStoreThatDoesNotAnswerIsGivenUpAndAskedAgain)
{
    run(S);
    server.there = false;
    run(5 * S);
    const auto report = a.sharing->report(now);
    EXPECT_EQ(report.state, StoreState::Static);
    EXPECT_EQ(report.failure, "no answer within 1.5 s");
    EXPECT_GE(report.failures, 2u);
    server.there = true;
    run(2 * S);
    EXPECT_EQ(a.sharing->report(now).state, StoreState::Together);
    EXPECT_EQ(a.said.size(), 5u);
}

TEST_F(ShareGateways, SlowButAnswering)
{
    server.delay = 200 * Ms;
    Wants(a, 1, 4, 0);
    run(3 * S);
    EXPECT_EQ(b.sharing->report(now).state, StoreState::Together);
    Wants(a, 1, 5, 0);
    run(S);
    EXPECT_EQ(b.seen().places, 5u);
    EXPECT_EQ(b.said.size(), 2u);
}

TEST_F(ShareGateways, AGatewayThatEndsLeavesItsShare)
{
    run(3 * S);
    for (const auto end = now + 2500 * Ms; now < end; now += Ms)
        a.step(now); // b has left the link
    EXPECT_EQ(a.board.shown.count(0), 0u);
    EXPECT_EQ(a.said.back(), "gateway b: is gone: no message for 2 s");
    run(S);
    EXPECT_EQ(a.board.shown.count(0), 1u);
    EXPECT_EQ(a.said.back(), "gateway b: is present");
    // It left before the outage: its share stays with the others while the last shares hold.
    for (const auto end = now + 2500 * Ms; now < end; now += Ms)
        a.step(now);
    server.refuses = true;
    for (const auto end = now + S; now < end; now += Ms)
        a.step(now);
    EXPECT_EQ(a.sharing->report(now).state, StoreState::Last);
    EXPECT_EQ(a.board.shown.count(0), 0u);
}

TEST_F(ShareGateways, BeforeAnythingIsHeardTheStaticShareHolds)
{
    server.there = false;
    run(200 * Ms);
    EXPECT_EQ(a.seen().places, 2u);
    EXPECT_TRUE(a.said.empty());
}

TEST_F(ShareGateways, WhatIsNoMessageIsIgnoredAndSaidOnce)
{
    run(3 * S);
    for (const auto *const text : {"garbage", "MSFRSGW\x03 of the future"}) {
        for (const auto end = now + 4 * S; now < end; now += Ms) {
            server.left["b"] = {text, now};
            a.step(now);
        }
        EXPECT_EQ(a.board.shown.count(0), 0u);
    }
    EXPECT_EQ(a.said, (std::vector<std::string>{
        "store: answers", "gateway b: is present",
        "gateway b: its message is ignored: it is not a message of msfrs-share",
        "gateway b: its message is ignored: it has version 3, not 2: another msfrs-share wrote it"}));
    EXPECT_GT(a.sharing->report(now).others.at(0).refused, 10u);
    run(S);
    EXPECT_EQ(a.said.back(), "gateway b: is present");
}

/// Whatever demand or bytes another gateway claims, its fair share is not more than its part.
TEST_F(ShareGateways, AbsurdClaimsTakeNoMoreThanAShare)
{
    Wants(a, 1, 4, 100);
    run(S);
    const auto before = a.seen().received;
    Wants(b, 1, MostPlaces, MostWaiting);
    b.board.sums.received += uint64_t{1} << 60;
    run(S);
    EXPECT_EQ(a.seen().places, 4u);
    EXPECT_LT(a.seen().received - before, 1000u);
}

TEST_F(ShareGateways, ARestartedGatewayGoesOn)
{
    b.board.sums.received = 1'000'000'000;
    run(S);
    const auto before = a.seen().received;
    b.board.sums.received = 0;
    b.store.abandon();
    b.sharing = std::make_unique<Sharing>(SharingParams{"b", "store", {"a"}, 0.25, 100 * Ms}, b.board, b.store,
                                          [](const std::string &) {}, 201, now);
    b.due = 0;
    run(S);
    EXPECT_EQ(a.seen().received, before);
    b.board.sums.received = 1000;
    run(S);
    EXPECT_EQ(a.seen().received, before + 1000);
}

TEST_F(ShareGateways, TwoOfOneNameAreTold)
{
    Gateway other(server, "a", {"b"}, 0.5, 300, S);
    for (const auto end = now + 5 * S; now < end; now += Ms) {
        a.step(now);
        other.step(now);
    }
    EXPECT_NE(std::find(a.said.begin(), a.said.end(),
                        "gateway a: another msfrs-share uses this name; give each gateway its own"),
              a.said.end());
}

/// After a pause of ten seconds, the bytes that the others carried meanwhile are not extrapolated.
TEST_F(ShareGateways, AfterAStandstill)
{
    Wants(b, 1, 4, 0);
    run(3 * S);
    server.refuses = true;
    run(3 * S);
    const auto before = a.seen().received;
    now += 10 * S;
    run(200 * Ms);
    EXPECT_LT(a.seen().received - before, 100'000u);
}

} // namespace
} // namespace msfrs::test
