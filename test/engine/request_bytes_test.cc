// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Release by bytes in flight: msfrs_window law=bytes.
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// C is 1 MB/s and R 9 ms; q* is the 16 ms of a quantum and 15 ms: C (R + q*) is 40,000 bytes.
class RequestBytes : public RequestTest {
protected:
    RequestBytes()
    {
        config.quantum = 16'000;
        config.rtt = 9 * Ms;
        config.window.law = WindowLaw::Bytes;
        start(0);
    }
};

TEST_F(RequestBytes, ReleasesWhileFewerMayComeThanTheLinkHolds)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    hold(0, "c", "c");
    hold(0, "d", "d");
    EXPECT_EQ(granted(), "a b c");
    EXPECT_EQ(s->window().because, "1 wait and the window is full (47 of 39 KB may be in flight)");
    charge(a, 8'000);
    EXPECT_EQ(granted(), "") << "40,000 bytes";
    charge(b, 1);
    EXPECT_EQ(granted(), "d") << "as soon as bytes have come, and not only when a turn is over";
}

TEST_F(RequestBytes, AResponseWithLittleLeftCountsAsThat)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    hold(0, "c", "c");
    for (const auto name : {"1", "2", "3"})
        hold(1, name, name);
    EXPECT_EQ(granted(), "a b c");
    s->expect(*a.request, 500, clock.now());
    s->expect(*b.request, 500, clock.now());
    pass(2 * Second);
    EXPECT_EQ(granted(), "1 2") << "17,000 bytes were left, then 33,000";
}

TEST_F(RequestBytes, WhoIsGoneOrSilentHoldsNothing)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    hold(0, "c", "c");
    hold(1, "d", "d");
    hold(1, "e", "e");
    EXPECT_EQ(granted(), "a b c");
    done(a);
    EXPECT_EQ(granted(), "d");
    rest(b);
    EXPECT_EQ(granted(), "e");
}

TEST_F(RequestBytes, FarServersMayHaveMoreInFlight)
{
    auto &a = hold(0, "a", "a");
    s->receiveBuffer(*a.request, 109 * Ms); // which is when the scheduler hears of the base RTT
    for (const auto name : {"1", "2", "3", "4", "5", "6", "7", "8", "9"})
        hold(1, name, name);
    EXPECT_EQ(granted(), "a 1 2 3 4 5 6 7 8") << "C (R + q*) is 140,000 bytes";
}

TEST_F(RequestBytes, SeveralSchedulersOnALinkGoByPlaces)
{
    config.window.law = WindowLaw::Bytes;
    auto requests = host.requests();
    requests.ledger = std::make_shared<AloneLedger>();
    RequestScheduler shared(config, requests, clock.now());
    EXPECT_EQ(shared.config().window.law, WindowLaw::Places);
    EXPECT_NE(shared.window().because.find("W is 0 of W+"), std::string::npos) << shared.window().because;
}

} // namespace
} // namespace msfrs
