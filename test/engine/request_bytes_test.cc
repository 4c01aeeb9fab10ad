// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Release by bytes in flight: msfrs_window law=bytes.
#include "support/fake_interface.h"
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// C is 1 MB/s, R 10 ms and q* 30 ms: a quantum takes 0.4 of the link. A user's window is its share of 40 KB, plus a
/// segment.
class RequestBytes : public RequestTest {
protected:
    RequestBytes()
    {
        config.quantum = 16'000;
        config.rtt = 10 * Ms;
        config.window.law = WindowLaw::Bytes;
        start(0);
    }
    /// If granted, its window is known: a quantum, as long as few servers have responded. Before, it is the smallest
    /// one, which counts one and a quarter times: 0.137 of the link.
    TestOwner &hold(const uint32_t cls, const std::string &user, const std::string &name)
    {
        auto &owner = RequestTest::hold(cls, user, name);
        if (owner.served)
            s->receiveBuffer(*owner.request, 10 * Ms);
        return owner;
    }
};

TEST_F(RequestBytes, ReleasesWhileFewerMayComeThanTheLinkHolds)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    hold(0, "c", "c");
    hold(0, "d", "d");
    EXPECT_EQ(granted(), "a b c");
    EXPECT_EQ(s->window().because, "1 wait and the window is full (47 KB may be in flight, 120 % of what fits)");
    EXPECT_EQ(s->window().outstanding, 3);
    EXPECT_NEAR(s->window().limit, 2.5, 0.01) << "as many of the same would fit";
    charge(a, 8'000);
    EXPECT_EQ(granted(), "") << "all of the link";
    charge(b, 1);
    EXPECT_EQ(granted(), "d") << "as soon as bytes have come, and not only when a turn is over";
}

TEST_F(RequestBytes, AResponseWithLittleLeftCountsAsThat)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    hold(0, "c", "c");
    for (const auto name : {"1", "2", "3", "4", "5", "6", "7"})
        hold(1, name, name);
    EXPECT_EQ(granted(), "a b c");
    s->expect(*a.request, 500, clock.now());
    s->expect(*b.request, 500, clock.now());
    pass(20 * Ms);
    EXPECT_EQ(granted(), "1 2 3 4 5") << "0.425 of the link was taken, then up to 0.97";
}

TEST_F(RequestBytes, WhoIsGoneOrSilentHoldsNothing)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    hold(0, "c", "c");
    for (const auto name : {"d", "e", "f", "g", "h", "i", "j"})
        hold(1, name, name);
    EXPECT_EQ(granted(), "a b c");
    done(a);
    EXPECT_EQ(granted(), "d e") << "0.8 of the link was taken, then 0.94";
    rest(b);
    EXPECT_EQ(granted(), "f g h");
}

TEST_F(RequestBytes, AServerThatDoesNotAnswerInTwoRoundTripsHoldsNothing)
{
    hold(0, "a", "a");
    hold(0, "b", "b");
    hold(0, "c", "c");
    for (const auto name : {"d", "e", "f", "g"})
        hold(1, name, name);
    EXPECT_EQ(granted(), "a b c");
    pass(110 * Ms);
    EXPECT_EQ(granted(), "") << "three round trips of 40 ms: a handshake may come first";
    pass(50 * Ms);
    EXPECT_EQ(granted(), "d e f g") << "a look later";
    EXPECT_EQ(s->window().outstanding, 7) << "they keep their slots";
}

TEST_F(RequestBytes, AStreamHoldsTwiceWhatItUses)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    for (const auto name : {"c", "d", "e", "f"})
        hold(1, name, name);
    EXPECT_EQ(granted(), "a b c");
    for (int n = 0; n < 6; ++n) { // 5 KB/s each
        pass(20 * Ms);
        charge(a, 100);
        charge(b, 100);
    }
    EXPECT_EQ(granted(), "d e f") << "a and b hold 0.01 of the link, c nothing, since its answer is overdue";
}

