// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/overall.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

class OverallVerdict : public testing::Test {
protected:
    OverallVerdict()
    {
        now.gateway.scheduling = true;
        now.gateway.capacity = 2e6;
        now.gateway.utilisation = 0.97;
        for (const auto *const name : {"staff", "guests"}) {
            now.gateway.classes.emplace_back();
            now.gateway.classes.back().name = name;
        }
    }
    void wait(const std::string &user, const std::string &cls, const double seconds)
    {
        now.report.held.push_back({user, cls, "a.example", "request", seconds, ""});
    }

    Situation now;
};

TEST_F(OverallVerdict, NothingIsWrong)
{
    for (int n = 0; n < 8; ++n)
        wait("u" + std::to_string(n), "guests", 1.4 - n / 10.0);
    wait("u0", "guests", 0.1);
    EXPECT_EQ(Overall(now, "since 14:02").text,
              "The link is full since 14:02. 8 users wait, the longest for 1.4 s, all of class guests. Nothing is wrong.");
    wait("boss", "staff", 0.1);
    EXPECT_EQ(Overall(now, "").text, "The link is full. 9 users wait, the longest for 1.4 s: 8 of guests, 1 of staff. "
                                "Nothing is wrong.");
}

TEST_F(OverallVerdict, NobodyWaits)
{
    now.gateway.utilisation = 0.42;
    EXPECT_EQ(Overall(now, "").text, "42 % of the link is used. Nobody waits. Nothing is wrong.");
    now.gateway.utilisation = 0.001;
    EXPECT_EQ(Overall(now, "").text.substr(0, 17), "The link is idle.");
    wait("ann", "staff", 0.2);
    EXPECT_EQ(Overall(now, "").text, "The link is idle. 1 user waits, for 200 ms, of class staff. Nothing is wrong.");
    now.gateway.classes.resize(1);
    EXPECT_EQ(Overall(now, "").text, "The link is idle. 1 user waits, for 200 ms. Nothing is wrong.");
}

TEST_F(OverallVerdict, NotAllAreListed)
{
    for (size_t n = 0; n < MostListed; ++n)
        wait("u" + std::to_string(n % 20), "guests", 5);
    EXPECT_NE(Overall(now, "").text.find("At least 20 users wait"), std::string::npos);
}

TEST_F(OverallVerdict, WhatIsWrong)
{
    now.refused = {"staff", "guests"};
    now.gateway.queue = 0.4;
    EXPECT_EQ(Overall(now, "").text, "The link is full. Nobody waits. Requests of class staff, guests were refused in the last "
                                "minute: too many waited, or for too long. The queue at the provider delays everything "
                                "by 400 ms: rate= of msfrs_link may be too high, see msfrsctl doctor.");
    now.refused.clear();
    now.gateway.queue = 0.04;
    wait("ann", "staff", 12);
    EXPECT_EQ(Overall(now, "").text, "The link is full. 1 user waits, for 12.0 s, of class staff.") << "not nothing";
    now.report.held.front().waited = 4;
    EXPECT_NE(Overall(now, "").text.find("Nothing is wrong."), std::string::npos);
    now.report.held.front().waited = 12;
    now.gateway.utilisation = 0.5;
    EXPECT_NE(Overall(now, "").text.find("Requests wait although the link is not full"), std::string::npos);
    now.gateway.scheduling = false;
    EXPECT_EQ(Overall(now, "").text, "Requests are not scheduled now: msfrs is off, or has failed; see cache.log.");
}

