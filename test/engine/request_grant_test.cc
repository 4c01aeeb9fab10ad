// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Charges at a grant, before any bytes arrive, and their return.
#include "support/requests.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// Quanta of 1000 bytes; gold's counter goes up by half of what it is charged.
class GrantTest : public RequestTest {
protected:
    TestOwner &holdExpecting(const int64_t expected)
    {
        auto &o = owners.emplace_back(*this, "sized");
        o.request = s->hold(o, 0, "u", clock.now(), o.refusal, expected);
        return o;
    }
    double service() { return report("gold").service; }
    /// Changes to another engine, with the requests' received and charged bytes.
    void changeArbiter(const std::string &lead)
    {
        config = s->config();
        config.arbiter.settings = {{"ahead", "0"}, {"lag", "0"}, {"lead", lead}, {"favour", "0"}};
        s->reconfigure(config, clock.now());
    }
};

TEST_F(GrantTest, WhatIsKnownToComeIsChargedAtOnceAndNotAgain)
{
    start(1);
    auto &a = holdExpecting(800);
    EXPECT_DOUBLE_EQ(service(), 400);
    charge(a, 500);
    EXPECT_DOUBLE_EQ(service(), 400);
    charge(a, 400);
    EXPECT_DOUBLE_EQ(service(), 450) << "100 bytes beyond it";
    done(a);
    EXPECT_DOUBLE_EQ(service(), 450);
}

TEST_F(GrantTest, NoMoreThanAQuantumIsChargedAtOnce)
{
    start(1);
    holdExpecting(1'000'000);
    EXPECT_DOUBLE_EQ(service(), 500);
}

TEST_F(GrantTest, WhatIsNotKnownIsWhatFirstQuantaUseOnAverage)
{
    start(1);
    auto &a = hold(0, "u", "a");
    EXPECT_DOUBLE_EQ(service(), 0) << "nobody has used any yet";
    charge(a, 600);
    done(a);
    EXPECT_DOUBLE_EQ(service(), 300);
    auto &b = hold(0, "u", "b");
    EXPECT_DOUBLE_EQ(service(), 600);
    done(b);
    EXPECT_DOUBLE_EQ(service(), 600) << "b had nothing, and pays for its turn";
}

TEST_F(GrantTest, AContinuationIsChargedAQuantumOrWhatIsLeft)
{
    for (const auto &[left, charged] : {std::pair<int64_t, double>(MSFRS_UNKNOWN, 500), {300, 150}}) {
        start(1);
        auto &a = hold(0, "u", "a"), &b = hold(0, "u", "b");
        s->expect(*a.request, left < 0 ? left : 1000 + left, clock.now());
        EXPECT_FALSE(read(a, 1000));
        EXPECT_DOUBLE_EQ(service(), 500) << "nothing was known of first quanta when b came";
        done(b);
        EXPECT_DOUBLE_EQ(service(), 500 + charged);
        done(a);
        EXPECT_DOUBLE_EQ(service(), 500);
        owners.clear();
        granted();
    }
}

TEST_F(GrantTest, WhoFallsSilentGivesBackWhatHeHasNotUsed)
{
    start(1);
    auto &a = holdExpecting(800);
    charge(a, 100);
    rest(a);
    EXPECT_DOUBLE_EQ(service(), 50);
}

TEST_F(GrantTest, WithoutQuantaNothingIsChargedInAdvance)
{
    config.quantum = 0;
    start(1);
    auto &a = holdExpecting(800);
    charge(a, 600);
    EXPECT_DOUBLE_EQ(service(), 300) << "as it comes";
    done(a);
    auto &b = hold(0, "u", "b");
    EXPECT_DOUBLE_EQ(service(), 300);
    done(b);
}

TEST_F(GrantTest, CountersStayWhenTheArbiterIsReconfigured)
{
    start(1);
    auto &a = holdExpecting(800);
    charge(a, 300);
    changeArbiter("1000");
    EXPECT_DOUBLE_EQ(service(), 400);
    charge(a, 100);
    EXPECT_DOUBLE_EQ(service(), 400) << "of what was charged already";
    changeArbiter("2000");
    done(a);
    EXPECT_DOUBLE_EQ(service(), 200) << "400 bytes in all";
}

/// The bytes of a grant arrive ten grants later, as on a link with ten in service.
TEST_F(GrantTest, GrantsFollowTheWeightsInEveryShortWindow)
{
    config.classes = {{"gold", 4}, {"silver", 2}, {"bronze", 1}};
    std::string order;
    std::deque<TestOwner *> underWay;
    start(10);
    for (int n = 0; n < 36; ++n) {
        auto &o = owners.emplace_back(*this, std::string(1, "gsb"[n % 3]));
        o.onGranted = [&order, &underWay, &o] {
            order += o.name;
            underWay.push_back(&o);
        };
        o.request = s->hold(o, static_cast<uint32_t>(n % 3), o.name, clock.now(), o.refusal);
    }
    const auto arrive = [&](const int quanta) {
        order.clear();
        for (int n = 0; n < quanta; ++n) {
            auto &o = *underWay.front();
            underWay.pop_front();
            clock.advance(Ms);
            if (read(o, 1000))
                o.onGranted();
        }
    };
    arrive(100); // the size of first quanta is learned, and the class that went first is caught up with
    arrive(140);
    ASSERT_EQ(order.size(), 140u);
    for (size_t at = 0; at + 14 <= order.size(); ++at) {
        const auto window = order.substr(at, 14);
        const auto of = [&window](const char cls) { return std::count(window.begin(), window.end(), cls); };
        ASSERT_NEAR(static_cast<double>(of('g')), 8, 1) << order;
        ASSERT_NEAR(static_cast<double>(of('s')), 4, 1) << order;
        ASSERT_NEAR(static_cast<double>(of('b')), 2, 1) << order;
    }
}

} // namespace
} // namespace msfrs
