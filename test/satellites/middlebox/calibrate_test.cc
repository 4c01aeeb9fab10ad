// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/calibrate.h"

#include "packets.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <stdexcept>

namespace msfrs::test {
namespace {

using namespace middlebox;

double Squares(const ProcessingTime &line, const std::vector<TimeOfSize> &samples)
{
    double sum = 0;
    for (const auto &s : samples)
        sum += std::pow(line.microseconds(s.bytes) - s.microseconds, 2);
    return sum;
}

TEST(Fit, FindsTheLineThatSamplesLieOn)
{
    for (const auto &kind : FunctionKinds()) {
        std::vector<TimeOfSize> samples;
        for (double x = 64; x <= 1500; x += 64)
            samples.push_back({x, kind.paperAlpha * x + kind.paperBeta});
        const auto line = Fit(samples);
        EXPECT_NEAR(line.alpha, kind.paperAlpha, 1e-12) << kind.name;
        EXPECT_NEAR(line.beta, kind.paperBeta, 1e-9) << kind.name;
        EXPECT_LT(GreatestError(line, samples), 1e-9);
    }
}

TEST(Fit, IsTheLineOfLeastSquares)
{
    // By hand: means 2 and 3, sum of (x - 2)(y - 3) = 3, of (x - 2)^2 = 2.
    const std::vector<TimeOfSize> samples = {{1, 2}, {2, 2}, {3, 5}};
    const auto line = Fit(samples);
    EXPECT_DOUBLE_EQ(line.alpha, 1.5);
    EXPECT_DOUBLE_EQ(line.beta, 0);
    EXPECT_DOUBLE_EQ(GreatestError(line, samples), 0.5);
}

/// If the least-squares line has a negative coefficient, the best line without one is required, found here by search.
TEST(Fit, NoTimeIsBelowZero)
{
    for (const auto &samples : {std::vector<TimeOfSize>{{100, 5}, {200, 4}, {300, 4}},
                                std::vector<TimeOfSize>{{100, 1}, {200, 4}, {300, 6}}}) {
        const auto line = Fit(samples);
        EXPECT_GE(line.alpha, 0);
        EXPECT_GE(line.beta, 0);
        EXPECT_TRUE(line.alpha == 0 || line.beta == 0);
        for (int a = 0; a <= 300; ++a) {
            for (int b = 0; b <= 600; ++b)
                ASSERT_LE(Squares(line, samples), Squares({a * 1e-4, b * 1e-2}, samples) + 1e-12) << a << ' ' << b;
        }
    }
}

TEST(Fit, NeedsTwoSizes)
{
    EXPECT_THROW(Fit({}), std::invalid_argument);
    EXPECT_THROW(Fit({{100, 1}, {100, 2}}), std::invalid_argument);
}

TEST(ProcessingTime, EstimatesInTheUnitOfItems)
{
    EXPECT_EQ((ProcessingTime{0.015, 84.5}.estimate(1000)), 995'000) << "99.5 us";
    EXPECT_EQ((ProcessingTime{0.006987, 10.97}.estimate(600)), 151'622) << "15.1622 us";
    EXPECT_EQ((ProcessingTime{0, 0}.estimate(1500)), 0);
    EXPECT_GT((ProcessingTime{ProcessingTime::MaxAlpha, ProcessingTime::MaxBeta}.estimate(uint64_t(1) << 32)), 0);
}

/// A function that takes exactly the time of its line, on a clock that other processes disturb now and then.
struct Exact : Function {
    Span process(const FunctionInput &in) override
    {
        time += std::llround(1e3 * line.microseconds(static_cast<double>(in.packet.length)));
        if (++packets % 100 == 0)
            time += 1'000'000;
        repeated += !seen.emplace(in.payload().begin() + 8, in.payload().end()).second;
        flows.insert(in.key.sourcePort);
        return in.packet;
    }
    std::vector<FunctionCount> counts() const override { return {}; }

    ProcessingTime line{0.02, 3};
    int64_t time = 0;
    uint64_t packets = 0, repeated = 0;
    std::set<Bytes> seen;
    std::set<uint32_t> flows;
};

TEST(Calibrate, MeasuresWhatAFunctionTakesAndNotWhatDisturbsIt)
{
    Exact exact;
    const auto samples = Measure(exact, {64, 500, 1000, 1500}, 51, 1, [&] { return exact.time; });
    ASSERT_EQ(samples.size(), 4u);
    for (const auto &s : samples)
        EXPECT_NEAR(s.microseconds, exact.line.microseconds(s.bytes), 1e-3);
    EXPECT_EQ(exact.packets, 4u * 51 * 16);
    EXPECT_NEAR(static_cast<double>(exact.repeated) / static_cast<double>(exact.packets), 0.46, 0.05)
        << "half are repeated, once there is something to repeat";
    EXPECT_GT(exact.flows.size(), 900u);
}

TEST(Calibrate, RefusesSizesThatAreNoPackets)
{
    Exact exact;
    for (const size_t size : {0, 63, 65536})
        EXPECT_THROW(Measure(exact, {size}, 1, 1, [] { return 0; }), std::invalid_argument) << size;
}

TEST(Calibrate, PrintsALineOfConfigurationForEachFunction)
{
    int64_t time = 0;
    std::ostringstream out;
    EXPECT_EQ(Calibrate(out, Options(), [&] { return time += 8000; }), 0); // 16 packets take 8 us, whatever their size
    std::istringstream in(out.str());
    std::vector<std::string> names;
    for (std::string line; std::getline(in, line);) {
        EXPECT_LE(line.size(), 120u);
        if (line.front() == '#')
            continue;
        std::istringstream words(line);
        std::string function, name, alpha, beta;
        words >> function >> name >> alpha >> beta;
        EXPECT_EQ(function, "function");
        EXPECT_EQ(alpha, "alpha=0.000000");
        EXPECT_EQ(beta, "beta=0.5000");
        names.push_back(name);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"forward", "monitor", "redundancy", "encrypt"}));
    EXPECT_NE(out.str().find("0.015 x + 84.5"), std::string::npos) << "the paper's figures beside";
}

TEST(Calibrate, SaysThatAClockStandsStill)
{
    std::ostringstream out;
    EXPECT_EQ(Calibrate(out, Options(), [] { return 0; }), 1);
    EXPECT_NE(out.str().find("clock is too coarse"), std::string::npos);
}

} // namespace
} // namespace msfrs::test
