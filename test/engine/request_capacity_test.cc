// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// An estimated rate: how the scheduler uses C, and how the estimate starts and continues.
#include "support/requests.h"

#include <gtest/gtest.h>
#include <set>

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
        config.window.law = WindowLaw::Bytes;
    }

    /// Responses receive `rate` bit/s for `time`, while others wait.
    void bring(const double rate, const msfrs_time time)
    {
        for (msfrs_time end = clock.now() + time; clock.now() < end;) {
            charge(owners.front(), static_cast<int64_t>(rate / 800));
            for (auto &owner : owners) { // what is never answered would leave the window to others
                if (owner.served && answered_.insert(&owner).second)
                    s->charge(*owner.request, 1, clock.now());
            }
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
    /// Path samples of connections from now on: `sample` for every `nth` one, `others` for the rest.
    void see(const PathSample &sample, const size_t nth = 1, const PathSample &others = {})
    {
        for (size_t n = 0; n < owners.size(); ++n)
            owners[n].sees = n % nth == 0 ? sample : others;
    }
    /// C is 8 Mbit/s, estimated while connections see 40 ms to one address, and more requests wait than have slots.
    double found()
    {
        begin();
        for (int n = 0; n < 200; ++n) {
            hold(1, "eve", "more");
            hold(1, "joe", "still more");
        }
        see(Near);
        bring(8e6, 2 * Second);
        EXPECT_TRUE(s->window().capacity->limited);
        return s->config().rate;
    }
    CapacityReason why() const { return s->window().capacity->changes.back().why; }

    static constexpr PathSample Near = {7, 40 * Ms, 40 * Ms};

private:
    std::set<const TestOwner *> answered_;
};

TEST_F(FoundRateTest, BoundsThatCannotBeAreRefused)
{
    config.bounds = {3e6, 2e6};
    EXPECT_EQ(refusal(config), "greatest link rate 2000000 is not allowed: expected a rate of at least the least");
    config.bounds = {-1, 2e6};
    EXPECT_EQ(refusal(config), "least link rate -1 is not allowed: expected a rate above 0 bit/s");
    config.bounds = {1e6, 2e6};
    config.quantum = 0;
    EXPECT_EQ(refusal(config), "quantum 0 is not allowed: expected more than 0 bytes where the link's "
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
    config.interface = "msfrs-none"; // which has no counter: bytes of responses are counted
    s->reconfigure(config, clock.now());
    bring(8e6, 2 * Second);
    EXPECT_NEAR(s->config().rate, found, 0.05 * found);
    bring(12e6, 2 * Second);
    EXPECT_NEAR(s->config().rate, 12e6, 0.4e6) << "and is followed";
}

TEST_F(FoundRateTest, OfAProxyParentEverySampleIsOfOnePathAndItsQueueIsSeen)
{
    const double before = found();
    EXPECT_NEAR(before, 8e6, 0.4e6);
    see({7, 240 * Ms, 40 * Ms});
    bring(3e6, Second);
    EXPECT_NEAR(s->config().rate, 3e6, 0.3e6) << "200 ms, whoever tells it";
    EXPECT_EQ(why(), CapacityReason::Queue);
}

TEST_F(FoundRateTest, AProxyParentThatIsSlowIsNoQueue)
{
    const double before = found();
    see({7, 40 * Ms, 40 * Ms}); // to the peer; the path behind it is not visible
    bring(2e6, 20 * Second);
    EXPECT_EQ(s->config().rate, before);
}

TEST_F(FoundRateTest, APathOfTwoDelaysHasThatOfTheShorter)
{
    for (const size_t nth : {2, 4}) { // packet by packet, not for half a minute each as in Capacity's own test
        const double before = found();
        see(Near, nth, {7, 240 * Ms, 40 * Ms});
        bring(3e6, 5 * Second);
        EXPECT_EQ(s->config().rate, before) << "every " << nth << " th is short";
        EXPECT_EQ(s->window().capacity->queue, 0);
        for (auto &owner : owners)
            done(owner);
        owners.clear();
    }
}

TEST_F(FoundRateTest, ServersThatAreSlowOrFarAmongOthersAreLeftOut)
{
    const double before = found();
    see(Near, 4, {8, 2 * Second, 300 * Ms});
    bring(3e6, 5 * Second);
    EXPECT_EQ(s->config().rate, before);
}

TEST_F(FoundRateTest, RoundTripsThatCannotBeAreNoneAtAll)
{
    for (const PathSample &absurd : {PathSample{7, 0, 0}, PathSample{7, -Second, 40 * Ms},
                                     PathSample{7, 3600 * Second, 40 * Ms}, PathSample{7, 240 * Ms, 40 * Ms, -1},
                                     PathSample{7, 240 * Ms, 40 * Ms, Second}}) {
        const double before = found();
        see(absurd);
        bring(3e6, 5 * Second);
        EXPECT_EQ(s->config().rate, before) << absurd.rtt << " ns, " << absurd.age << " ns ago";
        EXPECT_LT(s->window().capacity->queue, 0);
        for (auto &owner : owners)
            done(owner);
        owners.clear();
    }
}

TEST_F(FoundRateTest, ALeastRoundTripOfZeroIsTheLatest)
{
    const double before = found();
    see({9, 90 * Ms, 0});
    bring(3e6, 5 * Second);
    EXPECT_EQ(s->config().rate, before) << "nobody has seen a shorter one";
    EXPECT_EQ(s->baseRoundTrip(9), 90 * Ms);
}

TEST_F(FoundRateTest, AKernelThatCountsNoLossesIsSaidOnce)
{
    found();
    EXPECT_EQ(host.logged(0), "");
    see({7, 40 * Ms, 40 * Ms, 0, 0, 0, false});
    bring(8e6, 2 * Second);
    EXPECT_EQ(host.logged(0), "this kernel's TCP_INFO has no tcpi_rcv_ooopack (Linux has since 5.4): where the link's "
                              "rate is to be found losses are not detected\n");
}

TEST_F(RequestTest, WhereTheRateIsKnownAPathIsLookedAtFiftyTimesASecondAtMost)
{
    start(1);
    auto &ann = hold(0, "ann", "first");
    ann.sees = {7, 40 * Ms, 30 * Ms, 5 * Second}; // at any age
    for (int n = 0; n < 1000; ++n) {
        s->lookAtPath(*ann.request, clock.now());
        pass(Ms);
    }
    EXPECT_EQ(ann.looks, 50);
    EXPECT_EQ(s->baseRoundTrip(7), 30 * Ms);
    clock.advance(-3600 * Second);
    s->lookAtPath(*ann.request, clock.now());
    EXPECT_EQ(ann.looks, 51) << "a clock that went back";
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
