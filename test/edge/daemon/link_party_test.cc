// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-edge as a party of a ledger in which tests play Squid: to which users packets belong, what rate they get, and
/// what the edge writes to the ledger.
#include "edge/daemon/packets.h"

#include "ledger/report.h"
#include "ledger/users.h"
#include "quota/quotas.h"
#include "support/audit.h"

#include <cmath>
#include <gtest/gtest.h>
#include <list>

namespace msfrs::test {
namespace {

using namespace edge;
using ledger::ClassKey, ledger::UserKey;

constexpr double Rate = 12e6; ///< C: a packet of 1500 bytes takes a millisecond
constexpr double Held = 0.985 * Rate;     ///< the rate for all parties while Squid's requests wait for slots
constexpr double Payload = 1448.0 / 1514; ///< payload that Squid reads from a frame
const std::string Downlink = "link rate=100Mbit\nqueue number=0\nscheduler msf\nlimit 60\ninside 198.19.0.0/16\n"
                             "segment /no-such-memory\nmark shift=24\n";

TEST(EdgeRate, IsMaxMinByDemand)
{
    EXPECT_DOUBLE_EQ(EdgeRate(100, {}, 1, 0), 100);
    EXPECT_DOUBLE_EQ(EdgeRate(100, {{3, 60, true}}, 1, 0), 25) << "both want more";
    EXPECT_DOUBLE_EQ(EdgeRate(100, {{3, 20, false}}, 1, 0), 73) << "the other may grow by a quarter, and by 2 %";
    EXPECT_DOUBLE_EQ(EdgeRate(100, {{3, 90, false}}, 1, 0), 25) << "and may be beyond its share then";
    EXPECT_DOUBLE_EQ(EdgeRate(100, {{3, 0, true}, {1, 0, true}}, 4, 0), 50);
    EXPECT_DOUBLE_EQ(EdgeRate(100, {{3, 60, true}}, 1, 16), 20 + 20) << "who wants no more has it first";
    EXPECT_DOUBLE_EQ(EdgeRate(100, {{3, 60, true}}, 1, 1000), 100);
    EXPECT_DOUBLE_EQ(EdgeRate(100, {{3, 60, true}}, 0, 0), 0);
}

/// Squid with one worker, and the edge beside it.
class LinkPartyTest : public ::testing::Test {
protected:
    LinkPartyTest(): edge(withClasses())
    {
        ledger::FormatSegment(segment.get());
        ledger::TellClasses(segment->directory, {{"gold", 4}, {"bronze", 1}}, 1);
        edge.now = 1000 * Second;
        const auto log = [](int, const std::string &) {};
        squid = std::make_unique<SharedLedger>(*segment, PartyParams{}, log, edge.now);
        squid->served(0, "gold", 0);
        squid->served(1, "bronze", 0);
        settleSquid();
        edge.path.join(std::make_unique<LinkParty>(*segment, log, edge.now), edge.now);
    }
    ~LinkPartyTest() override { edge.path.leave(); }

    static std::shared_ptr<Config> withClasses()
    {
        const ledger::ClassList told{1, {{"gold", 4}, {"bronze", 1}}, 1};
        return std::make_shared<Config>(PathUnderTest::Parse(Downlink)->withClasses(told));
    }
    /// The worker's update, ten times a second.
    void settleSquid()
    {
        squid->measured({limit, Rate, 0.9}, {0, own, true});
        for (auto &u : users)
            u.elsewhere += squid->exchange(u.number, u.bytes, 0, u.items);
        squid->look(edge.now);
        squid->say({3, waits, waits, 0, 16384, 3 * 16384}, edge.now);
        squid->settle(edge.now);
        squid->look(edge.now + 2 * Ms);
        answers.answer(edge.now, [](const ledger::IpBits &address) {
            const auto host = address.low & 0xff;
            const std::string cls = host < 100 ? "gold" : "bronze";
            return ledger::Owner{ClassKey(cls), UserKey(cls, std::to_string(host))};
        });
    }
    struct SquidUser {
        Ledger::User number;
        uint64_t bytes = 0;
        uint32_t items = 1;
        int64_t elsewhere = 0;
    };
    SquidUser &atSquid(const std::string &cls, const std::string &name, const double weight)
    {
        return users.emplace_back(SquidUser{squid->enter(cls, name, weight, 0, 1)});
    }
    /// Advances the time while each host keeps 20 packets queued. \returns bytes of each host
    std::map<uint8_t, double> keepBusy(const std::vector<uint8_t> &hosts, const msfrs_time time)
    {
        std::map<uint8_t, double> had;
        for (const auto until = edge.now + time; edge.now < until;) {
            for (const auto host : hosts) {
                for (; open[host] < 20; ++open[host])
                    hostOf[edge.arrive({1, host})] = host;
            }
            edge.run(edge.now + Ms);
            for (; seen < edge.verdicts.all.size(); ++seen) {
                const auto &v = edge.verdicts.all[seen];
                const auto host = hostOf[v.id];
                --open[host];
                had[host] += v.pass ? 1500 : 0;
            }
            if (edge.now >= nextSquid) {
                nextSquid = edge.now + Ledger::Every;
                everyTenth();
                settleSquid();
            }
        }
        return had;
    }
    double rate() const { return static_cast<double>(edge.path.party()->rate()); }
    const ledger::Slot &slot() const { return segment->slots[edge.path.party()->slot()]; }

