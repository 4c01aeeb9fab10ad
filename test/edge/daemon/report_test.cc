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
    config->scheduler.text = "drr";
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

TEST(EdgeReport, HowTheRateWasFound)
{
    auto r = Example();
    EXPECT_EQ(Text(r).find("found from"), std::string::npos);
    EXPECT_EQ(OpenMetrics(r).find("pace"), std::string::npos);
    FoundReport found;
    found.at = 10 * int64_t{1'000'000'000};
    found.base = 0.04;
    found.pace = 4'500'000;
    auto &c = found.capacity;
    c.params = {1e6, 8e6};
    c.rate = 5e6;
    c.delivered = 4e6;
    c.queue = 0.05;
    c.limited = true;
    c.changes.push_back({found.at - 1'500'000'000, 6e6, 5e6, CapacityReason::Queue});
    auto config = std::make_shared<Config>(*r.config);
    config->link.rate = 1'000'000;
    r.config = config;
    r.found = found;
    const auto text = Text(r);
    for (const char *const part :
         {"link 5000000 bit/s, ", "found from 1000000 to 8000000 bit/s: pace 4500000 bit/s, delivered 4000000 bit/s, "
          "base 40 ms, queue at the provider 50 ms, longer path 0 ms, out of order 0, limited yes\n",
          "changed 1.5 s ago from 6000000 to 5000000 bit/s: a queue stood at the provider\n"})
        EXPECT_NE(text.find(part), std::string::npos) << part << text;
    const auto metrics = OpenMetrics(r);
    for (const char *const line :
         {"msfrs_edge_link_bits_per_second 5000000\n", "msfrs_edge_link_pace_bits_per_second 4500000\n",
          "msfrs_edge_link_queue_seconds 0.05\n", "msfrs_edge_link_limited 1\n",
          "msfrs_edge_link_last_change{reason=\"a queue stood at the provider\"} 1\n"})
        EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
    r.found->capacity.queue = -1;
    EXPECT_NE(Text(r).find("queue at the provider unknown"), std::string::npos);
    EXPECT_EQ(OpenMetrics(r).find("msfrs_edge_link_queue_seconds"), std::string::npos);
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
