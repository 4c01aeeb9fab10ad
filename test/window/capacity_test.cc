// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Estimates of C on a fluid link in simulated time: bytes in flight follow C (R + q*) with a delay of some RTTs.
#include "window/capacity.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace msfrs {
namespace {

constexpr msfrs_time Ms = 1'000'000, Second = 1000 * Ms, Tick = 10 * Ms, Allowed = 30 * Ms;
constexpr double Min = 1e6, Max = 80e6;

double Seconds(const msfrs_time t) { return static_cast<double>(t) * 1e-9; }

struct Site {
    // The link.
    double rate = 10e6;                ///< bit/s
    double room = 1;                   ///< length of the bottleneck queue, s at 10 Mbit/s
    msfrs_time base = 80 * Ms;         ///< base RTT
    msfrs_time longer = 0;             ///< additional delay of the path
    double lost = 0;                   ///< fraction of packets
    bool policed = false;              ///< no queue: excess packets are dropped
    double marked = 0;                 ///< s: with a longer queue senders respond, as to ECN marks; 0: they do not
    // The users.
    bool limited = true;               ///< requests wait
    double asked = 1e12;               ///< bit/s that servers can send
    // The samples.
    bool sampled = true;
    bool stale = false;                ///< RTT samples are reported while nothing arrives
    double strange = 0;                ///< s: added to the reported RTT samples
    msfrs_time known = 80 * Ms;        ///< reported base RTT

    Capacity capacity{{Min, Max}, 0};
    msfrs_time now = 0;
    double total = 0, queue = 0, smooth = 0;
    msfrs_time full = 0;
    uint64_t packets = 0, outOfOrder = 0;
    std::deque<double> pipe;           ///< bytes that have left the queue, by tick
    double lowest = 0, highest = 0;    ///< C of the last run()
    double worst = 0;                  ///< greatest queue of the last run(), s
    double carried = 0;                ///< of the last run(), bit/s

    double onTheWay() const { return std::accumulate(pipe.begin(), pipe.end(), queue); }

    /// Bytes in flight approach the number that C allows, and leave the queue at the link's rate.
    void flow()
    {
        double back = 0;
        while (!pipe.empty() && pipe.size() >= static_cast<size_t>((base + longer) / Tick)) {
            back += pipe.front();
            pipe.pop_front();
        }
        const double wanted = std::min(capacity.rate() / 8 * Seconds(base + Allowed), asked / 8 * Seconds(base));
        const double missing = wanted - onTheWay() - back;
        double sent = std::max(0.0, back + (missing > 0 ? missing * Seconds(Tick) / Seconds(base) : missing));
        if (marked > 0)
            sent = std::min(sent, std::max(0.0, rate / 8 * (Seconds(Tick) + marked) - queue));
        queue += sent;
        const double left = std::min(queue, rate / 8 * Seconds(Tick));
        const double before = queue;
        queue = std::min(queue - left, policed ? 0 : room * 10e6 / 8);
        const double dropped = before - left - queue;
        pipe.push_back(left);
        total += left;
        packets += static_cast<uint64_t>(left / 100); // finer than real packets
        outOfOrder += static_cast<uint64_t>((left * lost * 3 + dropped) / 100);
        if (left > 0 && rate > 0)
            smooth += (queue * 8 / rate - smooth) / 10;
        worst = std::max(worst, rate > 0 ? queue * 8 / rate : 0);
        now += Tick;
        full += limited ? Tick : 0;
    }

    void run(const double seconds)
    {
        lowest = 1e12;
        highest = worst = 0;
        const double before = total;
        const auto end = now + static_cast<msfrs_time>(seconds * 1e9);
        while (now < end) {
            flow();
            if (now >= capacity.nextUpdate())
                tell();
            lowest = std::min(lowest, capacity.rate());
            highest = std::max(highest, capacity.rate());
        }
        carried = (total - before) * 8 / seconds;
    }

    void tell()
    {
        CapacitySample seen;
        seen.total = total;
        seen.full = full;
        if (sampled && (rate > 0 || stale))
            seen.queue = static_cast<msfrs_time>((smooth + Seconds(longer) + strange) * 1e9);
        seen.base = known;
        seen.packets = packets;
        seen.outOfOrder = outOfOrder;
        capacity.update(seen, now);
    }

