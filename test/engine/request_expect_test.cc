// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Sizes stated by servers: their effect on the order, and that of sizes that cannot be true.
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// One slot, and three started responses of one user with stated sizes. The one with the least `expected` goes first.
class ExpectTest : public RequestTest {
protected:
    void expect(TestOwner &o, const int64_t remaining) { s->expect(*o.request, remaining, clock.now()); }

    /// "a" and "b" wait for their next quantum, b with 20000 bytes remaining; "holder" has the slot.
    void pauseBoth(const std::function<void(TestOwner &a)> &say)
    {
        start(1);
        auto &first = hold(0, "u", "a"), &second = hold(0, "u", "b"), &holder = hold(0, "u", "holder");
        say(first);
        EXPECT_FALSE(read(first, 10'000));
        expect(second, 30'000);
        EXPECT_FALSE(read(second, 10'000));
        EXPECT_EQ(granted(), "a b holder");
        last = &holder;
    }
    std::string next()
    {
        done(*last);
        return granted();
    }

    TestOwner *last = nullptr;
};

TEST_F(ExpectTest, WhatWasSaidIsCountedDown)
{
    pauseBoth([&](TestOwner &a) { expect(a, 29'999); });
    EXPECT_EQ(next(), "a") << "19999 against 20000";
}

TEST_F(ExpectTest, WhatNobodySaidCountsAsMuchAsItHasHad)
{
    pauseBoth([](TestOwner &) {});
    EXPECT_EQ(next(), "a") << "10000 against 20000";
}

TEST_F(ExpectTest, MoreIsLeftThanTheOtherHas)
{
    pauseBoth([&](TestOwner &a) { expect(a, 30'001); });
    EXPECT_EQ(next(), "b");
}

TEST_F(ExpectTest, WhoSendsMoreThanHeSaidCountsAsMuchAsHeHasHad)
{
    pauseBoth([&](TestOwner &a) {
        expect(a, 5);
        charge(a, 15'000); // and 10000 more with pauseBoth()
    });
    EXPECT_EQ(next(), "b") << "25000 against 20000";
}

TEST_F(ExpectTest, WhoSaysTheSameAgainAndAgainIsNotBelieved)
{
    pauseBoth([&](TestOwner &a) {
        for (int n = 0; n < 15; ++n) {
            expect(a, 1);
            charge(a, 1000);
        }
        expect(a, 1);
    });
    EXPECT_EQ(next(), "b") << "25000 against 20000";
}

TEST_F(ExpectTest, AFewBytesOfHeadersAreNoLie)
{
    pauseBoth([&](TestOwner &a) {
        expect(a, 12'000);
        charge(a, 500); // a reply on an FTP control connection
        expect(a, 12'000);
    });
    EXPECT_EQ(next(), "a") << "2000 against 20000";
}

TEST_F(ExpectTest, ARangeMayMakeItLess)
{
    pauseBoth([&](TestOwner &a) {
        expect(a, 1'000'000);
        expect(a, 10'100);
    });
    EXPECT_EQ(next(), "a") << "100 against 20000";
}

TEST_F(ExpectTest, NegativeAndAbsurdSizesSayNothing)
{
    for (const int64_t size : {int64_t(-1), INT64_MIN, INT64_MAX, (int64_t(1) << 60) + 1}) {
        SCOPED_TRACE(size);
        pauseBoth([&](TestOwner &a) { expect(a, size); });
        EXPECT_EQ(next(), "a") << "10000 against 20000";
        for (auto &o : owners) {
            if (!o.ended)
                done(o);
        }
        granted();
    }
}

TEST_F(ExpectTest, AChunkThatIsSmallerThanWhatCameBeforeItPutsNobodyForward)
{
    pauseBoth([&](TestOwner &a) {
        charge(a, 15'000);
        s->expectAtLeast(*a.request, 10'001, clock.now());
    });
    EXPECT_EQ(next(), "b") << "25000 against 20000";
}

TEST_F(ExpectTest, ALargeChunkPutsItBack)
{
    pauseBoth([&](TestOwner &a) { s->expectAtLeast(*a.request, 50'000, clock.now()); });
    EXPECT_EQ(next(), "b") << "40000 against 20000";
}

TEST_F(ExpectTest, AnExpectedSizeOrdersWhatIsNew)
{
    start(1);
    auto &holder = hold(0, "u", "holder");
    hold(0, "u", "unknown");
    auto &small = owners.emplace_back(*this, "small");
    small.request = s->hold(small, 0, "u", clock.now(), small.refusal, 300);
    done(holder);
    EXPECT_EQ(granted(), "holder small") << "300 against 4096";
}

TEST_F(ExpectTest, ItIsKnownAfterASilence)
{
    start(1);
    auto &a = hold(0, "u", "a"), &b = hold(0, "u", "b");
    expect(a, 10'000);
    rest(a);
    EXPECT_EQ(granted(), "a b");
    hold(0, "u", "new");
    EXPECT_FALSE(again(a));
    done(b);
    EXPECT_EQ(granted(), "new") << "4096 against 10000";
}

TEST_F(ExpectTest, ItIsCarriedOverAtReconfiguration)
{
    pauseBoth([&](TestOwner &a) { expect(a, 30'001); });
    config = s->config();
    config.arbiter.settings.push_back({"lead", "1000"}); // requires another engine
    s->reconfigure(config, clock.now());
    EXPECT_EQ(next(), "b") << "20000 against 20001, though a has had as much and came first";
}

} // namespace
} // namespace msfrs