TEST_F(OverallVerdict, TheRateIsNotToBlameForAQueueOfOthers)
{
    const std::string others = "traffic that bypasses Squid builds it, see msfrsctl status.", rate = "may be too high";
    now.gateway.queue = 0.4;
    now.gateway.metered = true;
    now.report.interval = 1;
    now.report.intervals.assign(10, {1, 1.0, 0.98});
    EXPECT_NE(Overall(now, "").text.find(rate), std::string::npos);
    now.report.edgeShare = 0.5;
    EXPECT_NE(Overall(now, "").text.find(others), std::string::npos) << "msfrs-edge releases it: own has it";
    EXPECT_EQ(Overall(now, "").text.find(rate), std::string::npos);
    now.report.edgeShare = 0;
    for (auto *const row : {&now.report.intervals.back(), &now.report.intervals.front()})
        row->own = 0; // two seconds after `msfrsctl off`
    EXPECT_NE(Overall(now, "").text.find(others), std::string::npos);
    now.gateway.metered = false;
    EXPECT_NE(Overall(now, "").text.find(rate), std::string::npos);
}

TEST_F(OverallVerdict, DownloadsThatTakeTurnsDoNotWait)
{
    now.report.held.push_back({"ann", "staff", "a.example", "response", 37, ""});
    EXPECT_EQ(Overall(now, "").text,
              "The link is full. Nobody waits; downloads of 1 user take turns. Nothing is wrong.");
    wait("bob", "staff", 0.3);
    EXPECT_EQ(Overall(now, "").text, "The link is full. 1 user waits, for 300 ms, of class staff. Nothing is wrong.");
}

TEST_F(OverallVerdict, TheWorstComesFirst)
{
    now.gateway.metered = true;
    now.gateway.utilisation = 4.38;
    const auto light = [&](const std::string &silent = {}) { return CodeOf(Overall(now, "", silent).light); };
    const std::string rate = "rate= is too low: the link carried 438 % of 2.0 Mbit/s in the last 10 s. "
                             "To do: msfrsctl set rate 8.58Mbit.";
    EXPECT_EQ(Overall(now, "").text, rate);
    now.faults = {{"names", "Names are not resolved."}};
    EXPECT_EQ(Overall(now, "").text, rate);
    EXPECT_STREQ(light(), "amber");
    now.gateway.utilisation = 0;
    EXPECT_EQ(Overall(now, "").text, "Names are not resolved.");
    now.faults.insert(now.faults.begin(), {"unreachable", "Users cannot reach Squid."});
    EXPECT_EQ(Overall(now, "").text, "Users cannot reach Squid.");
    EXPECT_STREQ(light(), "red");
    EXPECT_EQ(Overall(now, "", "Squid does not answer.").text, "Squid does not answer.");
    now.faults.insert(now.faults.begin(), {"off", "Off since 14:02."});
    EXPECT_EQ(Overall(now, "", "Squid does not answer.").text, "Off since 14:02.");
    now.faults.clear();
    EXPECT_STREQ(light(), "green");
}

TEST_F(OverallVerdict, DuringATestTheRateIsNotWrong)
{
    now.gateway.metered = true;
    now.gateway.utilisation = 4.38;
    now.faults = {{"test", "A test runs."}};
    EXPECT_EQ(Overall(now, "").text, "A test runs.");
}

TEST(Faults, LinesOfTheFile)
{
    const auto found = report::ReadFaults("off\tOff since\x1b 14:02.\nnothing\n\tno code\nnames\t\nlog\tFull.");
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].code, "off");
    EXPECT_EQ(found[0].text, "Off since  14:02.");
    EXPECT_EQ(found[1].text, "Full.");
    EXPECT_TRUE(report::FaultsOf("/nonexistent/faults").empty());
}

TEST(MinutesFull, APauseOfSecondsDoesNotEndThem)
{
    std::vector<float> slots(60, 0.2F);
    EXPECT_EQ(MinutesFull(slots, 12), 0u);
    std::fill(slots.begin() + 24, slots.end(), 0.99F);
    EXPECT_EQ(MinutesFull(slots, 12), 3u);
    slots[50] = 0.2F;
    EXPECT_EQ(MinutesFull(slots, 12), 3u);
    slots[30] = NAN;
    EXPECT_EQ(MinutesFull(slots, 12), 2u) << "unknown";
    EXPECT_EQ(MinutesFull({}, 12), 0u);
    EXPECT_EQ(MinutesFull({1, 1}, 12), 0u);
}

} // namespace
} // namespace msfrs::test