    /// The link's rate varies until it is recognised as variable.
    void vary(const bool bounding = true)
    {
        capacity = Capacity({Min, Max}, now, bounding);
        run(10);
        for (int n = 0; n < 4; ++n) {
            rate = 3e6;
            run(4);
            rate = 10e6;
            run(4);
        }
    }

    bool gave(const CapacityReason why) const
    {
        const auto changes = capacity.report().changes;
        return std::any_of(changes.begin(), changes.end(), [&](const auto &c) { return c.why == why; });
    }
};

TEST(Capacity, IsTheLeastAtFirst)
{
    const Capacity capacity({Min, Max}, 5 * Second);
    EXPECT_EQ(capacity.rate(), Min);
    EXPECT_EQ(capacity.nextUpdate(), 5 * Second + Capacity::Every);
    EXPECT_TRUE(capacity.report().changes.empty());
}

TEST(Capacity, IsFoundFromNothingWithinTenSecondsAndThenStays)
{
    for (const double carries : {2e6, 10e6, 60e6}) {
        for (const msfrs_time trip : {20 * Ms, 80 * Ms, 300 * Ms}) {
            Site site;
            site.rate = carries;
            site.base = site.known = trip;
            site.run(10);
            EXPECT_GT(site.capacity.rate(), 0.95 * carries) << carries << " bit/s, ns " << trip;
            site.run(5);
            site.run(600);
            EXPECT_GT(site.lowest, 0.95 * carries) << carries << " bit/s, ns " << trip;
            EXPECT_LT(site.highest, 1.05 * carries) << carries << " bit/s, ns " << trip;
            EXPECT_GT(site.carried, 0.99 * carries) << carries << " bit/s, ns " << trip;
        }
    }
}

TEST(Capacity, AStepDownIsFollowedAndTheQueueIsGoneSoon)
{
    Site site;
    site.run(30);
    site.rate /= 4;
    site.run(5 * Seconds(site.base) + 2);
    EXPECT_NEAR(site.capacity.rate(), 2.5e6, 0.25e6);
    EXPECT_TRUE(site.gave(CapacityReason::Queue));
    site.run(10);
    EXPECT_LT(site.worst, 0.1);
    EXPECT_GT(site.carried, 0.98 * 2.5e6);
}

TEST(Capacity, AFallThatGoesOnIsFollowedBeforeTheFirstCutCanShow)
{
    Site site;
    site.base = site.known = 300 * Ms;
    site.run(30);
    site.rate = 5e6;
    site.run(0.5);
    site.rate = 1.2e6;
    site.run(0.5);
    EXPECT_LT(site.capacity.rate(), 1.5e6);
}

TEST(Capacity, AStepUpIsFollowedInThreeSeconds)
{
    for (const msfrs_time trip : {40 * Ms, 80 * Ms, 160 * Ms}) {
        Site site;
        site.rate = 5e6;
        site.base = site.known = trip;
        site.run(30);
        site.rate *= 4;
        site.run(3);
        EXPECT_GT(site.capacity.rate(), 0.9 * 20e6) << "ns " << trip;
        EXPECT_TRUE(site.gave(CapacityReason::Carried));
    }
}

TEST(Capacity, IsNeverBelowTheLeastNorAboveTheMost)
{
    Site site;
    site.rate = 200e6;
    site.run(20);
    EXPECT_EQ(site.capacity.rate(), Max);
    site.room = 0.1;
    site.rate = 0.2e6;
    site.run(60);
    EXPECT_GE(site.lowest, Min);
    EXPECT_EQ(site.lowest, Min) << "and it gets there";
}

TEST(Capacity, NewBoundsHoldAtOnce)
{
    Site site;
    site.run(20);
    site.capacity.configure({1e6, 5e6}, site.now);
    EXPECT_EQ(site.capacity.rate(), 5e6);
    EXPECT_EQ(site.capacity.report().changes.back().why, CapacityReason::Bounds);
    site.capacity.configure({7e6, 9e6}, site.now);
    EXPECT_EQ(site.capacity.rate(), 7e6);
}

TEST(Capacity, ALinkThatIsDownSaysNothing)
{
    Site site;
    site.run(20);
    const double before = site.capacity.rate();
    site.rate = 0;
    site.run(20);
    EXPECT_NEAR(site.capacity.rate(), before, 0.05 * before);
    site.rate = 10e6;
    site.run(3);
    EXPECT_GT(site.capacity.rate(), 0.9 * before);
}

TEST(Capacity, WhatWasSeenBeforeTheLinkWentDownIsNoReason)
{
    Site site;
    site.run(20);
    const double before = site.capacity.rate();
    site.rate = 0;
    site.run(0.5); // its last bytes have left the link
    site.stale = true;
    site.strange = 1;
    site.run(20);
    EXPECT_EQ(site.lowest, before);
}

TEST(Capacity, ComesDownToAQuarterAtOnceAtMost)
{
    Site site;
    site.run(20);
    const double before = site.capacity.rate();
    site.rate = 0.05e6; // as in the moment after an outage
    while (site.capacity.rate() > 0.95 * before)
        site.run(0.1);
    EXPECT_GE(site.capacity.rate(), 0.24 * before);
}

TEST(Capacity, WhoIsNotLimitedShowsLittleOfTheLink)
{
    Site site;
    site.run(20);
    const double before = site.capacity.rate();
    site.limited = false;
    site.asked = 1e6;
    site.strange = 0.5; // a slow server
    site.run(60);
    EXPECT_EQ(site.capacity.rate(), before);
}

TEST(Capacity, FewConnectionsThatNobodyWaitsForShowWhatTheyBring)
{
    Site site;
    site.limited = false;
    site.run(20);
    EXPECT_GT(site.capacity.rate(), 0.95 * 10e6) << "whoever brings it: the link carries so much";
    EXPECT_LT(site.capacity.rate(), 1.05 * 10e6);
}

TEST(Capacity, ServersThatSendLessLeaveItAsItWas)
{
    Site site;
    site.run(20);
    const double before = site.capacity.rate();
    site.asked = 2e6; // a parent proxy with a narrow link of its own, or slow servers throughout
    site.run(120);
    EXPECT_NEAR(site.capacity.rate(), before, 0.05 * before);
}

TEST(Capacity, OneFarServerAmongOthersIsLeftOutByWhoTellsTheQueue)
{
    Site site; // with that address alone: q contains the path's delay as long as no other is used
    site.run(20);
    const double before = site.capacity.rate();
    site.strange = 0.4;
    site.run(10);
    EXPECT_GT(site.capacity.rate(), 0.9 * before);
    EXPECT_TRUE(site.gave(CapacityReason::LongerPath) || site.lowest > 0.9 * before);
}

TEST(Capacity, APathThatBecomesLongerIsNoQueue)
{
    for (const msfrs_time more : {70 * Ms, 150 * Ms, 400 * Ms}) {
        Site site;
        site.run(20);
        const double before = site.capacity.rate();
        for (int n = 0; n < 4; ++n) { // two paths, a quarter of a minute each
            site.longer = more;
            site.run(15);
            EXPECT_GT(site.capacity.rate(), 0.9 * before) << "longer by ns " << more;
            EXPECT_GT(site.lowest, 0.1 * before);
            site.longer = 0;
            site.run(15);
            EXPECT_NEAR(site.capacity.rate(), before, 0.06 * before) << "longer by ns " << more;
        }
        EXPECT_TRUE(site.gave(CapacityReason::LongerPath)) << "longer by ns " << more;
    }
}

TEST(Capacity, APathThatBecomesALittleLongerIsNoQueue)
{
    for (const double rate : {5e6, 10e6}) {
        for (msfrs_time more = 20 * Ms; more <= 100 * Ms; more += 5 * Ms) {
            Site site;
            site.rate = rate;
            site.run(40);
            site.longer = more;
            site.run(60);
            EXPECT_GT(site.capacity.rate(), 0.9 * rate) << "longer by ns " << more;
            EXPECT_GT(site.lowest, 0.1 * rate) << "longer by ns " << more;
        }
    }
}

TEST(Capacity, AQueueThatStaysForOthersDoesNotBringItDown)
{
    Site site; // an upload fills the uplink: all RTT samples are longer by its queue, for minutes
    site.run(20);
    const double before = site.capacity.rate();
    site.longer = 800 * Ms;
    site.run(60);
    EXPECT_GT(site.capacity.rate(), 0.9 * before);
}

TEST(Capacity, ALittleLossIsNoCongestion)
{
    Site site;
    site.lost = 0.01;
    site.run(120);
    EXPECT_NEAR(site.capacity.rate(), 10e6, 0.5e6);
    EXPECT_NEAR(site.capacity.report().loss, 0.03, 0.01);
    EXPECT_FALSE(site.gave(CapacityReason::Loss));
}

TEST(Capacity, WhereThereIsNoQueueLossTellsThatTheLinkCarriesLess)
{
    Site site;
    site.run(20);
    site.policed = true;
    site.rate = 4e6;
    site.run(10);
    EXPECT_LT(site.capacity.rate(), 1.1 * 4e6);
    EXPECT_TRUE(site.gave(CapacityReason::Loss));
    site.run(60);
    EXPECT_GT(site.lowest, 0.95 * 4e6);
    EXPECT_LT(site.highest, 1.1 * 4e6);
}

TEST(Capacity, AShortBufferHidesItsQueueAndDeliveryBoundsIt)
{
    Site site;
    site.room = 0.005;
    site.run(20);
    site.run(60);
    EXPECT_GT(site.lowest, 0.95 * 10e6);
    EXPECT_LT(site.highest, 1.06 * 10e6);
}

TEST(Capacity, WhereMarksKeepTheQueueShortItIsAFifthTooHighAtMost)
{
    Site site;
    site.marked = 0.005;
    site.run(20);
    site.run(300);
    EXPECT_GT(site.lowest, 0.95 * 10e6);
    EXPECT_LT(site.highest, 1.2 * 10e6) << "a fifth beyond what came last as it grew";
    EXPECT_GT(site.carried, 0.98 * 10e6);
}

TEST(Capacity, UploadsAloneSayNothingOfTheDownlink)
{
    Site site;
    site.run(20);
    const double before = site.capacity.rate();
    site.limited = false;
    site.asked = 0.3e6; // acknowledgements, behind a second of a full uplink
    site.longer = Second;
    site.run(120);
    EXPECT_EQ(site.lowest, before);
}

TEST(Capacity, ABurstOfOnesOwnUploadsDoesNotLast)
{
    for (const double burst : {0.5, 2.0, 5.0, 20.0}) {
        Site site;
        site.run(20);
        const double before = site.capacity.rate();
        site.longer = 600 * Ms;
        site.run(burst);
        site.longer = 0;
        site.run(5);
        EXPECT_GT(site.capacity.rate(), 0.9 * before) << "s " << burst;
    }
}

TEST(Capacity, WithoutRoundTripsWhatTheLinkBringsIsBelieved)
{
    Site site;
    site.sampled = false;
    site.run(20);
    EXPECT_GT(site.capacity.rate(), 0.95 * 10e6);
    EXPECT_LT(site.capacity.rate(), 1.05 * 10e6);
    EXPECT_LT(site.capacity.report().queue, 0);
}

TEST(Capacity, AbsurdRoundTripsCountForNothing)
{
    for (const double absurd : {-5.0, 1e3, 4e6}) {
        Site site;
        site.run(20);
        const double before = site.capacity.rate();
        site.strange = absurd;
        site.run(20);
        EXPECT_EQ(site.capacity.rate(), before) << absurd;
        EXPECT_LT(site.capacity.report().queue, 0) << absurd;
    }
}

TEST(Capacity, ABaseOfNothingIsTakenAsIt)
{
    Site site;
    site.known = 0;
    site.run(60);
    EXPECT_NEAR(site.capacity.rate(), 10e6, 0.6e6);
}

TEST(Capacity, ACounterOrAClockThatGoesBackBeginsAnewWithWhatIsKnown)
{
    for (const bool clock : {false, true}) {
        Site site;
        site.run(20);
        const double before = site.capacity.rate();
        site.total -= clock ? 0 : 1e7;
        site.now -= clock ? 3600 * Second : 0;
        site.tell();
        EXPECT_EQ(site.capacity.rate(), before);
        site.run(10);
        EXPECT_NEAR(site.capacity.rate(), before, 0.05 * before);
        EXPECT_GT(site.lowest, 0.95 * before);
        site.rate = 5e6;
        site.run(10);
        EXPECT_NEAR(site.capacity.rate(), 5e6, 0.3e6) << "still awake";
    }
}

TEST(Capacity, WhereAnotherFindsItItIsWhatThatOneHasAndGoesOnFromThere)
{
    Site site;
    site.run(20);
    site.capacity.follow(500e6, site.now);
    EXPECT_EQ(site.capacity.rate(), Max);
    site.capacity.follow(4e6, site.now);
    EXPECT_EQ(site.capacity.report().changes.back().why, CapacityReason::Followed);
    site.run(10);
    EXPECT_EQ(site.lowest, 4e6);
    EXPECT_EQ(site.highest, 4e6) << "whatever is seen here";
    EXPECT_GT(site.capacity.report().delivered, 4.5e6) << "but it is seen";
    site.capacity.lead();
    site.run(0.2);
    EXPECT_GT(site.capacity.rate(), 4.5e6) << "at once";
}

TEST(Capacity, FollowsDeliveryOnAVariableRateLink)
{
    Site site;
    site.vary();
    ASSERT_TRUE(site.capacity.varies());
    for (int n = 0; n < 20; ++n) {
        site.rate = n % 2 ? 10e6 : 2e6;
        site.run(1.2);
        EXPECT_NEAR(site.capacity.rate(), site.rate, 0.1 * site.rate) << n;
        site.run(2);
        EXPECT_GT(site.carried, 0.95 * site.rate) << n;
        EXPECT_LT(site.worst, n % 2 ? 0.1 : 0.45) << n; // bytes released at 10 Mbit/s take 0.4 s at 2
    }
    EXPECT_TRUE(site.gave(CapacityReason::VariableRate));
    site.limited = false;
    site.asked = 1e6;
    const double before = site.capacity.rate();
    site.run(5);
    EXPECT_EQ(site.lowest, before) << "little was asked for";
    site.limited = true;
    site.asked = 1e12;
    site.run(70);
    EXPECT_FALSE(site.capacity.varies()) << "a link that stays again";
    EXPECT_NEAR(site.capacity.rate(), site.rate, 0.05 * site.rate);
}

TEST(Capacity, DoesNotFollowDeliveryOnceItIsThePathOrTheServers)
{
    Site longer, slow;
    for (auto *const site : {&longer, &slow})
        site->vary();
    longer.longer = 400 * Ms;
    longer.run(15);
    EXPECT_FALSE(longer.capacity.varies());
    longer.run(60);
    EXPECT_GT(longer.capacity.rate(), 0.9 * longer.rate);
    slow.asked = 2e6;
    slow.run(20);
    EXPECT_FALSE(slow.capacity.varies());
    slow.asked = 1e12;
    slow.run(10);
    EXPECT_GT(slow.capacity.rate(), 0.9 * slow.rate);
}

TEST(Capacity, DoesNotFollowDeliveryWhileAnotherFindsTheRateNorAfterAClockThatWentBack)
{
    Site led, back;
    for (auto *const site : {&led, &back})
        site->vary();
    led.capacity.follow(5e6, led.now);
    EXPECT_FALSE(led.capacity.varies());
    back.now -= 20 * Second;
    back.tell();
    back.run(5);
    EXPECT_FALSE(back.capacity.varies());
    EXPECT_NEAR(back.capacity.rate(), back.rate, 0.1 * back.rate);
}

TEST(Capacity, DoesNotFollowDeliveryWherePacketsArePaced)
{
    Site site;
    site.vary(false);
    EXPECT_FALSE(site.capacity.varies());
}

TEST(Capacity, TellsWhatItWasForMostOfTheTimeInWhichSomebodyWaited)
{
    Site site;
    site.run(20);
    site.run(600);
    site.rate = 2e6;
    site.run(300);
    site.limited = false; // nobody waits at night, so the estimate does not count as known
    site.run(3600);
    const auto report = site.capacity.report();
    EXPECT_NEAR(report.known, 920, 5);
    EXPECT_NEAR(report.mostly, 2e6, 0.2e6);
    EXPECT_NEAR(report.half, 10e6, 1e6);
}

TEST(Capacity, TellsItsLastChangesAndWhatItSaw)
{
    Site site;
    site.run(20);
    site.rate = 2e6;
    site.run(20);
    const auto &report = site.capacity.report();
    ASSERT_FALSE(report.changes.empty());
    EXPECT_LE(report.changes.size(), 16u);
    for (size_t n = 1; n < report.changes.size(); ++n) {
        EXPECT_GE(report.changes[n].at, report.changes[n - 1].at);
        EXPECT_EQ(report.changes[n].from, report.changes[n - 1].to) << "nothing is left out";
    }
    EXPECT_EQ(report.changes.back().to, report.rate);
    EXPECT_NEAR(report.delivered, 2e6, 0.1e6);
    EXPECT_TRUE(report.limited);
}

} // namespace
} // namespace msfrs
