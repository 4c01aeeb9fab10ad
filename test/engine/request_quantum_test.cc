// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Quanta, and owners that call back from granted() and expired().
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class QuantumTest : public RequestTest {};

TEST_F(QuantumTest, NobodyWaitsSoItReadsOn)
{
    start(1);
    auto &a = hold(0, "u", "a");
    for (int n = 0; n < 10; ++n)
        EXPECT_TRUE(read(a, 700));
    EXPECT_EQ(granted(), "a") << "answered directly, not by granted()";
    EXPECT_EQ(report("gold").quanta, 6u) << "of 1400 bytes each: a quantum ends at the first read beyond 1000";
    EXPECT_EQ(s->trace(*a.request, clock.now()).quanta, 6u);
}

TEST_F(QuantumTest, AQuantumIsGivenWholeEvenWhenOthersWait)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    EXPECT_TRUE(read(a, 999));
    EXPECT_FALSE(read(a, 1)) << "1000 are used up, and b waits";
    EXPECT_EQ(granted(), "a b");
    EXPECT_EQ(report("gold").paused, 1u);
    EXPECT_EQ(report("gold").queued, 0u);
    EXPECT_EQ(report("gold").users, 1u) << "its user stays active";
    clock.advance(Second);
    EXPECT_FALSE(read(b, 1000)) << "gold has had 500 by its weight, bronze 1000";
    EXPECT_EQ(granted(), "a");
    EXPECT_TRUE(read(a, 999));
    EXPECT_TRUE(read(a, 1)) << "1000 against 1000: gold has the greater w * UC";
    EXPECT_FALSE(read(a, 1000));
    EXPECT_EQ(granted(), "b");
    EXPECT_EQ(report("gold").quanta, 3u);
    EXPECT_EQ(s->trace(*a.request, clock.now()).totalWait, Second);
}

TEST_F(QuantumTest, ItsOwnSuccessorIsAnsweredDirectly)
{
    start(1);
    auto &a = hold(0, "u", "a");
    hold(1, "v", "b");
    EXPECT_FALSE(read(a, 10'000));
    EXPECT_EQ(granted(), "a b");
    // gold has had 5000 by its weight: bronze continues until it has had as much, although a waits.
    for (int n = 0; n < 4; ++n)
        EXPECT_TRUE(read(owners[1], 1000));
    EXPECT_EQ(granted(), "");
    EXPECT_FALSE(read(owners[1], 1000)) << "of equals the greater w * UC";
    EXPECT_EQ(granted(), "a");
    EXPECT_EQ(report("bronze").quanta, 5u);
}

TEST_F(QuantumTest, TheSuccessorIsChosenByTheArbiterNotByTurns)
{
    config.arbiter = {"fifo", {}};
    start(1);
    auto &a = hold(0, "u", "a");
    hold(0, "u", "b");
    hold(1, "v", "c");
    EXPECT_FALSE(read(a, 1000));
    EXPECT_EQ(granted(), "a b");
    EXPECT_FALSE(read(owners[1], 1000));
    EXPECT_EQ(granted(), "c") << "a's continuation stands behind c";
}

TEST_F(QuantumTest, NoneServesAResponseInOnePiece)
{
    config.quantum = 0;
    start(1);
    auto &a = hold(0, "u", "a");
    hold(1, "v", "b");
    for (int n = 0; n < 100; ++n)
        EXPECT_TRUE(read(a, 1'000'000));
    EXPECT_EQ(granted(), "a");
    done(a);
    EXPECT_EQ(granted(), "b");
    EXPECT_EQ(report("gold").quanta, 1u);
}

TEST_F(QuantumTest, BytesThatArriveDuringAPauseAreCharged)
{
    start(1);
    auto &a = hold(0, "u", "a");
    hold(1, "v", "b");
    EXPECT_FALSE(read(a, 1000));
    const double before = report("gold").service;
    s->charge(*a.request, 400, clock.now()); // bytes of the socket's buffer
    EXPECT_EQ(report("gold").bytes, 1400u);
    EXPECT_DOUBLE_EQ(report("gold").service, before + 200);
    EXPECT_EQ(s->trace(*a.request, clock.now()).bytes, 1400);
}

TEST_F(QuantumTest, BytesOfAQueuedRequestAreCharged)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    s->charge(*b.request, 300, clock.now());
    EXPECT_EQ(report("bronze").bytes, 300u);
    EXPECT_DOUBLE_EQ(report("bronze").service, 0) << "its user owes it";
    done(a);
    EXPECT_DOUBLE_EQ(report("bronze").service, 300) << "and has begun its turn";
}

/// Owners that continue from inside granted(): as a host that reads as long as it may.
class Reentrancy : public RequestTest {};

TEST_F(Reentrancy, DoneFromInsideGranted)
{
    start(1);
    auto &a = hold(0, "u", "a");
    for (int n = 0; n < 50; ++n) {
        auto &o = hold(0, "u", "r");
        o.onGranted = [this, &o] { done(o); }; // a cache hit after all, or an error page
    }
    hold(0, "u", "last");
    done(a);
    EXPECT_EQ(owners.back().grants, 1);
    EXPECT_EQ(s->window().outstanding, 1);
}

TEST_F(Reentrancy, HoldFromInsideGranted)
{
    start(2);
    auto &a = hold(0, "u", "a");
    auto &b = hold(0, "u", "b");
    auto &c = hold(0, "u", "c");
    c.onGranted = [this] {
        hold(1, "v", "d");
        hold(1, "v", "e");
    };
    done(a);
    EXPECT_EQ(granted(), "a b c");
    done(b);
    EXPECT_EQ(granted(), "d");
}

TEST_F(Reentrancy, ReadMoreFromInsideGrantedWhileAnotherAsks)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    auto &c = hold(1, "v", "c");
    b.onGranted = [this, &b] {
        b.onGranted = nullptr;
        EXPECT_FALSE(read(b, 1500)); // all bytes of the socket: a quantum ends during a's readMore()
    };
    EXPECT_FALSE(read(a, 4000)) << "bronze has had 1500, gold 2000 by its weight";
    check();
    EXPECT_EQ(granted(), "a b c");
    EXPECT_TRUE(c.served);
}

