// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// What RequestScheduler tells of who has a place, who waits, and why.
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class ReportTest : public RequestTest {
protected:
    std::string holding() const
    {
        const auto window = s->window();
        return (window.holding ? "yes, " : "no, ") + window.because;
    }
};

TEST_F(ReportTest, WhyAnybodyIsHeldAndWhyNobodyIs)
{
    start(1);
    EXPECT_EQ(holding(), "no, nobody waits (W is 0 of W+ 1.00)");
    auto &a = hold(0, "u", "a");
    EXPECT_EQ(holding(), "no, nobody waits (W is 1 of W+ 1.00)");
    hold(1, "v", "b");
    hold(1, "v", "c");
    EXPECT_EQ(holding(), "yes, 2 wait and the window is full (W is 1 of W+ 1.00)");
    done(a);
    done(owners[1]);
    rest(owners[2]);
    EXPECT_EQ(holding(), "no, nobody needs a place, 1 are open and silent (W is 0 of W+ 1.00)");
}

TEST_F(ReportTest, WhoHasAPlaceIsSendingOrWasAsked)
{
    start(3);
    hold(0, "u", "a").isAsked = true;
    hold(0, "u", "b");
    hold(1, "v", "c").isAsked = true;
    hold(1, "v", "d").isAsked = true; // waits: it has no place yet
    EXPECT_EQ(report("gold").inFlight, 2u);
    EXPECT_EQ(report("gold").asked, 1u);
    EXPECT_EQ(report("bronze").inFlight, 1u);
    EXPECT_EQ(report("bronze").asked, 1u);
}

TEST_F(ReportTest, WhoIsHeldTheLongestFirst)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    auto &b = hold(0, "u", "b");
    EXPECT_TRUE(read(b, 999));
    clock.advance(Second);
    hold(1, "v", "c");
    clock.advance(Second);
    EXPECT_FALSE(read(b, 1)) << "its quantum is over: c goes on";
    EXPECT_EQ(granted(), "a b c");
    clock.advance(Second);
    EXPECT_FALSE(again(a));
    clock.advance(Second);
    hold(1, "w", "d");
    clock.advance(Second);

    const auto held = s->held(50, clock.now());
    ASSERT_EQ(held.size(), 3u);
    const struct { const char *user, *cls, *host, *what; double waited; } wanted[] = {
        {"u", "gold", "host of b", "response", 3}, {"u", "gold", "host of a", "exchange", 2},
        {"w", "bronze", "host of d", "request", 1}};
    for (size_t n = 0; n < held.size(); ++n) {
        EXPECT_EQ(held[n].user, wanted[n].user) << n;
        EXPECT_EQ(held[n].className, wanted[n].cls) << n;
        EXPECT_EQ(held[n].host, wanted[n].host) << n;
        EXPECT_STREQ(HeldText(held[n].what), wanted[n].what) << n;
        EXPECT_DOUBLE_EQ(held[n].waited, wanted[n].waited) << n;
    }
    EXPECT_EQ(s->held(2, clock.now()).size(), 2u);
    EXPECT_EQ(s->held(2, clock.now()).front().host, "host of b");
    EXPECT_EQ(s->held(2, clock.now()).front().id, 7u);
    EXPECT_TRUE(s->held(0, clock.now()).empty());
}

TEST_F(ReportTest, AnExchangeThatEndsWhileItWaitsHasWaited)
{
    start(1);
    auto &a = hold(0, "u", "a");
    rest(a);
    hold(1, "v", "b");
    EXPECT_FALSE(again(a));
    clock.advance(2 * Second);
    const auto trace = s->trace(*a.request, clock.now());
    EXPECT_EQ(trace.exchangeWait, 2 * Second);
    EXPECT_EQ(trace.totalWait, trace.firstWait + trace.exchangeWait);
}

TEST_F(ReportTest, TheWindowBeginsAnewWithoutLosingAnybody)
{
    config.rtt = 3'000'000; // with 1 MB a second and quanta of 1000 bytes: W0+ = 3
    start(1);
    for (const auto name : {"a", "b", "c", "d"})
        hold(0, "u", name);
    EXPECT_EQ(granted(), "a");
    s->resetWindow(clock.now());
    EXPECT_EQ(s->window().limit, 3);
    EXPECT_EQ(granted(), "b c") << "at once";
    EXPECT_EQ(s->window().change, WindowChange::Reset);
    EXPECT_DOUBLE_EQ(s->window().changedAt, static_cast<double>(clock.now()) * 1e-9);
    EXPECT_EQ(report("gold").queued, 1u);
}

} // namespace
} // namespace msfrs
