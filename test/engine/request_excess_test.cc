// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Excessive traffic (paper, section 6): bytes that no request caused, for users of a class and for unknown users.
#include "support/backlog.h"
#include "support/requests.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

class ExcessTest : public RequestTest {};

TEST_F(ExcessTest, IsChargedToItsUserAndClass)
{
    start(1);
    auto &a = hold(1, "v", "a");
    hold(0, "u", "gold");
    hold(1, "v", "bronze");
    s->chargeExcess(0, "u", 5000, clock.now());
    EXPECT_EQ(report("gold").excess, 5000u);
    EXPECT_EQ(report("gold").bytes, 0u) << "no response brought them";
    EXPECT_EQ(s->topUsers(1).at(0).name, "u");
    EXPECT_EQ(s->topUsers(1).at(0).bytes, 5000u);
    done(a);
    EXPECT_EQ(granted(), "a bronze") << "gold is ahead by what its POP3 traffic took";
}

TEST_F(ExcessTest, CountsInTheUtilisationAndOfNoClassThereAlone)
{
    config.overhead = 0.5;
    config.window.interval = Second;
    start(0);
    s->countExcess(300'000);
    s->chargeExcess(0, "u", 200'000, clock.now());
    clock.advance(Second);
    s->tick(clock.now());
    EXPECT_NEAR(s->window().utilisation, 0.5, 1e-6) << "packets have their headers with them";
    EXPECT_EQ(report("gold").excess, 200'000u);
    EXPECT_EQ(report("bronze").excess, 0u);
    EXPECT_EQ(s->topUsers(9).size(), 1u);
}

TEST_F(ExcessTest, IsInTheInterfacesCounterAlready)
{
    FakeInterface eth("eth0");
    config.interface = "eth0";
    config.window.interval = Second;
    start(0);
    eth.bytes = *eth.bytes + 500'000;
    s->chargeExcess(0, "u", 300'000, clock.now());
    s->countExcess(200'000);
    clock.advance(Second);
    s->tick(clock.now());
    EXPECT_NEAR(s->window().utilisation, 0.5, 1e-6);
    EXPECT_EQ(report("gold").excess, 300'000u);
}

TEST_F(ExcessTest, FindsTheUserWhoCameLater)
{
    start(1);
    TestOwner *const others[] = {&hold(0, "a", "a"), &hold(0, "b", "b")};
    s->chargeExcess(0, "idle", 3000, clock.now());
    auto &late = hold(0, "idle", "late");
    int64_t before[] = {0, 0};
    while (!late.grants && before[0] + before[1] < 20'000) {
        const int n = others[0]->served ? 0 : 1;
        before[n] += 1000;
        read(*others[n], 1000);
    }
    EXPECT_EQ(late.grants, 1);
    EXPECT_EQ(before[0], 3000) << "until all three had as much";
    EXPECT_EQ(before[1], 3000);
}

TEST_F(ExcessTest, WhileNobodyWaitsCostsNothing)
{
    start(1);
    s->chargeExcess(0, "u", 1'000'000, clock.now());
    s->chargeExcess(0, "w", 500, clock.now());
    auto &a = hold(1, "v", "a");
    hold(1, "v", "bronze");
    hold(0, "u", "gold");
    EXPECT_TRUE(read(a, 1)); // bronze is ahead by a byte
    done(a);
    EXPECT_EQ(granted(), "a gold");
}

TEST_F(ExcessTest, MemoryIsBounded)
{
    start(1);
    hold(0, "known", "a");
    const size_t senders = RequestScheduler::MostUsers + 1000;
    for (size_t n = 0; n < senders; ++n)
        s->chargeExcess(0, std::to_string(n), 10, clock.now());
    s->chargeExcess(0, "known", 10, clock.now());
    s->chargeExcess(1, "v", 10, clock.now());
    EXPECT_EQ(report("gold").excess, 10 * (senders + 1)) << "the class is charged whoever it was";
    const auto users = s->topUsers(2 * senders);
    EXPECT_EQ(users.size(), RequestScheduler::MostUsers + 2) << "and those that came too late are one";
    EXPECT_EQ(users.front().name, RequestScheduler::OtherUsers);
    EXPECT_EQ(users.front().bytes, 10 * (senders + 1 - RequestScheduler::MostUsers));
    clock.advance(700 * Second);
    s->tick(clock.now());
    EXPECT_EQ(s->topUsers(2 * senders).size(), 1u) << "nobody is remembered for ever";
}

/// Three classes 4:2:1 with four users each on 2 Mbit/s, all backlogged. One user of gold also receives excess traffic.
class ExcessOnALink : public ::testing::Test {
protected:
    explicit ExcessOnALink(const std::vector<Setting> &settings = {}): sim_(Config(settings), Options())
    {
        for (uint32_t c = 0; c < 3; ++c)
            all_.push_back(std::make_unique<Backlog>(sim_, c, c == 0 ? 3 : 4, 10, 1, 60'000));
        for (auto &b : all_)
            b->start();
    }
    ~ExcessOnALink() override
    {
        asks_ = false;
        for (auto &b : all_)
            b->stop();
    }

    static RequestConfig Config(const std::vector<Setting> &settings)
    {
        auto config = TrialConfig(false);
        config.arbiter.settings = settings;
        return config;
    }
    static LinkOptions Options()
    {
        LinkOptions options;
        options.perResponse = 2e6 / 20;
        options.latency = 50 * Ms;
        options.piece = 2000;
        return options;
    }

    /// The user keeps this many requests open from now on.
    void ask()
    {
        asks_ = true;
        for (int n = 0; n < 10; ++n)
            request();
    }
    /// From now on it receives `rate` bit/s of excess traffic, reported every 100 ms.
    void beside(const double rate)
    {
        rate_ = rate;
        sim_.setCbr(rate);
        if (!std::exchange(told_, true))
            tell();
    }
    /// Advances the time. \returns bit/s of the user, and of one user of gold, silver and bronze
    struct Rates { double requests, excess, gold, silver, bronze; };
    Rates run(const msfrs_time time)
    {
        const Rates before = received();
        const auto since = sim_.now();
        sim_.run(since + time);
        const Rates after = received();
        const double each = 8 / Seconds(time);
        return {(after.requests - before.requests) * each, (after.excess - before.excess) * each,
                (after.gold - before.gold) * each / 3, (after.silver - before.silver) * each / 4,
                (after.bronze - before.bronze) * each / 4};
    }

    static double Seconds(const msfrs_time t) { return static_cast<double>(t) * 1e-9; }
    static constexpr double Unit = 2e6 / 28; ///< bit/s of a user of weight 1 while all are backlogged

private:
    void request()
    {
        sim_.arrive(0, "u", 20'000, [this](const Transfer &) {
            if (asks_)
                request();
        });
    }
    void tell()
    {
        const auto bytes = static_cast<int64_t>(rate_ / 8 / 10);
        excess_ += bytes;
        sim_.scheduler().chargeExcess(0, "u", bytes, sim_.now());
        sim_.at(sim_.now() + 100 * Ms, [this] { tell(); });
    }
    Rates received() const
    {
        const auto own = sim_.bytes(0, "u");
        return {static_cast<double>(own), static_cast<double>(excess_), static_cast<double>(sim_.bytes(0) - own),
                static_cast<double>(sim_.bytes(1)), static_cast<double>(sim_.bytes(2))};
    }

    LinkSim sim_;
    std::vector<std::unique_ptr<Backlog>> all_;
    double rate_ = 0;
    int64_t excess_ = 0;
    bool told_ = false, asks_ = false;
};

TEST_F(ExcessOnALink, TheUserGetsThatMuchLessThroughRequests)
{
    ask();
    beside(2.5 * Unit);
    run(50 * Second);
    const auto r = run(600 * Second);
    EXPECT_NEAR(r.requests + r.excess, r.gold, 0.03 * r.gold) << "beside " << r.excess << ", by request " << r.requests;
    EXPECT_NEAR(r.requests, 1.5 * Unit, 0.1 * Unit);
    EXPECT_NEAR(r.gold / r.bronze, 4, 0.12) << "and nobody else notices";
    EXPECT_NEAR(r.silver / r.bronze, 2, 0.06);
}

TEST_F(ExcessOnALink, WhoTakesMoreThanItsShareGetsNothingElseAndIsForgivenInTheEnd)
{
    ask();
    beside(8 * Unit); // twice its share, half of its class's
    run(300 * Second);
    const auto during = run(1000 * Second);
    EXPECT_LT(during.requests, 0.02 * during.excess);
    EXPECT_NEAR((during.gold * 3 + during.excess + during.requests) / (4 * during.bronze), 4, 0.12)
        << "the class has its share";
    beside(0);
    // The debt: 1 MB for a user of weight 1 plus 256 KB, at the rate of a user.
    const double debt = (1048576.0 * 4 + 262144) * 8 / (4 * Unit);
    const auto after = run(static_cast<msfrs_time>(0.6 * debt * 1e9));
    EXPECT_LT(after.requests, 0.05 * after.gold) << "it had far more than its share";
    run(static_cast<msfrs_time>(0.6 * debt * 1e9));
    const auto then = run(300 * Second);
    EXPECT_NEAR(then.requests / then.gold, 1, 0.05) << "but 1300 s are not paid back";
}

TEST_F(ExcessOnALink, AClassThatTakesMoreThanItsShareIsForgivenToo)
{
    ask();
    beside(20 * Unit); // gold's share is 16
    run(300 * Second);
    const auto during = run(700 * Second);
    EXPECT_LT(during.requests + during.gold, 0.02 * during.excess);
    EXPECT_NEAR(during.silver / during.bronze, 2, 0.06);
    beside(0);
    run(200 * Second);
    const auto then = run(300 * Second);
    EXPECT_NEAR(then.gold / then.bronze, 4, 0.2);
}

struct ExcessWithoutLag : ExcessOnALink {
    ExcessWithoutLag(): ExcessOnALink({{"lag", "0"}, {"debt", "4194304"}}) {}
};

TEST_F(ExcessWithoutLag, WhoIsIdlePaysWithItsNextRequestsForMoreThanItsShare)
{
    run(1000 * Second); // virtual time is far from 0
    beside(8 * Unit);
    const auto idle = run(100 * Second);
    EXPECT_EQ(idle.requests, 0);
    beside(0);
    ask();
    const auto first = run(40 * Second);
    EXPECT_LT(first.requests, 0.1 * first.gold);
    const auto rest = run(360 * Second);
    const double own = idle.excess * 100 + first.requests * 40 + rest.requests * 360;
    const double others = idle.gold * 100 + first.gold * 40 + rest.gold * 360;
    EXPECT_NEAR(own / others, 1, 0.05) << "over the whole time it had as much as the others";
}

TEST_F(ExcessWithoutLag, WhoIsIdleOwesNothingForLessThanItsShare)
{
    run(1000 * Second);
    beside(2 * Unit);
    run(300 * Second);
    beside(0);
    ask();
    const auto then = run(60 * Second);
    EXPECT_NEAR(then.requests / then.gold, 1, 0.1);
}

} // namespace
} // namespace msfrs
