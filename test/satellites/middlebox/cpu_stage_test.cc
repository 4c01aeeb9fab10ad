// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/cpu_stage.h"

#include "packets.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace middlebox;

constexpr int64_t PassTime = 10 * Us;

class CpuStageTest : public testing::Test {
protected:
    void start(const double share)
    {
        config.share = share;
        // Two passes of forwarding and one of encryption; the clock is read PassTime after the previous reading.
        config.functions = {{FindFunction("forward"), {0.01, 5}, 2, {}}, {FindFunction("encrypt"), {0.1, 20}, 1, {}}};
        stage = std::make_unique<CpuStage>(config, Options().random, [this] { return cpu += PassTime; }, 0);
    }

    void process(const size_t function, const int64_t now)
    {
        stage->process(function, {{packet.data(), packet.size()}, *edge::ReadKey(packet.data(), packet.size())}, now);
    }

    CpuConfig config;
    std::unique_ptr<CpuStage> stage;
    int64_t cpu = 0;
    Bytes packet = Udp(Bytes(972)); // 1000 bytes
};

TEST_F(CpuStageTest, FunctionsHaveTheirShareOfTheTime)
{
    for (const double share : {1.0, 0.5, 0.01}) {
        start(share);
        int64_t now = 0;
        for (int n = 0; n < 100; ++n) {
            ASSERT_TRUE(stage->ready(now));
            process(n % 2, now);
            ASSERT_FALSE(stage->ready(stage->next() - 1));
            now = stage->next();
        }
        EXPECT_NEAR(100. * PassTime / static_cast<double>(now), share, 1e-6 * share);
    }
}

TEST_F(CpuStageTest, IdlenessIsNotMadeUpFor)
{
    start(0.5);
    process(0, 0);
    stage->wake(Second);
    process(0, Second);
    EXPECT_EQ(stage->next(), Second + 2 * PassTime);
}

TEST_F(CpuStageTest, CountsWhatWasEstimatedAndWhatItTook)
{
    start(0.5);
    for (int n = 0; n < 3; ++n)
        process(0, n * Second);
    const auto &use = stage->use(0);
    EXPECT_EQ(use.packets, 3u);
    EXPECT_EQ(use.bytes, 3000u);
    EXPECT_EQ(use.estimated, uint64_t{3 * 2 * 15 * Us}) << "two passes of 0.01 * 1000 + 5 us";
    EXPECT_EQ(use.measured, uint64_t{3 * PassTime});
    EXPECT_EQ(Count(stage->function(0), "forwarded_packets"), 6u) << "each packet is really processed, twice";
    EXPECT_EQ(stage->use(1).packets, 0u);
}

TEST_F(CpuStageTest, AnEstimateIsOfTheShare)
{
    start(0.5);
    EXPECT_EQ(config.estimate(0, 1000), 2 * 2 * 15 * 10'000);
    EXPECT_EQ(config.estimate(1, 1000), 2 * 120 * 10'000);
}

TEST_F(CpuStageTest, AProcessorClockThatGoesBackCostsNothing)
{
    config.functions = {{FindFunction("monitor"), {0, 1}, 1, {}}};
    stage = std::make_unique<CpuStage>(config, Options().random, [this] { return cpu -= PassTime; }, 0);
    process(0, 0);
    EXPECT_EQ(stage->use(0).measured, 0u);
    EXPECT_TRUE(stage->ready(0));
}

} // namespace
} // namespace msfrs::test
