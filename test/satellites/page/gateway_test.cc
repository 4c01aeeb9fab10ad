// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/gateway.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

GatewayState Read(const std::string &text) { return StateOf(ReadOpenMetrics(text + "# EOF\n")); }

constexpr const char *OneWorker = "msfrs_scheduling 1\nmsfrs_link_capacity_bytes_per_second 250000\n"
                                  "msfrs_link_metered 1\nmsfrs_link_utilisation_ratio 0.97\nmsfrs_link_own_ratio 0.9\n"
                                  "msfrs_window_outstanding_responses 3\nmsfrs_window_limit_responses 4.5\n"
                                  "msfrs_holding 1\nmsfrs_link_queue_seconds 0.05\n"
                                  "msfrs_class_weight{class=\"gold\"} 4\nmsfrs_class_weight{class=\"bronze\"} 1\n"
                                  "msfrs_class_users{class=\"gold\"} 1\nmsfrs_class_users{class=\"bronze\"} 4\n"
                                  "msfrs_class_queued_requests{class=\"gold\"} 2\n"
                                  "msfrs_class_paused_responses{class=\"bronze\"} 3\n"
                                  "msfrs_class_held_seconds{class=\"gold\",quantile=\"0.95\"} 1.5\n"
                                  "msfrs_class_refused_requests_total{class=\"gold\",reason=\"max_wait\"} 7\n"
                                  "msfrs_something_new{class=\"gold\"} 9\nmsfrs_another 9\n";

TEST(Gateway, OneWorker)
{
    const auto g = Read(OneWorker);
    EXPECT_TRUE(g.scheduling && g.holding && g.metered);
    EXPECT_EQ(g.capacity, 2e6);
    EXPECT_EQ(g.utilisation, 0.97);
    EXPECT_EQ(g.own, 0.9);
    EXPECT_EQ(g.queue, 0.05);
    EXPECT_FALSE(g.base);
    ASSERT_EQ(g.classes.size(), 2u);
    EXPECT_EQ(g.classes[0].heldP95, 1.5);
    EXPECT_EQ(g.classes[0].refused[3], 7);
    EXPECT_EQ(g.waiting(), 5);
    // 4 * 1 + 1 * 4 are the weights of the active users.
    EXPECT_EQ(g.fairShare(g.classes[0]), 2e6 * 4 / 8);
    EXPECT_EQ(g.fairShare(g.classes[1]), 2e6 * 1 / 8);
}

TEST(Gateway, AUserMoreHasAShare)
{
    const auto g = Read("msfrs_link_capacity_bytes_per_second 1000\nmsfrs_class_weight{class=\"a\"} 3\n"
                        "msfrs_class_weight{class=\"b\"} 1\nmsfrs_class_users{class=\"b\"} 1\n");
    EXPECT_EQ(g.fairShare(g.classes[0]), 6000);
    EXPECT_EQ(g.fairShare(g.classes[1]), 8000);
}

TEST(Gateway, RatesOfLinksAddUp)
{
    const auto g = Read("msfrs_scheduling 1\nmsfrs_link_capacity_bytes_per_second{link=\"eth1\"} 1000\n"
                        "msfrs_link_capacity_bytes_per_second{link=\"eth2\"} 500\n"
                        "msfrs_class_users{class=\"gold\",link=\"eth1\"} 2\n"
                        "msfrs_class_users{class=\"gold\",link=\"eth2\"} 1\n");
    EXPECT_EQ(g.capacity, 12000);
    ASSERT_EQ(g.classes.size(), 1u);
    EXPECT_EQ(g.classes[0].users, 3);
}

TEST(Gateway, WorkersAreJoined)
{
    std::string text;
    for (const char *const worker : {"1", "2"}) {
        const std::string w = std::string("worker=\"") + worker + "\"";
        text += "msfrs_scheduling{" + w + "} 1\nmsfrs_link_capacity_bytes_per_second{" + w + "} 1000\n";
        text += "msfrs_window_outstanding_responses{" + w + "} " + worker + "\nmsfrs_link_own_ratio{" + w + "} 0.25\n";
        text += "msfrs_class_weight{" + w + ",class=\"gold\"} 4\nmsfrs_class_users{" + w + ",class=\"gold\"} 2\n";
        text += "msfrs_class_held_seconds{" + w + ",class=\"gold\",quantile=\"0.5\"} " + worker + "\n";
    }
    const auto g = Read(text);
    EXPECT_EQ(g.workers, 2);
    EXPECT_EQ(g.capacity, 8000);
    EXPECT_EQ(g.outstanding, 3);
    EXPECT_EQ(g.own, 0.5);
    ASSERT_EQ(g.classes.size(), 1u);
    EXPECT_EQ(g.classes[0].weight, 4);
    EXPECT_EQ(g.classes[0].users, 4);
    EXPECT_EQ(g.classes[0].heldP50, 2);
}

TEST(Gateway, ClassesAreBounded)
{
    std::string text;
    for (size_t n = 0; n <= MostClasses; ++n)
        text += "msfrs_class_weight{class=\"c" + std::to_string(n) + "\"} 1\n";
    EXPECT_THROW(Read(text), PageError);
}

GatewayState Counted(const double bytes, const double requests, const double held)
{
    GatewayState g;
    ClassState c;
    c.name = "gold";
    c.bytes = bytes;
    c.requests = requests;
    c.heldSum = held;
    c.excess = bytes / 2;
    g.noClassBytes = bytes;
    g.classes = {c};
    return g;
}

TEST(Gateway, WhatFlowed)
{
    const auto flow = FlowBetween(Counted(1000, 10, 3), Counted(3000, 14, 5), 2);
    ASSERT_EQ(flow.classes.size(), 1u);
    EXPECT_EQ(flow.classes[0].rate, 8000);
    EXPECT_EQ(flow.classes[0].excess, 4000);
    EXPECT_EQ(flow.noClass, 8000);
    EXPECT_EQ(flow.classes[0].responses, 2);
    EXPECT_EQ(flow.classes[0].meanSize, 500);
    EXPECT_EQ(flow.classes[0].heldPerMegabyte, 1000) << "2 s for 2000 bytes";
}

TEST(Gateway, NoResponseHasNoSize)
{
    const auto flow = FlowBetween(Counted(1000, 10, 3), Counted(1500, 10, 3), 1);
    EXPECT_FALSE(flow.classes[0].meanSize);
}

TEST(Gateway, WithoutABytePerMegabyteThereIsNothing)
{
    EXPECT_FALSE(FlowBetween(Counted(1000, 10, 3), Counted(1000, 11, 5), 1).classes[0].heldPerMegabyte);
}

TEST(Gateway, CountersThatBeginAnew)
{
    EXPECT_EQ(FlowBetween(Counted(1'000'000, 10, 3), Counted(500, 1, 0), 1).classes[0].rate, 4000);
    EXPECT_EQ(FlowBetween(GatewayState(), Counted(1'000'000, 10, 3), 1).classes[0].rate, 0) << "seen first";
}

} // namespace
} // namespace msfrs::test
