// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/why.h"
#include "satellites/page/words.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

class Why : public testing::Test {
protected:
    Why()
    {
        auto &g = now.gateway;
        g.scheduling = true;
        g.capacity = 2e6;
        g.utilisation = 0.97;
        g.own = 0.95;
        ClassState gold, bronze;
        gold.name = "gold";
        gold.weight = 4;
        gold.users = 1;
        bronze.name = "bronze";
        bronze.weight = 1;
        bronze.users = 4;
        g.classes = {gold, bronze};
        now.flow.classes.resize(2);
        now.users.update({{"ann", "gold", 0, 1, 1}, {"bob", "bronze", 0, 0, 1}}, 100);
    }

    std::string said(const std::string &name)
    {
        std::string all;
        for (const auto &sentence : WhySlow(now, name).why)
            all += sentence + "\n";
        return all;
    }
    static bool has(const std::string &text, const std::string &part) { return text.find(part) != text.npos; }
    /// Intervals of a second, the latest last.
    void used(const std::vector<std::pair<double, double>> &utilisationAndOwn)
    {
        now.report.intervals.clear();
        now.report.interval = 1;
        now.gateway.metered = true;
        auto ago = static_cast<double>(utilisationAndOwn.size());
        for (const auto &[u, own] : utilisationAndOwn)
            now.report.intervals.push_back({--ago, u, own});
    }

    Situation now;
};

