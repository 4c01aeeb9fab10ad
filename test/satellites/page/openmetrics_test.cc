// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/openmetrics.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

TEST(OpenMetrics, SamplesWithLabels)
{
    const auto samples = ReadOpenMetrics("# TYPE a gauge\n# HELP a Text with \" and {.\n"
                                         "a 1.5\n"
                                         "b_total{class=\"go\\\"ld\\\\\\n\",reason=\"x,y}\"} 3e+2\n"
                                         "c{quantile=\"0.5\"} -2 1700000000\n# EOF\n");
    ASSERT_EQ(samples.size(), 3u);
    EXPECT_EQ(samples[0].name, "a");
    EXPECT_EQ(samples[0].value, 1.5);
    EXPECT_EQ(samples[1].label("class"), "go\"ld\\\n");
    EXPECT_EQ(samples[1].label("reason"), "x,y}");
    EXPECT_EQ(samples[1].label("none"), "");
    EXPECT_EQ(samples[1].value, 300);
    EXPECT_EQ(samples[2].value, -2);
}

TEST(OpenMetrics, WhatIsNoNumberIsLeftOut)
{
    EXPECT_TRUE(ReadOpenMetrics("a NaN\nb +Inf\nc -Inf\n# EOF\n").empty());
}

class OpenMetricsRefused : public testing::TestWithParam<const char *> {};

TEST_P(OpenMetricsRefused, Line)
{
    const std::string text = "good 1\n" + std::string(GetParam()) + "\n# EOF\n";
    try {
        ReadOpenMetrics(text);
        FAIL() << GetParam();
    } catch (const PageError &error) {
        EXPECT_EQ(std::string(error.what()).substr(0, 8), "line 2: ");
    }
}

INSTANTIATE_TEST_SUITE_P(Lines, OpenMetricsRefused,
                         testing::Values("a", "a ", "a 1e999999", "a x", "a 1x", "1a 1", "a{ 1", "a{b} 1", "a{b=c} 1",
                                         "a{b=\"c} 1",
                                         "a{b=\"c\" 1", "a{b=\"c\"d=\"e\"} 1", "a{b=\"\\x\"} 1", "a{b=\"c\",} 1",
                                         "a{b=\"c\"}1", "<html>", "\x01 1", "a{b=\"\\"));

TEST(OpenMetrics, WhatWasCutOffIsRefused)
{
    EXPECT_THROW(ReadOpenMetrics(""), PageError);
    EXPECT_THROW(ReadOpenMetrics("a 1\n"), PageError);
    EXPECT_THROW(ReadOpenMetrics("# EOF\na 1\n"), PageError);
}

TEST(OpenMetrics, IsBounded)
{
    std::string text;
    for (size_t n = 0; n <= MostSamples; ++n)
        text += "a 1\n";
    EXPECT_THROW(ReadOpenMetrics(text + "# EOF\n"), PageError);
}

} // namespace
} // namespace msfrs::test