TEST_F(RequestBytes, FarServersMayHaveMoreInFlight)
{
    std::vector<Request *> held;
    for (const auto name : {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"})
        held.push_back(hold(1, name, name).request);
    EXPECT_EQ(granted(), "1 2 3");
    for (size_t n = 0; n < 3; ++n)
        s->receiveBuffer(*held[n], 130 * Ms); // with this the scheduler learns the base RTT
    pass(20 * Ms);
    EXPECT_EQ(granted(), "4 5 6 7 8 9") << "three quanta in 160 ms take 0.3 of the link";
}

TEST_F(RequestBytes, AUserWhoseServerIsSilentOrSlowLeavesItsWindowToOthers)
{
    config.rtt = 300 * Ms; // the most is C rtt
    config.window.reserve = 10;
    start(0);
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    hold(0, "c", "c");
    charge(a, 1);
    charge(b, 1);
    EXPECT_NEAR(s->receiveBuffer(*a.request, 50 * Ms), 80'000 / 3 + 1460, 2);
    for (int n = 0; n < 60; ++n) { // b is a stream of 5 KB/s, and the answer for c is overdue
        charge(b, 100);
        pass(20 * Ms);
    }
    EXPECT_GT(s->receiveBuffer(*a.request, 50 * Ms), 70'000) << "nearly all";
}

TEST_F(RequestBytes, AWindowIsTheUsersShareByWeightDividedAmongItsResponses)
{
    config.rtt = 300 * Ms; // the most is C rtt
    config.window.reserve = 10;
    start(0);
    auto &gold = hold(0, "u", "1");
    charge(gold, 1);
    EXPECT_NEAR(s->receiveBuffer(*gold.request, 50 * Ms), 80'000 + 1460, 2) << "alone it fills the link";
    auto &bronze = hold(1, "v", "1");
    charge(bronze, 1);
    EXPECT_NEAR(s->receiveBuffer(*gold.request, 50 * Ms), 80'000 * 2 / 3 + 1460, 2);
    EXPECT_NEAR(s->receiveBuffer(*bronze.request, 50 * Ms), 80'000 / 3 + 1460, 2);
    auto &second = hold(1, "v", "2");
    charge(second, 1);
    EXPECT_NEAR(s->receiveBuffer(*bronze.request, 50 * Ms), 80'000 / 3 / 2 + 1460, 2);
    EXPECT_NEAR(s->receiveBuffer(*gold.request, 50 * Ms), 80'000 * 2 / 3 + 1460, 2) << "whatever others have in service";
    done(bronze);
    done(second);
    EXPECT_NEAR(s->receiveBuffer(*gold.request, 50 * Ms), 80'000 + 1460, 2);
}

/// With 201 in service every fourth read looks at all of them.
TEST_F(RequestBytes, OfManyInServiceOneHasItsShareWithinAFewReads)
{
    config.rate = 800e6;
    config.rtt = 300 * Ms;
    config.window.reserve = 10;
    start(0);
    std::vector<TestOwner *> all;
    for (int n = 0; n < 201; ++n) {
        all.push_back(&hold(1, std::to_string(n), "1"));
        charge(*all.back(), 1);
    }
    ASSERT_EQ(s->window().outstanding, 201);
    const auto window = [&] {
        for (int read = 0; read < 3; ++read)
            s->receiveBuffer(*all[0]->request, 50 * Ms);
        return s->receiveBuffer(*all[0]->request, 50 * Ms);
    };
    EXPECT_NEAR(window(), 8e6 / 201 + 1460, 2);
    for (int n = 1; n < 201; ++n)
        done(*all[n]);
    EXPECT_NEAR(window(), 8e6 + 1460, 2);
}

TEST_F(RequestBytes, WhatEndsWithItsTurnComesInOneRoundTrip)
{
    auto &a = hold(0, "a", "a");
    for (const auto name : {"b", "c", "d", "e"})
        charge(hold(0, name, name), 1'000);
    const int share = s->receiveBuffer(*a.request, 10 * Ms);
    EXPECT_LT(share, 12'000);
    s->expect(*a.request, 15'000, clock.now());
    EXPECT_EQ(s->receiveBuffer(*a.request, 10 * Ms), 15'000);
    s->expect(*a.request, 16'001, clock.now());
    EXPECT_EQ(s->receiveBuffer(*a.request, 10 * Ms), share) << "it does not";
}

TEST_F(RequestBytes, QueuesForTheNextTurnWhileTheRestOfThisOneComes)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(0, "b", "b");
    auto &c = hold(0, "c", "c");
    for (const auto name : {"d", "e"})
        hold(0, name, name);
    EXPECT_EQ(granted(), "a b c");
    for (auto *const owner : {&a, &b, &c})
        charge(*owner, 1);
    const int window = s->receiveBuffer(*a.request, 10 * Ms); // a fifth of 40 KB, plus a segment
    EXPECT_EQ(window, 9'460);
    EXPECT_TRUE(read(a, 16'000 - window - 2));
    EXPECT_EQ(s->classes(clock.now())[0].queued, 2u) << "more is left than is in flight";
    EXPECT_TRUE(read(a, 1));
    EXPECT_EQ(s->classes(clock.now())[0].paused, 0u) << "it reads on";
    EXPECT_EQ(s->classes(clock.now())[0].inFlight, 3u);
    EXPECT_EQ(s->window().because.substr(0, 6), "2 wait") << "and not a";
    check();

    pass(100 * Ms);
    EXPECT_TRUE(read(a, window - 1)); // so that others are released
    EXPECT_EQ(granted(), "d e");
    EXPECT_FALSE(read(a, 1)) << "now it waits";
    EXPECT_EQ(s->classes(clock.now())[0].paused, 1u);
    EXPECT_EQ(s->trace(*a.request, clock.now()).totalWait, 0) << "from now on";
    check();
}

TEST_F(RequestBytes, WhoHasItsNextTurnInTimeReadsOnAndIsNotTold)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(1, "b", "b");
    hold(0, "c", "c");
    hold(1, "d", "d");
    EXPECT_EQ(granted(), "a b c");
    s->receiveBuffer(*a.request, 10 * Ms);
    EXPECT_TRUE(read(a, 15'000));
    done(b);
    EXPECT_EQ(granted(), "d");
    charge(a, 500);
    pass(Second);
    EXPECT_EQ(s->trace(*a.request, clock.now()).quanta, 2u) << "of the class that had least for its weight";
    EXPECT_EQ(granted(), "") << "its owner reads anyway";
    EXPECT_TRUE(read(a, 500 + 15'999));
    check();
}

TEST_F(RequestBytes, WhoFallsSilentWhileItQueuesEarlyWaitsForNothing)
{
    auto &a = hold(0, "a", "a");
    for (const auto name : {"b", "c", "d"})
        hold(0, name, name);
    granted();
    s->receiveBuffer(*a.request, 10 * Ms);
    EXPECT_TRUE(read(a, 12'000));
    rest(a);
    EXPECT_EQ(granted(), "d") << "what was to come does not";
    check();
}

TEST_F(RequestBytes, WhoAsksForMoreWhileItQueuesEarlyWaitsAnewWhenItHasTo)
{
    auto &a = hold(0, "a", "a");
    auto &b = hold(1, "b", "b");
    hold(0, "c", "c");
    for (const auto name : {"d", "e", "f"})
        hold(1, "d", name);
    s->receiveBuffer(*a.request, 10 * Ms);
    EXPECT_TRUE(read(a, 15'000));
    done(b);
    charge(a, 500);
    pass(Second);
    EXPECT_EQ(s->trace(*a.request, clock.now()).quanta, 2u);
    for (const auto name : {"k", "l", "m", "n", "o", "p"})
        hold(1, name, name);
    EXPECT_TRUE(read(a, 15'000));
    askedMore(a);
    EXPECT_FALSE(read(a, 1'500));
    EXPECT_EQ(s->classes(clock.now())[0].paused, 0u);
    EXPECT_EQ(s->held(9, clock.now()).back().what, HeldReport::What::Exchange);
    check();
}

TEST_F(RequestBytes, ARateThatTheLinkCannotReachIsDoubtedOnce)
{
    FakeInterface interface("bytes1");
    config.interface = interface.name();
    config.patience = 3600 * Second; // no request is answered here
    config.maxWait = 3600 * Second;
    start(0);
    auto &a = hold(0, "a", "a");
    for (int n = 0; n < 40; ++n)
        hold(0, "b" + std::to_string(n), "b");
    uint64_t carried = 0;
    const auto see = [&](const msfrs_time queue, const int64_t seconds, const uint64_t bytes) {
        a.sees = {7, 10 * Ms + queue, 10 * Ms};
        for (int64_t n = 0; n < 10 * seconds; ++n) {
            interface.bytes = carried += bytes / 10;
            for (auto &owner : owners) { // what is never answered would leave the window to others
                if (owner.served && s->trace(*owner.request, clock.now()).bytes == 0)
                    s->charge(*owner.request, 1, clock.now());
            }
            pass(100 * Ms);
            s->lookAtPath(*a.request, clock.now());
        }
    };
    see(0, 60, 900'000);
    see(60 * Ms, 60, 1'000'000);
    see(60 * Ms, 20, 900'000);
    see(0, 10, 900'000);
    EXPECT_EQ(host.logged(0), "") << "no queue, or the link is full, or not for long";
    see(60 * Ms, 120, 900'000);
    EXPECT_EQ(host.logged(0).substr(0, 89), "a queue of 60 ms stands at the provider, and the link is at 90.0 % of its rate: it may ca");
    EXPECT_EQ(host.logged(0).find("times)"), std::string::npos) << "said once";
}

/// As if another party had booked some thousandths of C, and had half of all active weights.
class OtherParty : public Ledger {
public:
    explicit OtherParty(const uint32_t thousandths)
    {
        others_.places = thousandths;
        others_.part = 0.5;
    }
    const OtherParties &look(msfrs_time) override { return others_; }
    void say(const PartyState &state, msfrs_time) override { told = state; }

    PartyState told;

private:
    OtherParties others_;
};

TEST_F(RequestBytes, WhatAnotherPartyHasBookedIsBooked)
{
    for (const auto &[thousandths, wanted] : {std::pair(0u, "a b c"), std::pair(700u, "a"), std::pair(1000u, "")}) {
        const auto other = std::make_shared<OtherParty>(thousandths);
        auto requests = host.requests();
        requests.ledger = other;
        s = std::make_unique<RequestScheduler>(config, requests, clock.now());
        std::vector<TestOwner *> all;
        for (const auto name : {"a", "b", "c", "d"})
            all.push_back(&hold(0, name, name));
        EXPECT_EQ(granted(), wanted) << thousandths;
        if (thousandths == 700) {
            EXPECT_EQ(other->told.places, 400) << "16 KB in 40 ms";
            EXPECT_EQ(s->receiveBuffer(*all[0]->request, 10 * Ms), 1460 + 40'000 / 4 / 2) << "half of it is theirs";
        }
        for (auto *const owner : all)
            done(*owner);
        granted(); // when the others ended
    }
}

} // namespace
} // namespace msfrs
