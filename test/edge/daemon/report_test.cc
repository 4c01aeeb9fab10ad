// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/report.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace edge;

TEST(WaitCounts, Quantiles)
{
    WaitCounts w;
    EXPECT_EQ(w.quantile(0.5), 0);
    w.add(0);
    w.add(999);       // below a microsecond
    w.add(1'000);     // from 1 to 2
    w.add(1'999'999); // from 1.024 to 2.048 ms
    EXPECT_EQ(w.quantile(0.5), 1e-6);
    EXPECT_EQ(w.quantile(0.75), 2e-6);
    EXPECT_EQ(w.quantile(1), 2.048e-3);
    EXPECT_EQ(w.sum, 2'001'998u);
    w.add(int64_t{1} << 62); // the last bucket takes the rest
    EXPECT_EQ(w.of[WaitCounts::Buckets - 1], 1u);
}

Report Example()
{
    Report r;
    auto config = std::make_shared<Config>();
    config->queue.number = 7;
    config->limit = 10;
    config->schedulerText = "drr";
    config->classes.resize(3);
    config->classes[0].name = "all";
    config->classes[0].interior = true;
    config->classes[1].name = "gold";
    config->classes[2].name = "rest";
    r.config = config;
    r.file = "edge.conf";
    r.classes.resize(3);
    r.classes[1].offered = {3, 4500};
    r.classes[1].passed = {2, 3000};
    r.classes[1].queued = {1, 1500};
    r.classes[1].waits.add(3'000'000);
    r.queues.resize(1);
    r.queues[0].overruns = 5;
    r.flows = {9};
    r.gauges.push_back({"scheduler", "deficit", "bytes", 1, 0, 40});
    return r;
}

TEST(EdgeReport, ForPeople)
{
    const auto text = Text(Example());
    EXPECT_NE(text.find("queue 7: flows 9, overruns 5, "), std::string::npos) << text;
    EXPECT_NE(text.find("class gold: offered 3 packets 4500 bytes, "), std::string::npos) << text;
    EXPECT_NE(text.find("queued 1 packets 1500 bytes; waited p50 4.096 ms, p99 4.096 ms\n"), std::string::npos) << text;
    EXPECT_NE(text.find("scheduler of queue 7, class gold: deficit 40 bytes\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("class all"), std::string::npos) << text;
}

TEST(EdgeReport, AsOpenMetrics)
{
    const auto text = OpenMetrics(Example());
    for (const char *const line :
         {"# TYPE msfrs_edge_offered_packets counter\n", "msfrs_edge_offered_packets_total{class=\"gold\"} 3\n",
          "msfrs_edge_queued_bytes{class=\"gold\"} 1500\n", "msfrs_edge_overruns_total{queue=\"7\"} 5\n",
          "msfrs_edge_wait_seconds_bucket{class=\"gold\",le=\"0.004096\"} 1\n",
          "msfrs_edge_wait_seconds_bucket{class=\"gold\",le=\"+Inf\"} 1\n",
          "msfrs_edge_wait_seconds_sum{class=\"gold\"} 0.003\n",
          "msfrs_edge_plugin{queue=\"7\",plugin=\"scheduler\",name=\"deficit\",class=\"gold\"} 40\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
    EXPECT_EQ(text.substr(text.size() - 6), "# EOF\n");
}

TEST(EdgeReport, WhatSquidIsTold)
{
    auto r = Example();
    EXPECT_EQ(Text(r).find("excess"), std::string::npos);
    EXPECT_EQ(OpenMetrics(r).find("excess"), std::string::npos);
    auto config = std::make_shared<Config>(*r.config);
    config->excess.socket = "/s";
    r.config = config;
    r.excess = Excess::Counts{5, 4, 3, 2, 1};
    const std::string words = "excess /s: bytes 5, outside_bytes 4, datagrams 3, waits 2, lost_bytes 1\n";
    EXPECT_NE(Text(r).find(words), std::string::npos) << Text(r);
    EXPECT_NE(OpenMetrics(r).find("msfrs_edge_excess_lost_bytes_total 1\n"), std::string::npos);
}

TEST(KernelCounts, AreThoseOfTheQueue)
{
    QueueCounts counts;
    ReadKernelCounts("    7  26247   181 2   256    11    22     3881  1\n    8  1 2 3 4 5 6 7 1\nnonsense\n", 7,
                     counts);
    EXPECT_EQ(counts.kernelDropped, 11u);
    EXPECT_EQ(counts.userDropped, 22u);
    ReadKernelCounts("", 7, counts);
    EXPECT_EQ(counts.kernelDropped, 11u);
}

} // namespace
} // namespace msfrs::test
