// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The rate controller in a closed loop: link, window, scheduler. The results of figures 11 and 14 and table 1 of the
/// paper.
#include "support/backlog.h"

#include <cmath>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

using namespace test;

/// As in the paper: T = 5 s, U+ = 98 %, measured by the interface's counter. A single response gets C/50.
class Control : public ::testing::Test {
protected:
    void start(const bool paper = true)
    {
        auto config = TrialConfig(paper);
        config.interface = "control0";
        LinkOptions options;
        options.perResponse = config.rate / 50;
        options.latency = 30 * Ms;
        sim = std::make_unique<LinkSim>(config, options);
        for (uint32_t c = 0; c < 3; ++c)
            users.push_back(std::make_unique<Backlog>(*sim, c, 4, 30, 1, 100'000));
    }
    void on()
    {
        for (auto &u : users)
            u->start();
    }
    ~Control() override
    {
        for (auto &u : users)
            u->stop();
    }
    double wplus() const { return sim->scheduler().window().limit; }

    std::unique_ptr<LinkSim> sim;
    std::vector<std::unique_ptr<Backlog>> users;
};

TEST_F(Control, OpensUntilTheLinkIsAtItsTargetAndStaysThere)
{
    start();
    on();
    sim->run(60 * Second);
    EXPECT_NEAR(wplus(), 49, 3) << "0.98 C at C/50 each";
    double least = 1e9, most = 0;
    for (int n = 0; n < 60; ++n) {
        sim->run(sim->now() + 5 * Second);
        least = std::min(least, wplus());
        most = std::max(most, wplus());
        EXPECT_NEAR(sim->scheduler().window().utilisation, 0.98, 0.03);
    }
    EXPECT_GT(least, 46);
    EXPECT_LT(most, 53);
}

TEST_F(Control, Figure14FallsUnderCbrAndRisesWhenItStops)
{
    start();
    on();
    sim->run(100 * Second);
    const double alone = wplus();
    sim->setCbr(0.4 * 2e6);
    sim->run(150 * Second);
    EXPECT_NEAR(wplus() / alone, std::pow(0.98, 10), 0.03) << "a full link shows U = 1: 2 % in each interval";
    sim->run(740 * Second);
    const double beside = wplus();
    EXPECT_NEAR(beside / alone, 0.6, 0.08) << "7 of 13 in the paper";
    sim->setCbr(0);
    sim->run(755 * Second);
    EXPECT_NEAR(wplus() / alone, 1, 0.1) << "within three intervals";
    EXPECT_NEAR(sim->scheduler().window().utilisation, 0.98, 0.05);
}

TEST_F(Control, Figure11ConstantWhileRequestsAreTooFew)
{
    start();
    on();
    sim->run(500 * Second);
    for (auto &u : users)
        u->stop();
    sim->run(530 * Second); // queued requests are served
    const double before = wplus();
    Random random(4);
    for (auto t = 530 * Second; t < 1000 * Second; t += random.between(0, 2 * Second))
        sim->at(t, [this] { sim->arrive(2, "few", 20'000); });
    for (int n = 0; n < 94; ++n) {
        sim->run(sim->now() + 5 * Second);
        ASSERT_EQ(wplus(), before) << "W+ must not grow for want of requests";
        ASSERT_LT(sim->scheduler().window().utilisation, 0.5);
    }
    for (const auto &t : sim->transfers()) {
        if (t.user == "few" && t.granted >= 0) {
            ASSERT_EQ(t.granted, t.arrived) << "there are always free places";
        }
    }
    on();
    sim->run(sim->now() + 10 * Second);
    EXPECT_NEAR(sim->scheduler().window().utilisation, 0.98, 0.05) << "jumps to its target at once";
}

TEST_F(Control, PayloadWithoutOverheadCountedWouldNeverReachTheTarget)
{
    // The same link, metered by payload, which is 92 % of its bytes: with overhead= configured, W+ settles.
    auto config = TrialConfig(true);
    config.overhead = 1 / 0.92 - 1;
    LinkOptions options;
    options.perResponse = 0.92 * config.rate / 50;
    LinkSim link(config, options);
    link.setCbr(0.08 * config.rate); // headers
    Backlog all(link, 0, 12, 30, 1, 100'000);
    all.start();
    link.run(300 * Second);
    EXPECT_LT(link.scheduler().window().limit, 60);
    EXPECT_GT(link.scheduler().window().limit, 40);
    all.stop();
}

/// Table 1: utilisation of the link beside on/off CBR (the paper: 97.60 to 97.95 %).
struct Table1 {
    int64_t period; ///< s, of each on and off time
    double cbr;     ///< fraction of C
};

void PrintTo(const Table1 &t, std::ostream *const out) { *out << t.period << " s, " << t.cbr; }

class Oscillating : public Control, public ::testing::WithParamInterface<Table1> {};

TEST_P(Oscillating, KeepsTheLinkUsed)
{
    const auto [period, cbr] = GetParam();
    start();
    on();
    sim->run(60 * Second);
    const double before = sim->carried();
    const auto begin = sim->now();
    bool busy = false;
    double withCbr = 0, without = 0;
    for (auto t = begin; t < begin + 1280 * Second; t += period * Second) {
        busy = !busy;
        sim->setCbr(busy ? cbr * 2e6 : 0);
        sim->run(t + period * Second);
        (busy ? withCbr : without) = wplus();
    }
    const double u = (sim->carried() - before) / (static_cast<double>(sim->now() - begin) * 1e-9 * 2e6 / 8);
    RecordProperty("utilisation", std::to_string(u));
    const double byEquation3 = std::pow(0.98, static_cast<double>(period) / 5);
    EXPECT_LT(withCbr, without * std::max(1 - cbr / 2, byEquation3 * 1.05)) << "W+ falls under CBR and rises without";
    // Each end of CBR costs an interval of 5 s: a fraction cbr of T and a little more, in a cycle of two periods.
    EXPECT_GT(u, 0.98 - 0.02 - cbr * 7.5 / (2 * static_cast<double>(period)));
    EXPECT_LE(u, 1);
}

INSTANTIATE_TEST_SUITE_P(Table1, Oscillating, ::testing::Values(Table1{40, 0.2}, Table1{40, 0.6}, Table1{80, 0.4},
                                                                Table1{160, 0.6}, Table1{320, 0.4}, Table1{640, 0.6}));

} // namespace
} // namespace msfrs
