// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/session.h"

#include "support/audit.h"
#include "support/host.h"
#include "support/link_sim.h"
#include "support/plugins.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace msfrs {
namespace {

using namespace test;

constexpr int64_t Quantum = 10'000;

std::string Record(const size_t length)
{
    return std::string{23, 3, 3, static_cast<char>(length >> 8), static_cast<char>(length)} + std::string(length, 'x');
}

/// A connection and its holder: what the session does to them is noted.
struct Peer final : SessionHolder, ServerConnection {
    explicit Peer(SimClock &c): clock(c) {}

    msfrs_time now() const override { return clock.now(); }
    void granted() override { ++grants; }
    void expired() override { ++expiries; }
    void dropped(Refusal) override { ++drops; }
    void paused(const int64_t rest, const int64_t size) override
    {
        pauses.push_back(rest);
        least = size;
    }
    std::string host() const override { return "www.example.com"; }
    uint64_t id() const override { return 7; }

    bool open() const override { return isOpen; }
    bool plain() const override { return isPlain; }
    int64_t unread() const override { return waits; }
    PathSample path(msfrs_time) const override { return {}; }
    uint64_t key() const override { return 1; }
    msfrs_time roundTrip() const override { return 20 * Ms; }
    int64_t segment() const override { return 1448; }
    int64_t bufferedWindow(int64_t, int64_t) override { return buffered; }
    void setWindow(const int64_t bytes) override { windows.push_back(bytes); }
    void setLowWater(const int64_t bytes) override { lowWater = bytes; }
    bool readsAhead() const override { return ahead; }
    void cameAhead(const int64_t bytes, const int64_t size, msfrs_time) override
    {
        readAhead += bytes;
        least = size;
    }
    int64_t takeAhead() override { return ahead ? 0 : std::exchange(readAhead, 0); }

    SimClock &clock;
    int grants = 0, expiries = 0, drops = 0;
    std::vector<int64_t> pauses, windows;
    bool isOpen = true, isPlain = true, ahead = false;
    int64_t waits = 0, buffered = 65'535, readAhead = 0, lowWater = 1, least = 0;
    Session session{*this, *this};
};

class SessionTest : public ::testing::Test {
protected:
    SessionTest()
    {
        config.rate = 8e6;
        config.pluginDir = PluginDir();
        config.classes = {{"gold", 2}, {"bronze", 1}};
        config.quantum = Quantum;
        config.window.law = WindowLaw::Paper; // W+ stays 1: one is served, the others wait
        config.window.reserve = 0;
        config.window.growth = 1.001;
        config.arbiter = {"msf", {{"ahead", "0"}, {"lag", "0"}, {"favour", "0"}}};
        s = std::make_unique<RequestScheduler>(config, host.requests(), clock.now());
    }
    ~SessionTest() override
    {
        for (const auto &peer : peers)
            end(*peer);
        EXPECT_EQ(AuditLaws(*s), "");
    }

    Peer &hold(const std::string &user)
    {
        peers.push_back(std::make_unique<Peer>(clock));
        why = peers.back()->session.hold(*s, 0, user, clock.now());
        return *peers.back();
    }
    /// bytes come \returns whether it may read on
    bool read(Peer &peer, const int64_t bytes, const int64_t rest = -1)
    {
        peer.session.charge(*s, bytes, nullptr, clock.now());
        return peer.session.mayRead(*s, rest, rest, clock.now());
    }
    bool say(Peer &peer, const std::string &words) { return peer.session.maySend(*s, words, clock.now()); }
    void end(Peer &peer)
    {
        peer.session.finish(*s, clock.now());
        peer.session.end(*s, clock.now());
    }
    void pass(const msfrs_time time)
    {
        for (const auto until = clock.now() + time; clock.now() < until;)
            clock.set(std::min(until, s->tick(clock.now())));
    }

