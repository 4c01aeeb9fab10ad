// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/arrivals.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

constexpr msfrs_time Ms = 1'000'000;
constexpr double Trip = 0.1; // s

TEST(Arrivals, AreExpectedForARoundTripAfterARequestAndThenNotUntilBytesCome)
{
    Arrivals arrivals;
    arrivals.begin(0, Trip);
    arrivals.ask(0, Trip, 1);
    EXPECT_EQ(arrivals.expected(5000, 100 * Ms), 5000);
    EXPECT_EQ(arrivals.expected(5000, 101 * Ms), 0);
    arrivals.arrived(0, 150 * Ms, Trip);
    EXPECT_EQ(arrivals.expected(5000, 150 * Ms), 0) << "no bytes are no answer";
    arrivals.arrived(1, 160 * Ms, Trip);
    EXPECT_EQ(arrivals.expected(5000, 160 * Ms), 5000) << "its first flight was not booked";
}

TEST(Arrivals, OfAnotherRequestAreDueARoundTripAfterIt)
{
    Arrivals arrivals;
    arrivals.begin(0, Trip);
    arrivals.ask(0, Trip, 2);
    EXPECT_EQ(arrivals.expected(5000, 200 * Ms), 5000) << "a handshake comes first";
    arrivals.arrived(300, 200 * Ms, Trip);
    arrivals.ask(250 * Ms, Trip, 1);
    EXPECT_EQ(arrivals.expected(5000, 350 * Ms), 5000);
    EXPECT_EQ(arrivals.expected(5000, 351 * Ms), 0);
}

TEST(Arrivals, OfAStreamAreTwiceWhatTheLastRoundTripBrought)
{
    Arrivals arrivals;
    arrivals.begin(0, Trip);
    arrivals.ask(0, Trip, 1);
    for (int n = 1; n <= 4; ++n)
        arrivals.arrived(300, n * 50 * Ms, Trip);
    EXPECT_EQ(arrivals.expected(16'000, 200 * Ms), 16'000) << "a turn of two round trips";
    arrivals.arrived(300, 250 * Ms, Trip);
    const double mean = 300 * (1 + std::exp(-0.5) + std::exp(-1) + std::exp(-1.5) + std::exp(-2));
    EXPECT_EQ(arrivals.expected(16'000, 250 * Ms), static_cast<int64_t>(2 * mean));
    EXPECT_EQ(arrivals.expected(1000, 250 * Ms), 1000) << "no more than it may have in flight";
}

TEST(Arrivals, OfATurnBeginAnewAfterAPause)
{
    Arrivals arrivals;
    arrivals.begin(0, Trip);
    arrivals.arrived(300, 250 * Ms, Trip);
    EXPECT_EQ(arrivals.expected(16'000, 250 * Ms), 600);
    arrivals.begin(1000 * Ms, Trip);
    EXPECT_EQ(arrivals.expected(16'000, 1000 * Ms), 16'000);
}

} // namespace
} // namespace msfrs
