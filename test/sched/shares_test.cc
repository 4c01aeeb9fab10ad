// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Properties of msf behind a window on a simulated link: weights hold, nobody starves, the fairness bound, no byte is
/// lost, no charge for bytes that were used while nobody waited.
#include "support/backlog.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// C / 20 for one response and 50 ms to its first byte: some twenty must be outstanding.
LinkOptions Internet(const uint64_t seed)
{
    LinkOptions options;
    options.perResponse = 2e6 / 20;
    options.latency = 50 * Ms;
    options.piece = 2000;
    options.seed = seed;
    return options;
}

struct Scenario {
    bool paper;
    uint64_t seed;
};

void PrintTo(const Scenario &s, std::ostream *const out)
{
    *out << (s.paper ? "paper" : "default") << ", seed " << s.seed;
}

std::vector<Scenario> Scenarios(const uint64_t seeds)
{
    std::vector<Scenario> all;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
        all.push_back({false, seed});
        all.push_back({true, seed});
    }
    return all;
}

class Shares : public ::testing::TestWithParam<Scenario> {};

/// Users per class; all backlogged for 1000 s, of which the first 50 are not counted. The paper's scheme releases whole
/// responses: with 200 kB each, a class of little weight would have too few of them for a bound of 2 %.
void WeightsHold(const Scenario &s, const int gold, const int silver, const int bronze)
{
    LinkSim sim(TrialConfig(s.paper), Internet(s.seed));
    const int users[] = {gold, silver, bronze};
    const double weights[] = {4, 2, 1};
    std::vector<std::unique_ptr<Backlog>> all;
    for (uint32_t c = 0; c < 3; ++c) {
        all.push_back(std::make_unique<Backlog>(sim, c, users[c], 30, s.seed, 60'000));
        all.back()->start();
    }
    sim.run(50 * Second);
    int64_t before[3];
    for (uint32_t c = 0; c < 3; ++c)
        before[c] = sim.bytes(c);
    const double carried = sim.carried();
    sim.run(1000 * Second);
    const double bronzeShare = static_cast<double>(sim.bytes(2) - before[2]) / bronze;
    for (uint32_t c = 0; c < 3; ++c) {
        const double perUser = static_cast<double>(sim.bytes(c) - before[c]) / users[c];
        EXPECT_NEAR(perUser / bronzeShare / weights[c], 1, 0.02) << "class " << c << ", per user against bronze";
    }
    EXPECT_GT((sim.carried() - carried) / (950 * 2e6 / 8), 0.95) << "a fair link that is not used is no achievement";
    for (auto &b : all)
        b->stop();
}

TEST_P(Shares, FollowTheWeights) { WeightsHold(GetParam(), 4, 4, 4); }
TEST_P(Shares, FollowTheWeightsPerUserWhenClassesDiffer) { WeightsHold(GetParam(), 24, 4, 4); }

TEST_P(Shares, UsersOfAClassAreEqualUnlessInOneQueue)
{
    const auto s = GetParam();
    LinkSim sim(TrialConfig(s.paper), Internet(s.seed));
    Backlog modest(sim, 0, 3, 20, s.seed), silver(sim, 1, 4, 20, s.seed);
    // Three users of gold with 20 open requests, and a fourth with 200.
    modest.start();
    Random random(s.seed);
    std::function<void(const Transfer &)> again = [&](const Transfer &) {
        sim.arrive(0, "greedy", random.between(1000, 60'000), sim.now() < 300 * Second ? again : nullptr);
    };
    for (int n = 0; n < 200; ++n)
        again({});
    silver.start();
    sim.run(300 * Second);
    const auto one = static_cast<double>(sim.bytes(0, "greedy"));
    for (int u = 0; u < 3; ++u) {
        const double ratio = static_cast<double>(sim.bytes(0, modest.user(u))) / one;
        if (s.paper)
            EXPECT_NEAR(ratio, 0.1, 0.05) << "the paper's class is one queue: users share by how much they ask for";
        else
            EXPECT_NEAR(ratio, 1, 0.02) << u;
    }
    modest.stop();
    silver.stop();
}

TEST_P(Shares, LoseNoByte)
{
    const auto s = GetParam();
    auto config = TrialConfig(s.paper);
    config.maxWait = 3 * Second;
    config.maxPerUser = 4;
    config.interface = "shares0";
    LinkSim sim(config, Internet(s.seed));
    Random random(s.seed);
    for (int n = 0; n < 1500; ++n) {
        sim.at(random.between(0, 200) * Second, [&sim, &random] {
            const auto cls = static_cast<uint32_t>(random.below(3));
            const auto user = std::to_string(random.below(5));
            sim.arrive(cls, user, random.between(0, 90'000));
        });
        sim.at(random.between(0, 220) * Second, [&sim, &random] {
            if (!sim.transfers().empty())
                sim.abort(random.below(sim.transfers().size()));
        });
    }
    sim.runOut();
    int64_t served = 0, byClass = 0;
    size_t refused = 0, expired = 0, aborted = 0, whole = 0;
    for (const auto &t : sim.transfers()) {
        ASSERT_GE(t.ended, t.arrived);
        served += t.received;
        refused += t.refusal != Refusal::None;
        expired += t.expired;
        aborted += t.aborted;
        whole += t.received == t.size && t.grants > 0;
        if (t.refusal != Refusal::None || t.expired) {
            ASSERT_EQ(t.received, 0);
        } else if (!t.aborted) {
            ASSERT_EQ(t.received, t.size);
        }
    }
    uint64_t requests = 0, users = 0;
    for (const auto &c : sim.scheduler().classes(sim.now())) {
        byClass += static_cast<int64_t>(c.bytes);
        requests += c.requests;
        EXPECT_EQ(c.queued + c.paused + c.inFlight + c.users, 0u);
    }
    for (const auto &u : sim.scheduler().topUsers(1000))
        users += u.bytes;
    EXPECT_EQ(byClass, served);
    EXPECT_LE(users, static_cast<uint64_t>(served)) << "users may be forgotten, not invented";
    EXPECT_EQ(requests, sim.transfers().size());
    EXPECT_EQ(sim.scheduler().window().outstanding, 0) << "a slot in the window was lost or given back twice";
    EXPECT_NEAR(sim.carried(), static_cast<double>(served), 2000.0 * 50) << "a cut piece is carried, not charged";
    EXPECT_GT(aborted, 20u);
    EXPECT_GT(whole, 300u);
    EXPECT_GT(refused + expired, 20u) << "the test was meant to see refusals";
}

/// Section 3.1: nobody starves. In a closed loop every class is served in proportion, so a request waits at most for
/// the earlier items of its class at the class's share of the link, and for the outstanding ones.
TEST_P(Shares, StarveNobody)
{
    const auto s = GetParam();
    constexpr int64_t Largest = 60'000;
    constexpr int Users[] = {6, 4, 1}, Depth = 8;
    const double weights[] = {4, 2, 1};
    auto options = Internet(s.seed);
    options.fixedWindow = 20;
    LinkSim sim(TrialConfig(s.paper), options);
    std::vector<std::unique_ptr<Backlog>> all;
    double sum = 0, largestShare = 0;
    for (uint32_t c = 0; c < 3; ++c) {
        all.push_back(std::make_unique<Backlog>(sim, c, Users[c], Depth, s.seed, Largest));
        sum += weights[c] * Users[c];
        largestShare = std::max(largestShare, weights[c] * Users[c]);
    }
    for (auto &b : all)
        b->start();
    sim.run(300 * Second);
    for (auto &b : all)
        b->stop();
    sim.runOut();
    for (const auto &t : sim.transfers()) {
        const double share = weights[t.cls] * Users[t.cls] / sum;
        const double before = static_cast<double>(Users[t.cls] * Depth) * Largest / share;
        // W+ responses of classes ahead of their share, and W+ of its own class: the fairness bound of 4.2.
        const double ahead = 20.0 * Largest * (1 + 1 / share) + 20.0 * Largest * sum;
        ASSERT_GE(t.granted, 0) << "never granted";
        const double waited = static_cast<double>(t.granted - t.arrived) * 1e-9;
        ASSERT_LE(waited, (before + ahead) / (0.9 * 2e6 / 8)) << "class " << t.cls << " at " << t.arrived;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Shares, ::testing::ValuesIn(Scenarios(3)));

/// For all parameters, the service of two backlogged classes differs at most by the outstanding bytes, and by what the
/// reserve allows.
class AnyParameters : public ::testing::TestWithParam<uint64_t> {};

TEST_P(AnyParameters, KeepBackloggedClassesTogether)
{
    Random random(GetParam() * 7919);
    constexpr int64_t Quanta[] = {0, 4096, 16384, 65536};
    auto config = TrialConfig(false);
    config.quantum = Quanta[random.below(4)];
    config.window.reserve = random.chance(0.5) ? 0.5 : 0;
    constexpr int Ahead = 32768;
    config.arbiter.settings = {{"users", random.chance(0.5) ? "fair" : "fifo"},
                               {"wake", random.chance(0.5) ? "virtual" : "paper"},
                               {"ahead", std::to_string(Ahead)}};
    config.classes.clear();
    std::vector<int> users;
    for (auto n = random.between(2, 5); n > 0; --n) {
        config.classes.push_back({"c" + std::to_string(n), static_cast<double>(random.between(1, 80)) / 10});
        users.push_back(static_cast<int>(random.between(1, 5)));
    }
    config.defaultClass = 0;
    LinkOptions options;
    options.fixedWindow = static_cast<uint32_t>(random.between(1, 24));
    options.perResponse = 2e6 / static_cast<double>(random.between(1, 12));
    options.latency = random.between(0, 200) * Ms;
    LinkSim sim(config, options);
    SCOPED_TRACE(std::to_string(config.classes.size()) + " classes, quantum " + std::to_string(config.quantum) +
                 ", W+ " + std::to_string(options.fixedWindow) + ", " + PrintSettings(config.arbiter.settings));

    constexpr int64_t Largest = 80'000;
    const double places = options.fixedWindow * (1 + config.window.reserve) + 1;
    const double lead = config.window.reserve > 0 ? Ahead : 0;
    std::vector<std::unique_ptr<Backlog>> all;
    std::vector<double> share;
    for (uint32_t c = 0; c < users.size(); ++c) {
        const int depth = 2 * static_cast<int>(places) + 2;
        all.push_back(std::make_unique<Backlog>(sim, c, users[c], depth, GetParam(), Largest));
        share.push_back(config.classes[c].weight * users[c]);
        all.back()->start();
    }
    for (int looks = 0; looks < 40; ++looks) {
        sim.run(sim.now() + 5 * Second);
        for (uint32_t i = 0; i < users.size(); ++i) {
            for (uint32_t j = 0; j < i; ++j) {
                const double di = static_cast<double>(sim.bytes(i)) / share[i];
                const double dj = static_cast<double>(sim.bytes(j)) / share[j];
                ASSERT_LE(std::abs(di - dj), places * Largest * (1 / share[i] + 1 / share[j]) + lead)
                    << i << " and " << j;
            }
        }
    }
    for (auto &b : all)
        b->stop();
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyParameters, ::testing::Range(uint64_t(1), uint64_t(25)));

/// Section 4.2. The bound W+ L_i/w_i + L_j/w_j is that of figure 6: i takes the whole window, then j arrives and
/// catches up. It does not hold over arbitrary intervals, which the paper's proof does not cover: j may take the whole
/// window when it has almost caught up. What always holds is W+ (L_i/w_i + L_j/w_j).
class FairnessBound : public ::testing::TestWithParam<uint32_t> {
protected:
    static constexpr int64_t Piece = 500;

    LinkOptions options() const
    {
        LinkOptions o;
        o.perResponse = 2e6 / GetParam();
        o.piece = Piece;
        o.fixedWindow = GetParam();
        return o;
    }
    static RequestConfig Config(const double wi, const double wj)
    {
        auto config = TrialConfig(true);
        config.classes = {{"i", wi}, {"j", wj}};
        config.defaultClass = 0;
        return config;
    }
};

TEST_P(FairnessBound, IsReachedInFigure6AndNotExceeded)
{
    const double wplus = GetParam();
    constexpr int64_t Li = 40'000, Lj = 30'000;
    const double wi = 1, wj = 2;
    LinkSim sim(Config(wi, wj), options());
    Spread spread(wi, wj);
    sim.onPiece = [&](const uint32_t cls, const int64_t bytes) { cls ? spread.b(bytes) : spread.a(bytes); };
    for (int n = 0; n < 100; ++n)
        sim.arrive(0, "i", Li); // t0: takes the window
    for (int n = 0; n < 400; ++n)
        sim.arrive(1, "j", Lj);
    // t2: j has had as much as i, W+ L_i/w_i; both are backlogged until then.
    while (static_cast<double>(sim.bytes(1)) / wj < wplus * Li / wi)
        sim.run(sim.now() + Ms);
    EXPECT_LE(spread.greatest(), wplus * Li / wi + Lj / wj);
    EXPECT_GE(spread.greatest(), wplus * Li / wi * 0.99) << "the worst case was meant to be met";
}

TEST_P(FairnessBound, OverAllIntervals)
{
    const uint32_t wplus = GetParam();
    double worst = 0;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
        Random random(seed);
        const auto wi = static_cast<double>(random.between(1, 6)), wj = static_cast<double>(random.between(1, 6));
        LinkSim sim(Config(wi, wj), options());
        const int64_t longest[] = {random.between(5'000, 60'000), random.between(5'000, 60'000)};
        Spread spread(wi, wj); // one user each: UC is 1
        sim.onPiece = [&](const uint32_t cls, const int64_t bytes) { cls ? spread.b(bytes) : spread.a(bytes); };
        Backlog i(sim, 0, 1, static_cast<int>(wplus) * 2 + 2, seed, longest[0]);
        Backlog j(sim, 1, 1, static_cast<int>(wplus) * 2 + 2, seed, longest[1]);
        i.start();
        j.start();
        sim.run(120 * Second);
        i.stop();
        j.stop();
        const double li = static_cast<double>(longest[0]) / wi, lj = static_cast<double>(longest[1]) / wj;
        EXPECT_LE(spread.greatest(), wplus * (li + lj)) << "seed " << seed;
        worst = std::max(worst, spread.greatest() / (wplus * std::max(li, lj) + std::min(li, lj)));
    }
    RecordProperty("greatest_share_of_the_papers_bound", std::to_string(worst));
    if (wplus == 1) {
        EXPECT_LE(worst, 1) << "with one place both bounds are the same";
    }
}

INSTANTIATE_TEST_SUITE_P(Windows, FairnessBound, ::testing::Values(1u, 2u, 4u, 8u, 16u));

/// A class that used the link alone, and one that returns.
class Idle : public ::testing::TestWithParam<Scenario> {};

TEST_P(Idle, WhoUsedIdleBandwidthIsNotPunishedAndWhoCameBackIsNotFavoured)
{
    const auto s = GetParam();
    auto options = Internet(s.seed);
    options.fixedWindow = 8;
    LinkSim sim(TrialConfig(s.paper), options);
    Backlog gold(sim, 0, 4, 6, s.seed), bronze(sim, 2, 4, 6, s.seed);
    Spread spread(4 * 4, 1 * 4);
    sim.onPiece = [&](const uint32_t cls, const int64_t bytes) { cls == 2 ? spread.b(bytes) : spread.a(bytes); };
    const double bound = 8 * (200'000 / 4.0 + 200'000 / 1.0) / 4; // of 4.2, with UC 4
    bronze.start();
    for (int phase = 0; phase < 3; ++phase) {
        sim.run(sim.now() + 100 * Second); // bronze alone: 25 MB
        gold.start();
        sim.run(sim.now() + Second / 2);
        spread.reset();
        sim.run(sim.now() + 60 * Second);
        EXPECT_LE(spread.greatest(), bound) << "phase " << phase;
        gold.stop();
        sim.run(sim.now() + 30 * Second);
    }
    bronze.stop();
}

TEST_P(Idle, OneLongDownloadThroughTheNightIsNotStarvedInTheMorning)
{
    const auto s = GetParam();
    auto options = Internet(s.seed);
    options.perResponse = 2e6;
    options.fixedWindow = 4;
    LinkSim sim(TrialConfig(s.paper), options);
    const auto night = sim.arrive(2, "owl", int64_t(1) << 40);
    sim.run(1000 * Second); // 250 MB, and nobody waited
    const auto owl = [&] { return sim.transfers()[night].received; };
    ASSERT_GT(owl(), 200'000'000);
    Backlog day(sim, 2, 3, 4, s.seed), gold(sim, 0, 1, 4, s.seed);
    day.start();
    gold.start();
    sim.run(1030 * Second);
    const auto before = owl();
    const auto others = sim.bytes(2);
    sim.run(1150 * Second);
    const auto got = static_cast<double>(owl() - before);
    // Bronze has four users, and gold's one counts four times: the owl's share is an eighth of C.
    if (s.paper) {
        EXPECT_GT(got, 0) << "without quanta it holds its slot in the window";
    } else {
        EXPECT_NEAR(got / (120 * 2e6 / 8) * 8, 1, 0.03);
    }
    EXPECT_GT(sim.bytes(2) - others - static_cast<int64_t>(got), 0) << "the others of its class";
    day.stop();
    gold.stop();
    sim.abort(night);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Idle, ::testing::ValuesIn(Scenarios(2)));

} // namespace
} // namespace msfrs