    const std::unique_ptr<ledger::Segment> segment = std::make_unique<ledger::Segment>();
    ledger::Answers answers{segment->directory};
    PathUnderTest edge;
    std::unique_ptr<SharedLedger> squid;
    std::list<SquidUser> users;
    double own = 0, limit = 8; ///< W+
    uint64_t waits = 0;
    std::function<void()> everyTenth = [] {};
    std::map<uint8_t, uint32_t> open;
    std::map<uint32_t, uint8_t> hostOf;
    size_t seen = 0;
    msfrs_time nextSquid = 0;
};

TEST_F(LinkPartyTest, HasNearlyAllOfALinkThatNobodyElseWants)
{
    const auto had = keepBusy({1}, 2 * Second);
    EXPECT_NEAR(had.at(1) * 8 / 2, 0.97 * 0.98 * Rate, 0.02 * Rate);
}

TEST_F(LinkPartyTest, ClassesAndUsersAreSquids)
{
    keepBusy({1, 2, 101}, Second); // the first packets arrive before the edge knows its share
    auto had = keepBusy({1, 2, 101}, 4 * Second);
    EXPECT_NEAR(had[1] / had[101], 4, 0.2) << "a weight is each user's";
    EXPECT_NEAR(had[2] / had[101], 4, 0.2);
    const auto entry = ledger::Find(segment->users, UserKey("gold", "1"));
    ASSERT_NE(entry, ledger::NoEntry);
    EXPECT_GT(ledger::ColumnBytes(segment->users[entry].columns[edge.path.party()->slot()]), 1'000'000u);
}

TEST_F(LinkPartyTest, AUserWhomSquidHasNotNamedYetIsCalledAsSquidWill)
{
    Config config = *withClasses();
    config.flow.inside = {{Family::V6, {{0x20010db8ull << 32, 0}, {0x20010db8ffffffffull, ~0ull}}},
                          {Family::V4, {{0, 0xc6130000}, {0, 0xc613ffff}}}};
    LinkParty party(*segment, [](int, const std::string &) {}, edge.now);
    const auto userOf = [&](const Family family, const Address &destination) {
        Traits t;
        t.readable = true;
        t.key.family = family;
        t.key.destination = destination;
        return party.ownerOf(t, config, edge.now).user;
    };
    EXPECT_EQ(userOf(Family::V4, {0, 0xc6130005}), UserKey("bronze", "198.19.0.5"));
    EXPECT_EQ(userOf(Family::V6, {0x20010db800000007, 5}), UserKey("bronze", "2001:db8:0:7::/64"));
    EXPECT_EQ(userOf(Family::V6, {0x20010db800000007, 6}), UserKey("bronze", "2001:db8:0:7::/64"));
    config.flow.prefix6 = 128;
    EXPECT_EQ(userOf(Family::V6, {0x20010db800000007, 7}), UserKey("bronze", "2001:db8:0:7::7"));
}

TEST_F(LinkPartyTest, BothHaveTheirShareWhileBothWant)
{
    waits = 5;
    atSquid("gold", "9", 4);
    atSquid("bronze", "109", 1);
    keepBusy({101}, Second);
    EXPECT_NEAR(rate(), Held / 6, 1);
    EXPECT_NEAR(ledger::Real(slot().demand), 1, 1e-9);
    auto had = keepBusy({101}, 2 * Second);
    EXPECT_NEAR(had[101] * 8 / 2, rate(), 0.01 * Rate);
    keepBusy({101, 1}, Second);
    EXPECT_NEAR(rate(), Held * 5 / 10, 1);
    waits = 0; // Squid's users have no further requests
    for (auto &u : users)
        u.items = 0;
    keepBusy({101, 1}, Second);
    EXPECT_GT(rate(), 0.9 * Rate);
}

TEST_F(LinkPartyTest, AUserOfBothHasOneAccount)
{
    // Host 1 has half of Squid's bytes, host 2 has only packets; both are gold.
    waits = 5;
    auto &both = atSquid("gold", "1", 4);
    both.items = 3;
    keepBusy({1, 2}, Second);
    EXPECT_NEAR(ledger::Real(slot().demand), 4 + 4.0 / 4, 1e-9) << "the user's weight is where its requests are";
    double squids = 0;
    everyTenth = [&] { // Squid uses the rest of the link
        const double bytes = (Held - rate()) / 8 * 0.1; // on the link
        both.bytes += static_cast<uint64_t>(bytes * Payload);
        own += bytes * Payload;
        squids += bytes;
    };
    keepBusy({1, 2}, 2 * Second);
    squids = 0;
    auto had = keepBusy({1, 2}, 10 * Second);
    EXPECT_NEAR((had[1] + squids) / had[2], 1, 0.01) << "in bytes of the link";
    EXPECT_NEAR(static_cast<double>(both.elsewhere), had[1] * 1.3, had[1] * 0.3) << "and Squid knows what it has here";
}

TEST_F(LinkPartyTest, PlacesOfTheWindowAreHeldForWhatPasses)
{
    waits = 5;
    atSquid("gold", "9", 1);
    keepBusy({101}, 3 * Second);
    double held = 0;
    everyTenth = [&] { held += static_cast<double>(slot().places) / 10; };
    keepBusy({101}, Second);
    EXPECT_NEAR(held, 4, 1e-9) << "half of 98.5 % of W+, which is 8: more than a quarter of a place is one";
    everyTenth = [] {};
    EXPECT_EQ(squid->look(edge.now + 10 * Ms).places, slot().places);
    EXPECT_EQ(squid->look(edge.now + 10 * Ms).waiting, 0u) << "nobody waits here for a place";
    EXPECT_TRUE(squid->turn(false));
    keepBusy({}, 3 * Second);
    EXPECT_EQ(slot().places, 0u);
    EXPECT_EQ(ledger::Real(slot().demand), 0);
}

TEST_F(LinkPartyTest, OfFewPlacesPartsAreHeldInTurn)
{
    waits = 5;
    limit = 1.5;
    atSquid("gold", "9", 1);
    keepBusy({101}, 3 * Second);
    double held = 0;
    everyTenth = [&] { held += static_cast<double>(slot().places) / 40; };
    keepBusy({101}, 4 * Second);
    EXPECT_NEAR(held, 0.985 * 1.5 / 2, 0.05) << "or nobody else could have one";
}

TEST_F(LinkPartyTest, WhatIsLostHereHasUsedTheLink)
{
    waits = 5;
    atSquid("bronze", "109", 1);
    for (int n = 0; n < 3000; ++n) { // 10 % more than its share, which is dropped in the end
        edge.arrive({1, 101});
        edge.run(edge.now + static_cast<msfrs_time>(12e12 / (1.1 * Held / 2)));
        if (n % 50 == 0)
            settleSquid();
    }
    EXPECT_LT(rate(), 0.95 * Held / 2);
    EXPECT_GT(rate(), 0.8 * Held / 2);
}

TEST_F(LinkPartyTest, WhoWantsNoMoreIsNotHeldUpAndTakesNoShare)
{
    waits = 5;
    atSquid("gold", "9", 4);
    for (int n = 0; n < 100; ++n) { // a packet each 20 ms: 0.6 Mbit/s
        edge.arrive({1, 101});
        edge.run(edge.now + 20 * Ms);
        if (n % 5 == 0)
            settleSquid();
    }
    EXPECT_EQ(edge.verdicts.passed().size(), 100u);
    EXPECT_LT(edge.total().waits.quantile(0.99), 0.005);
    EXPECT_EQ(ledger::Real(slot().demand), 0);
}

TEST_F(LinkPartyTest, AFloodIsHeldToItsShareAndChargedAsItComes)
{
    waits = 5;
    auto &gold = atSquid("gold", "101", 4); // the flooded user has requests, too
    gold.items = 1;
    atSquid("bronze", "109", 1);
    keepBusy({1}, Second);
    const auto before = edge.total().passed.bytes;
    for (int n = 0; n < 4000; ++n) { // 24 Mbit/s, twice the link's rate
        edge.arrive({1, 101, static_cast<uint16_t>(n % 30)});
        edge.run(edge.now + Ms / 2);
        if (n % 200 == 0)
            settleSquid();
    }
    const double passed = static_cast<double>(edge.total().passed.bytes - before) * 8 / 2;
    EXPECT_LT(passed, 0.6 * Rate);
    EXPECT_GT(segment->slots[edge.path.party()->slot()].received, 4000u * 1500u);
    const auto entry = ledger::Find(segment->users, UserKey("bronze", "101"));
    ASSERT_NE(entry, ledger::NoEntry);
    EXPECT_GT(ledger::ColumnBytes(segment->users[entry].columns[edge.path.party()->slot()]), 4000u * 1500u * 9 / 10);
}

TEST_F(LinkPartyTest, WhatAConnectionBeginsWithDoesNotWaitBehindItsUsersDownloads)
{
    keepBusy({1, 101}, 2 * Second);
    const auto before = edge.verdicts.all.size();
    const auto opens = edge.arrive({1, 1, 443, 80, 17, 0, 0, 0x10, 200});
    for (int n = 0; n < 5; ++n)
        edge.arrive({1, 1});
    edge.run(edge.now + Second);
    std::vector<uint32_t> ofTheUser;
    for (size_t n = before; n < edge.verdicts.all.size(); ++n) {
        const auto id = edge.verdicts.all[n].id;
        if (id >= opens || hostOf[id] == 1)
            ofTheUser.push_back(id);
    }
    ASSERT_GT(ofTheUser.size(), 20u);
    EXPECT_EQ(ofTheUser[0], opens);
    EXPECT_TRUE(std::is_sorted(ofTheUser.begin() + 1, ofTheUser.end())) << "those of a connection keep their order";
    EXPECT_EQ(AuditLaws(edge.path.schedule().engine()), "");
}

/// The whole first window is in the bottleneck queue before its first byte arrives here.
TEST_F(LinkPartyTest, AConnectionThatBeginsWithTooMuchHearsOfItAtOnce)
{
    waits = 5;
    atSquid("bronze", "109", 99); // its share is a hundredth
    keepBusy({101}, 2 * Second);
    edge.run(edge.now + 20 * Second);
    const auto begin = [this](const uint8_t ecn) {
        const auto before = edge.verdicts.all.size();
        const auto lost = edge.verdicts.dropped();
        for (int n = 0; n < 32; ++n)
            edge.arrive({1, 101, 443, 2000, 17, 0, ecn, 0x10});
        settleSquid();
        edge.run(edge.now + Second);
        const auto &all = edge.verdicts.all;
        const auto marked = std::count_if(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(),
                                          [](const GivenVerdict &v) { return v.mark.has_value(); });
        const auto early = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(),
                                        [](const GivenVerdict &v) { return !v.pass || v.mark; });
        EXPECT_LE(early - all.begin() - static_cast<std::ptrdiff_t>(before), 2) << "of the first";
        for (int n = 0; n < 60; ++n) {
            settleSquid();
            edge.run(edge.now + Second);
        }
        return std::pair<size_t, size_t>(edge.verdicts.dropped() - lost, marked);
    };
    EXPECT_EQ(begin(0), (std::pair<size_t, size_t>(1, 0)));
    EXPECT_EQ(begin(1), (std::pair<size_t, size_t>(0, 1))) << "with ECN it loses nothing";
    EXPECT_EQ(AuditLaws(edge.path.schedule().engine()), "");
}

TEST_F(LinkPartyTest, AShortAnswerLosesNothing)
{
    waits = 5;
    atSquid("bronze", "109", 99);
    keepBusy({101}, 2 * Second);
    edge.run(edge.now + 20 * Second);
    const auto before = edge.verdicts.dropped();
    for (int n = 0; n < 10; ++n)
        edge.arrive({1, 101, 443, 2000});
    edge.run(edge.now + 20 * Second);
    EXPECT_EQ(edge.verdicts.dropped(), before);
}

TEST_F(LinkPartyTest, WithoutSquidTheConfigurationsRateHolds)
{
    keepBusy({1}, Second);
    EXPECT_GT(rate(), 0);
    squid.reset();
    edge.run(edge.now + 2 * Second);
    EXPECT_EQ(edge.path.party()->rate(), 0);
    const auto before = edge.total().passed.bytes;
    for (int n = 0; n < 55; ++n)
        edge.arrive({1, 1});
    edge.run(edge.now + 5 * Ms);
    EXPECT_NEAR(static_cast<double>(edge.total().passed.bytes - before) * 8 / 0.005, 100e6, 3e6);
}

TEST_F(LinkPartyTest, WhoHasLostItsSlotLeaves)
{
    keepBusy({1}, Second);
    const ledger::OwnSlot other(*segment, edge.path.party()->slot(), ledger::Kind::Edge, edge.now);
    edge.run(edge.now + Second);
    EXPECT_EQ(edge.path.party(), nullptr);
    EXPECT_TRUE(other.held());
    edge.arrive({1, 1});
}

TEST_F(LinkPartyTest, AReloadKeepsWhatWaitsAndTheShare)
{
    waits = 5;
    atSquid("gold", "9", 4);
    keepBusy({1, 101}, Second);
    const auto queued = edge.total().queued.packets;
    EXPECT_GT(queued, 10u);
    Host host;
    edge.path.replace(std::make_unique<Schedule>(withClasses(), host.engine()), edge.now);
    EXPECT_NEAR(static_cast<double>(edge.total().queued.packets), static_cast<double>(queued), 1);
    auto had = keepBusy({1, 101}, 4 * Second);
    EXPECT_NEAR(had[1] / had[101], 4, 0.2);
    EXPECT_EQ(AuditLaws(edge.path.schedule().engine()), "");
}

/// A user who has exceeded a quota is moved to the class that Squid states, with the packets that wait elsewhere.
TEST_F(LinkPartyTest, CountsForQuotasAndFollowsThem)
{
    const std::vector<QuotaClass> classes{{"gold", 1'000'000, QuotaPeriod::Day, "bronze"}, {"bronze", 0, {}, ""}};
    Quotas quotas(segment->quotas, classes, 0);
    quotas.enroll(0, "1");
    keepBusy({1}, Second); // 1.5 MB at most
    const auto told = quotas.report(0, 1);
    ASSERT_EQ(told.usersOver, 1u);
    EXPECT_TRUE(quotas.tick(0)) << "Squid moves the user's requests";
    const auto had = static_cast<double>(told.most.at(0).bytes);
    EXPECT_GT(had, 1'000'000);
    EXPECT_LT(had, 1'000'000 + 0.3 * Rate / 8) << "what is counted for gold ends with the settlement that finds it";

    keepBusy({1, 101}, Second); // packets queued for gold go first
    const auto got = keepBusy({1, 101}, 4 * Second);
    EXPECT_NEAR(got.at(1) / got.at(101), 1, 0.1) << "both are of bronze now";
    EXPECT_EQ(quotas.report(0, 1).most.at(0).bytes, static_cast<int64_t>(had));
    EXPECT_NE(ledger::Find(segment->users, UserKey("bronze", "1")), ledger::NoEntry) << "one account with Squid's";

    quotas.tick(86400); // the next day
    keepBusy({1, 101}, 300 * Ms);
    const auto again = keepBusy({1, 101}, 300 * Ms); // gold's 4/5 of this time are less than the quota
    EXPECT_NEAR(again.at(1) / again.at(101), 4, 1);
}

} // namespace
} // namespace msfrs::test