TEST_F(Why, ItWaits)
{
    now.users.update({{"ann", "gold", 25'000, 2, 1}}, 101);
    now.report.because = {"4 wait and the window is full (W is 5 of W+ 5.00)"};
    now.report.held = {{"bob", "bronze", "b.example", "request", 9, "7"},
                       {"ann", "gold", "a.example", "request", 2.5, "8"},
                       {"ann", "gold", "c.example", "exchange", 1, "9"},
                       {"ann", "gold", "d.example", "response", 0.5, "10"}};
    now.gateway.outstanding = 5;
    now.gateway.limit = 5;
    now.gateway.classes[1].inFlight = 5;
    now.gateway.base = 0.03;
    now.gateway.queue = 0.04;
    // Verdict, share (fair and actual), rate, others, server, advice.
    EXPECT_EQ(said("ann"),
              "2 requests of this user wait for a turn, the longest for 2.5 s (a.example), and 1 download takes turns: the link is "
              "full, and turns go by weight.\n"
              "Share: its fair share by weight is 50 % of the link (class gold, weight 4); it received 10 % in the "
              "last 1 s.\n"
              "Rate: this user receives 200 kbit/s, its fair share is 1.0 Mbit/s; the link carries 97 % of its "
              "2.0 Mbit/s.\n"
              "Active now: 5 users (1 of gold, 4 of bronze); 3 requests wait; 5 responses in progress (5 "
              "of bronze).\n"
              "Server: round trips take 30 ms, and the queue at the provider adds 40 ms to each.\n"
              "What to do: this user has less than its share; if that lasts longer than a minute, see msfrsctl doctor "
              "and docs/user/limits.md.\n"
              "For engineers: 4 wait and the window is full (W is 5 of W+ 5.00); 5 of 5.00 slots are taken.\n");
    const auto about = [&](const std::string &name) { return said(name).substr(0, said(name).find(',')); };
    EXPECT_EQ(about("9"), "1 request of this transaction waits for a turn");
    EXPECT_EQ(WhySlow(now, "9").users.size(), 1u) << "whose it is";
    EXPECT_EQ(about("EXAMPLE"), "3 requests to this host wait for a turn");
    EXPECT_EQ(about("a.example"), "1 request to this host waits for a turn");
    EXPECT_EQ(WhySlow(now, "ample").waiting, 0) << "no domain";
}

TEST_F(Why, ItHasItsShare)
{
    now.users.update({{"ann", "bronze", 7000, 0, 0}, {"ann", "gold", 0, 1, 1}}, 100);
    now.users.update({{"ann", "bronze", 7000, 0, 0}, {"ann", "gold", 125'000, 2, 1}}, 101);
    now.report.held = {{"ann", "gold", "a.example", "request", 2.5, ""}};
    EXPECT_EQ(said("ann").substr(0, said("ann").find('\n')),
              "1 request of this user waits for a turn, for 2.5 s (a.example): it has its share, and others have "
              "theirs.");
    EXPECT_TRUE(has(said("ann"), "What to do: to give this user more for an hour: msfrsctl set boost ann for 1h\n"));
}

/// The rows of users are polled every five seconds, those of waiting requests each second. The page once said "Waiting
/// 1", from the former, and "Nothing waits", from the latter.
TEST_F(Why, WhoWaitsIsToldOnce)
{
    now.users.update({{"ann", "gold", 0, 1, 1}}, 101);
    EXPECT_EQ(WhySlow(now, "ann").waiting, 0);
    EXPECT_TRUE(has(said("ann"), "No request of this user waits")) << said("ann");
    for (int n = 0; n < 50; ++n)
        now.report.held.push_back({"bob", "bronze", "b.example", "request", 9, ""});
    EXPECT_EQ(WhySlow(now, "ann").waiting, 1) << "not all are listed";
    EXPECT_TRUE(has(said("ann"), "1 request of this user waits for a turn, but others wait longer")) << said("ann");
}

TEST_F(Why, NothingWaits)
{
    now.gateway.utilisation = 0.3;
    const auto text = said("bob");
    EXPECT_TRUE(has(text, "No request of this user waits for a turn, and the link is not full: the cause is the "
                          "server"));
    EXPECT_TRUE(has(text, "the link carries 30 % of its 2.0 Mbit/s."));
}

/// "14 % past Squid" was once based on a single second.
TEST_F(Why, OneSecondIsNoVerdict)
{
    std::vector<std::pair<double, double>> seconds(30, {0.6, 0.58});
    seconds.back() = {0.99, 0.7};
    used(seconds);
    now.gateway.utilisation = 0.99;
    now.gateway.own = 0.7;
    const auto text = said("bob");
    EXPECT_FALSE(has(text, "bypassed Squid")) << text;
    EXPECT_TRUE(has(text, "the link is full just now")) << text;
    EXPECT_TRUE(has(text, "the link carries 64 % of its"));
    now.gateway.utilisation = 0.5;
    EXPECT_TRUE(has(said("bob"), "the link is not full: the cause is the server"));
}

TEST_F(Why, WhatPassesSquidBy)
{
    used(std::vector<std::pair<double, double>>(30, {0.95, 0.6}));
    EXPECT_NEAR(PastSquid(now).value_or(0), 0.35, 1e-9);
    EXPECT_TRUE(has(said("bob"), "35 % of the link bypassed Squid in the last 30 s."));
    used(std::vector<std::pair<double, double>>(9, {0.95, 0.6}));
    EXPECT_FALSE(PastSquid(now)) << "for too short a time";
    used(std::vector<std::pair<double, double>>(30, {0.95, 0.88}));
    EXPECT_FALSE(PastSquid(now)) << "less than the estimate of what responses are on the link may err";
    std::vector<std::pair<double, double>> bursts;
    for (int n = 0; n < 30; ++n)
        bursts.push_back({n % 5 ? 0.3 : 0.9, 0.3});
    used(bursts);
    EXPECT_FALSE(PastSquid(now)) << "12 %, with an error of 4.5 %";
    used(std::vector<std::pair<double, double>>(30, {0.95, 0.6}));
    now.gateway.metered = false;
    EXPECT_FALSE(PastSquid(now)) << "only responses are counted";
}

TEST_F(Why, WeightsAreNotEnforced)
{
    now.report.because = {"weights not enforced yet, because each response has a slot (W is 3 of W+ 2.45)"};
    EXPECT_TRUE(has(said("bob"), "No request of this user waits for a turn, but the link is full.\n")) << said("bob");
    EXPECT_TRUE(has(said("bob"), "For engineers: weights not enforced yet, because each response has a slot (W is 3 of W+ "
                                 "2.45); ")) << said("bob");
}

TEST_F(Why, ItIsNotKnown)
{
    EXPECT_TRUE(has(said("eve"), "Squid does not know this name now"));
    now.users.update({{"ann", "gold", 0, 0, 0}}, 101);
    now.users.update({{"ann", "gold", 0, 0, 0}}, 102);
    EXPECT_TRUE(has(said("ann"), "This user had no request at Squid a few seconds ago."))
        << "it is not the server that is slow";
}

TEST_F(Why, WhatElseMakesItSlow)
{
    now.gateway.base = 0.03;
    now.gateway.queue = 0.4;
    now.flow.classes[1].refused = 0.1;
    const auto text = said("bob");
    EXPECT_TRUE(has(text, "the queue at the provider adds 400 ms to each."));
    EXPECT_TRUE(has(text, "What to do: the queue at the provider is long"));
    EXPECT_TRUE(has(text, "Requests of class bronze are being refused"));
    EXPECT_FALSE(has(said("ann"), "refused"));
    now.gateway.base = 0.0003; // a server in the same building
    now.gateway.queue = 0;
    EXPECT_TRUE(has(said("ann"), "Server: round trips take less than 1 ms, and the queue at the provider adds nothing.\n"));
}

TEST_F(Why, AQuotaIsUsedUp)
{
    now.report.quotas = {{"gold", "bronze", "day", 5e9, 12'000, 3, 2, {{"bob", 5.4e9}, {"ann", 4e9}}}};
    EXPECT_TRUE(has(said("bob"), "Quota: 5.0 GB of the 4.7 GB per day of class gold are used, so class bronze serves "
                                 "this user for another 3 h 20 min.")) << said("bob");
    EXPECT_TRUE(has(said("ann"), "Quota: 3.7 GB of the 4.7 GB per day of class gold are used.\n"));
    now.report.quotas[0].most.erase(now.report.quotas[0].most.begin());
    EXPECT_TRUE(has(said("bob"), "Quota: class bronze serves those who have used the 4.7 GB per day of class gold."))
        << "it is not among those who are named";
    EXPECT_FALSE(has(said("eve"), "4.7 GB"));
}

/// A host may have the address of a user; what others want from it is none of that user's business.
TEST_F(Why, AUserIsToldAboutItselfOnly)
{
    now.report.held = {{"bob", "bronze", "10.0.0.9", "request", 9, "7"}};
    EXPECT_EQ(WhySlow(now, "10.0.0.9").waiting, 1);
    const auto verdict = WhySlow(now, "10.0.0.9", Who::User);
    EXPECT_EQ(verdict.waiting, 0);
    EXPECT_EQ(verdict.reason, Reason::Unknown);
    EXPECT_EQ(WhySlow(now, "7", Who::User).reason, Reason::Unknown);
    EXPECT_EQ(WhySlow(now, "bob", Who::User).reason, Reason::Waits);
}

TEST_F(Why, TheReasonBehindTheWords)
{
    EXPECT_EQ(WhySlow(now, "ann").reason, Reason::LinkFull);
    now.gateway.utilisation = 0.3;
    EXPECT_EQ(WhySlow(now, "ann").reason, Reason::Elsewhere);
    now.users.update({{"ann", "gold", 0, 0, 0}}, 101);
    EXPECT_EQ(WhySlow(now, "ann").reason, Reason::Idle);
    now.gateway.scheduling = false;
    EXPECT_EQ(WhySlow(now, "ann").reason, Reason::Off);
}

TEST_F(Why, NothingIsScheduled)
{
    now.gateway.scheduling = false;
    now.report.because = {"msfrs is off"};
    EXPECT_TRUE(has(said("ann"), "Nothing is held here: msfrs is off.\n"));
}

TEST(RateText, AsPeopleReadIt)
{
    EXPECT_EQ(RateText(0), "0 bit/s");
    EXPECT_EQ(RateText(999.4), "999 bit/s");
    EXPECT_EQ(RateText(999.6), "1.0 kbit/s");
    EXPECT_EQ(RateText(12'345'678), "12 Mbit/s");
    EXPECT_EQ(RateText(5e12), "5000 Gbit/s");
}

} // namespace
} // namespace msfrs::test
