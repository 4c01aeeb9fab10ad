// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A rate that is found: what the scheduler makes of C, and how it begins and goes on.
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class FoundRateTest : public RequestTest {
protected:
    FoundRateTest()
    {
        config.rate = 0;
        config.bounds = {1e6, 50e6};
        config.overhead = 0;
    }

    /// Responses bring so much for so long, bit/s, while others wait.
    void bring(const double rate, const msfrs_time time)
    {
        for (msfrs_time end = clock.now() + time; clock.now() < end;) {
            charge(owners.front(), static_cast<int64_t>(rate / 800));
            pass(10 * Ms);
        }
    }
    void begin()
    {
        start(0);
        hold(0, "ann", "first");
        for (int n = 0; n < 80; ++n)
            hold(1, "bob", "other");
    }
    double limit() const { return s->window().limit; }
};

TEST_F(FoundRateTest, BoundsThatCannotBeAreRefused)
{
    config.bounds = {3e6, 2e6};
    EXPECT_EQ(refusal(config), "greatest link rate 2000000 is not allowed: wanted is a rate of at least the least");
    config.bounds = {-1, 2e6};
    EXPECT_EQ(refusal(config), "least link rate -1 is not allowed: wanted is a rate above 0 bit/s");
    config.bounds = {1e6, 2e6};
    config.quantum = 0;
    EXPECT_EQ(refusal(config), "quantum 0 is not allowed: wanted is more than 0 bytes where the link's "
                               "rate is to be found");
    config.quantum = 1000;
    EXPECT_EQ(refusal(config), "accepted");
}

TEST_F(FoundRateTest, BeginsWithTheLeastAndFollowsWhatTheLinkBrings)
{
    begin();
    EXPECT_EQ(s->config().rate, 1e6);
    const double before = limit();
    bring(8e6, 2 * Second);
    EXPECT_NEAR(s->config().rate, 8e6, 0.3e6);
    EXPECT_GT(limit(), 4 * before) << "a place is worth what it was";
    const auto report = s->window();
    ASSERT_TRUE(report.capacity);
    EXPECT_EQ(report.capacity->rate, s->config().rate);
    EXPECT_EQ(report.capacity->changes.back().why, CapacityReason::Carried);
}

TEST_F(FoundRateTest, UtilisationIsAMeanWhileCChanges)
{
    begin();
    bring(1e6, 3 * Second);
    EXPECT_NEAR(s->window().utilisation, 1, 0.02);
    bring(40e6, Second / 2);
    bring(40e6, Second / 2);
    EXPECT_LT(s->window().utilisation, 25) << "and not forty, nor one";
    bring(40e6, 3 * Second);
    EXPECT_NEAR(s->window().utilisation, 1, 0.05);
    EXPECT_NEAR(s->window().own, 1, 0.05);
}

TEST_F(FoundRateTest, AnotherInterfaceCountsFromAnewAndCStays)
{
    begin();
    bring(8e6, 2 * Second);
    const double found = s->config().rate;
    config.interface = "msfrs-none"; // of which nobody has a counter: responses are counted
    s->reconfigure(config, clock.now());
    bring(8e6, 2 * Second);
    EXPECT_NEAR(s->config().rate, found, 0.05 * found);
    bring(12e6, 2 * Second);
    EXPECT_NEAR(s->config().rate, 12e6, 0.4e6) << "and is followed";
}

TEST_F(FoundRateTest, ReconfiguredItKeepsWhatItHasFound)
{
    begin();
    bring(8e6, 2 * Second);
    const double found = s->config().rate;
    config.classes[0].weight = 3;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->config().rate, found);
    config.bounds = {1e6, 5e6};
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->config().rate, 5e6);
    config.bounds = {};
    config.rate = 3e6;
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->config().rate, 3e6);
    EXPECT_FALSE(s->window().capacity);
    bring(3e6, 2 * Second);
    EXPECT_NEAR(s->window().utilisation, 1, 0.02);
    config.bounds = {1e6, 50e6};
    s->reconfigure(config, clock.now());
    EXPECT_EQ(s->config().rate, 1e6);
    bring(6e6, 2 * Second);
    EXPECT_NEAR(s->config().rate, 6e6, 0.2e6);
}

} // namespace
} // namespace msfrs