    RequestConfig config;
    Host host;
    SimClock clock{1000 * Second};
    std::unique_ptr<RequestScheduler> s;
    std::vector<std::unique_ptr<Peer>> peers;
    Refusal why = Refusal::None;
};

TEST_F(SessionTest, TheFirstGoesOnAndTheSecondIsHeldUntilItsTurn)
{
    auto &first = hold("a");
    EXPECT_FALSE(first.session.held());
    auto &second = hold("b");
    EXPECT_TRUE(second.session.held());
    end(first);
    EXPECT_FALSE(second.session.held());
    EXPECT_EQ(second.grants, 1);
}

TEST_F(SessionTest, ARefusedOneStaysHeldAndIsUnknown)
{
    config.maxQueued = 1;
    s->reconfigure(config, clock.now());
    hold("a");
    hold("b");
    auto &third = hold("c");
    EXPECT_EQ(why, Refusal::Total);
    EXPECT_TRUE(third.session.held());
    EXPECT_FALSE(third.session.request());
}

TEST_F(SessionTest, WhoWaitsForTooLongIsToldOnce)
{
    auto &first = hold("a"), &late = hold("b");
    for (int n = 0; n < 650 && late.expiries == 0; ++n) {
        read(first, 10, 1'000'000);
        pass(100 * Ms);
    }
    EXPECT_EQ(late.grants, 0);
    EXPECT_EQ(late.expiries, 1);
    EXPECT_TRUE(late.session.held());
}

TEST_F(SessionTest, PausesAfterItsQuantumWhileAnotherWaits)
{
    auto &first = hold("a"), &second = hold("b");
    EXPECT_TRUE(read(first, Quantum / 2, 50'000));
    EXPECT_FALSE(read(first, Quantum / 2, 45'000));
    EXPECT_EQ(first.pauses, std::vector<int64_t>{45'000});
    EXPECT_FALSE(second.session.held());
    EXPECT_FALSE(first.session.mayRead(*s, 45'000, 45'000, clock.now())) << "not before its turn";
    end(second);
    EXPECT_EQ(first.grants, 2);
    EXPECT_TRUE(first.session.mayRead(*s, 45'000, 45'000, clock.now()));
}

TEST_F(SessionTest, WhatIsReadAheadInAPauseIsChargedAfterIt)
{
    auto &first = hold("a"), &second = hold("b");
    first.session.mayRead(*s, -1, -1, clock.now());
    EXPECT_FALSE(read(first, Quantum));
    first.ahead = true;
    EXPECT_TRUE(first.session.free());
    EXPECT_TRUE(read(first, 3000));
    const auto charged = [&] { return s->trace(*first.session.request(), clock.now()).bytes; };
    EXPECT_EQ(charged(), Quantum);
    first.ahead = false;
    end(second);
    EXPECT_TRUE(first.session.mayRead(*s, -1, -1, clock.now()));
    EXPECT_EQ(charged(), Quantum + 3000);
}

TEST_F(SessionTest, WhatHasArrivedInAPauseNeedsNoTurn)
{
    auto &first = hold("a"), &second = hold("b");
    EXPECT_FALSE(read(first, Quantum, 45'000));
    first.session.arrived();
    EXPECT_TRUE(first.session.mayRead(*s, 45'000, 45'000, clock.now()));
    end(second);
    pass(1100 * Ms);
    EXPECT_EQ(s->window().outstanding, 0) << "a turn that comes late is given back";
    EXPECT_TRUE(read(first, 45'000, 0));
}

TEST_F(SessionTest, ReadsSeveralSegmentsAtOnceOnlyWhileOthersWait)
{
    auto &first = hold("a");
    EXPECT_TRUE(read(first, 1000, 50'000));
    EXPECT_EQ(first.lowWater, 1);
    hold("b");
    EXPECT_TRUE(read(first, 1000, 49'000));
    EXPECT_EQ(first.lowWater, 4096);
    first.session.checkBatch();
    first.session.checkBatch();
    EXPECT_EQ(first.lowWater, 1) << "the server has stalled";
}

TEST_F(SessionTest, ARecordOfATunnelIsReadSeveralSegmentsAtOnceToItsEnd)
{
    auto &tunnel = hold("a");
    hold("b");
    const auto reads = [&](const std::string &bytes) {
        tunnel.session.charge(*s, static_cast<int64_t>(bytes.size()), bytes.data(), clock.now());
        EXPECT_TRUE(tunnel.session.mayRead(*s, -1, -1, clock.now()));
        return tunnel.lowWater;
    };
    EXPECT_EQ(reads(Record(6000).substr(0, 1000)), 4096) << "the client cannot use part of a record";
    EXPECT_EQ(reads(std::string(5000, 'x')), 5);
    EXPECT_EQ(reads("xxxxx"), 1) << "the next record may be short";
    EXPECT_EQ(reads(Record(100) + Record(5000).substr(0, 500)), 4096);
}

TEST_F(SessionTest, AnOpaqueTunnelIsReadAsItComes)
{
    auto &tunnel = hold("a");
    hold("b");
    tunnel.session.charge(*s, 500, std::string(500, 'x').data(), clock.now());
    EXPECT_TRUE(tunnel.session.mayRead(*s, -1, -1, clock.now()));
    EXPECT_EQ(tunnel.lowWater, 1);
}

TEST_F(SessionTest, InAPauseTheRestOfARecordIsWorthReading)
{
    auto &tunnel = hold("a");
    hold("b");
    const auto record = Record(Quantum + 4000);
    tunnel.session.charge(*s, Quantum, record.data(), clock.now());
    EXPECT_FALSE(tunnel.session.mayRead(*s, -1, -1, clock.now()));
    EXPECT_EQ(tunnel.least, 4005);
    tunnel.ahead = true;
    tunnel.session.charge(*s, 4005, record.data() + Quantum, clock.now());
    EXPECT_EQ(tunnel.least, 1) << "the next record";
}

TEST_F(SessionTest, ReadsSegmentsAtOnceWhereTlsIsDecodedButNotTheLastRecord)
{
    auto &first = hold("a");
    hold("b");
    first.isPlain = false;
    const int64_t record = TlsRecords::Longest;
    EXPECT_TRUE(read(first, 1000, record + 4096));
    EXPECT_EQ(first.lowWater, 4096);
    EXPECT_TRUE(read(first, 4096, record));
    EXPECT_EQ(first.lowWater, 1) << "Squid may have read most of it";
}

TEST_F(SessionTest, TheWindowIsLookedAtOnceAQuantumAndWithinItsScale)
{
    auto &first = hold("a");
    first.session.mayRead(*s, 900'000, 900'000, clock.now());
    EXPECT_TRUE(first.windows.empty()) << "before anything was read";
    EXPECT_TRUE(read(first, 1000, 899'000));
    ASSERT_EQ(first.windows.size(), 1U);
    EXPECT_LE(first.windows.front(), 65'535) << "that of a buffer which needs no scale";
    first.buffered = 200'000;
    EXPECT_TRUE(read(first, Quantum - 1, 889'001));
    EXPECT_EQ(first.windows.size(), 1U);
    EXPECT_TRUE(read(first, 1, 889'000));
    ASSERT_EQ(first.windows.size(), 2U);
    EXPECT_GT(first.windows.back(), 65'535);
}

TEST_F(SessionTest, TheWindowIsLookedAtWhileARecordIsIncomplete)
{
    auto &first = hold("a");
    first.isPlain = false;
    first.session.mayRead(*s, -1, -1, clock.now());
    EXPECT_TRUE(first.windows.empty());
    first.session.mayRead(*s, -1, -1, clock.now());
    EXPECT_EQ(first.windows.size(), 1U) << "TLS has read part of it, and may give a whole quantum at the end";
}

TEST_F(SessionTest, ABufferOfSomebodyElseIsLeftAlone)
{
    auto &first = hold("a");
    first.buffered = 0;
    EXPECT_TRUE(read(first, 1000, 899'000));
    EXPECT_TRUE(first.windows.empty());
}

TEST_F(SessionTest, ASilentServerGivesItsPlaceAndTheNextWordsNeedATurn)
{
    auto &tunnel = hold("a"), &second = hold("b");
    EXPECT_TRUE(read(tunnel, 500));
    pass(700 * Ms);
    EXPECT_FALSE(second.session.held());
    EXPECT_FALSE(say(tunnel, "more"));
    EXPECT_FALSE(say(tunnel, "and more")) << "while it waits";
    EXPECT_EQ(tunnel.grants, 1) << "of hold()";
    end(second);
    EXPECT_EQ(tunnel.grants, 2);
    EXPECT_TRUE(say(tunnel, "and more"));
}

TEST_F(SessionTest, NextWordsGoOnAtOnceWhereNobodyIsServed)
{
    auto &tunnel = hold("a");
    EXPECT_TRUE(read(tunnel, 500));
    pass(2 * Second);
    EXPECT_EQ(s->window().outstanding, 0);
    EXPECT_TRUE(say(tunnel, "more"));
    EXPECT_EQ(s->window().outstanding, 1);
}

TEST_F(SessionTest, AServerIsNotSilentWhileItsWordsWaitForTheirClient)
{
    auto &tunnel = hold("a"), &second = hold("b");
    EXPECT_TRUE(read(tunnel, 500));
    tunnel.waits = 300;
    pass(700 * Ms);
    EXPECT_TRUE(second.session.held());
    pass(1000 * Ms); // but its client is not waited for longer than that
    EXPECT_FALSE(second.session.held());
}

TEST_F(SessionTest, AfterReleaseEverythingGoesOn)
{
    auto &first = hold("a"), &second = hold("b");
    EXPECT_FALSE(read(first, Quantum, 45'000));
    s->done(first.session.request(), clock.now()); // as if the scheduler had ended
    first.session.release();
    EXPECT_TRUE(first.session.free());
    EXPECT_TRUE(say(first, "more"));
    EXPECT_TRUE(first.session.mayRead(*s, 45'000, 45'000, clock.now()));
    EXPECT_FALSE(second.session.held());
}

TEST_F(SessionTest, AnAdoptedOneIsServedAndReported)
{
    peers.push_back(std::make_unique<Peer>(clock));
    peers.back()->session.adopt(*s, 0, "a", clock.now());
    EXPECT_EQ(s->classes(clock.now()).front().asked, 1U);
    hold("b");
    const auto held = s->held(1, clock.now());
    ASSERT_EQ(held.size(), 1U);
    EXPECT_EQ(held.front().host, "www.example.com");
    EXPECT_EQ(held.front().id, 7U);
}

} // namespace
} // namespace msfrs