TEST_F(Reentrancy, TheAskerIsChosenAfterAnotherHadItsTurnWithinTheQuestion)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    b.onGranted = [this, &b] {
        b.onGranted = nullptr;
        EXPECT_FALSE(read(b, 50'000));
    };
    // b goes first (0 against 2000), uses 50000, pauses; then a is next: its readMore() returns true.
    EXPECT_TRUE(read(a, 4000));
    EXPECT_EQ(a.grants, 1) << "answered directly, and not by granted() as well";
    EXPECT_TRUE(a.served);
    check();
    EXPECT_EQ(granted(), "a b");
}

TEST_F(Reentrancy, TheAskerEndsInsideItsOwnQuestion)
{
    start(1);
    auto &a = hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    b.onGranted = [this, &a] { done(a); }; // the client of both has disconnected
    EXPECT_FALSE(read(a, 4000));
    check();
    EXPECT_TRUE(a.ended);
    EXPECT_EQ(s->window().outstanding, 1);
    EXPECT_EQ(granted(), "a b");
}

TEST_F(Reentrancy, ANewRequestInTheAskersPlaceIsStillGranted)
{
    start(2);
    auto &a = hold(0, "u", "a");
    hold(0, "u", "filler");
    auto &b = hold(1, "v", "b");
    TestOwner *fresh = nullptr;
    b.onGranted = [&] {
        done(a); // its memory may be reused by the next request
        fresh = &hold(1, "w", "fresh");
        done(owners[1]);
    };
    read(a, 4000);
    ASSERT_TRUE(fresh);
    EXPECT_EQ(fresh->grants, 1) << "the place was taken by a request that nobody told about it";
    check();
}

TEST_F(Reentrancy, ExpiredOwnersMayHoldAgain)
{
    config.maxWait = Second;
    start(1);
    hold(0, "u", "a");
    auto &b = hold(1, "v", "b");
    b.onExpired = [this, &b] {
        done(b);
        hold(1, "v", "again");
    };
    clock.advance(2 * Second);
    s->tick(clock.now());
    EXPECT_EQ(b.expiries, 1);
    EXPECT_EQ(owners.back().expiries, 0);
    check();
}

TEST_F(Reentrancy, APausedResponseThatIsDueReadsAtOnce)
{
    config.maxWait = 5 * Second;
    start(1);
    auto &a = hold(0, "u", "a");
    hold(1, "v", "holder");
    std::function<void()> waitOn = [this, &waitOn] {
        auto &o = hold(1, "w", "always waits");
        o.onExpired = [this, &o, &waitOn] {
            done(o);
            waitOn();
        };
    };
    waitOn();
    EXPECT_FALSE(read(a, 1'000'000));
    a.onGranted = [this, &a] { EXPECT_FALSE(read(a, 1000)); }; // from inside the tick
    pass(20 * Second);
    EXPECT_EQ(a.grants, 5) << "once every max_wait";
    for (auto &o : owners)
        o.onExpired = nullptr;
}

/// Random owners that make any call from any callback; the fixture checks the contract of granted() and every count.
class Storm : public RequestTest, public ::testing::WithParamInterface<uint64_t> {
protected:
    TestOwner *any(const bool served)
    {
        for (int tries = 0; tries < 20 && !owners.empty(); ++tries) {
            auto &o = owners[random.below(owners.size())];
            if (o.request && !o.ended && o.served == served && !o.inReadMore && o.expiries == 0)
                return &o;
        }
        return nullptr;
    }

    void act(const int depth)
    {
        switch (random.below(8)) {
        case 0: case 1: case 2: {
            auto &o = hold(static_cast<uint32_t>(random.below(2)), std::to_string(random.below(6)), "r");
            if (o.request)
                o.onGranted = [this, depth] {
                    if (depth < 4 && random.chance(0.5))
                        act(depth + 1);
                };
            break;
        }
        case 3: case 4:
            if (auto *const o = any(true))
                read(*o, random.between(0, 3000));
            break;
        case 5:
            if (auto *const o = any(true))
                done(*o);
            break;
        case 6:
            if (auto *const o = any(false))
                done(*o);
            break;
        case 7:
            s->chargeExcess(0, "u", random.between(0, 500), clock.now());
            if (depth == 0 && random.chance(0.3)) {
                clock.advance(random.between(0, 3 * Second));
                s->tick(clock.now());
            }
            break;
        }
    }

    Random random{GetParam()};
};

TEST_P(Storm, KeepsEveryCount)
{
    config.maxWait = 8 * Second;
    config.window.reserve = GetParam() % 2 ? 0.5 : 0;
    const bool bytes = GetParam() > 8;
    config.window.law = bytes ? WindowLaw::Bytes : WindowLaw::Paper;
    if (GetParam() % 3 == 0)
        config.arbiter = {TestModule("checker"), {}};
    start(!bytes && GetParam() % 4 ? 3 : 0);
    for (int n = 0; n < 3000 && !HasFailure(); ++n) {
        act(0);
        check();
    }
    EXPECT_EQ(host.logged(0), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, Storm, ::testing::Range(uint64_t(1), uint64_t(17)));

} // namespace
} // namespace msfrs
