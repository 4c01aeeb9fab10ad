// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/monitor.h"

#include "packets.h"

#include <gtest/gtest.h>
#include <map>
#include <stdexcept>

namespace msfrs::test {
namespace {

using namespace middlebox;

FunctionOptions Keeps(const size_t flows)
{
    auto options = Options();
    options.flows = flows;
    return options;
}

TEST(Monitor, CountsExactlyWhileThereIsRoom)
{
    Monitor monitor(Keeps(16));
    for (uint16_t flow = 0; flow < 16; ++flow) {
        for (int n = 0; n <= flow; ++n)
            EXPECT_EQ(Process(monitor, Udp(Bytes(100), flow)), Udp(Bytes(100), flow)) << "goes on as it is";
    }
    const auto flows = monitor.largest(100);
    ASSERT_EQ(flows.size(), 16u);
    for (size_t n = 0; n < flows.size(); ++n) {
        EXPECT_EQ(flows[n].key.sourcePort, 15 - n) << "largest first";
        EXPECT_EQ(flows[n].packets, 16 - n);
        EXPECT_EQ(flows[n].bytes, (16 - n) * 128);
        EXPECT_EQ(flows[n].error, 0u);
    }
    EXPECT_EQ(monitor.largest(3).size(), 3u);
    EXPECT_EQ(Count(monitor, "replaced_flows"), 0u);
}

TEST(Monitor, FamiliesAndProtocolsAreDifferentFlows)
{
    Monitor monitor(Keeps(16));
    auto tcp = Udp({});
    tcp[9] = 6;
    for (const auto &packet : {Udp({}), tcp, Udp({}, 1, Family::V6), Udp({}, 2)})
        Process(monitor, packet);
    EXPECT_EQ(Count(monitor, "monitored_flows"), 4u);
}

/// The paper's bounds for Space-Saving, with a few large flows among thousands of small ones.
TEST(Monitor, KeepsTheLargestInBoundedMemoryWithinItsBounds)
{
    constexpr size_t Kept = 64;
    Monitor monitor(Keeps(Kept));
    Random random(7);
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> sent; // bytes, packets
    uint64_t total = 0;
    for (int n = 0; n < 40'000; ++n) {
        const auto flow = static_cast<uint16_t>(random.chance(0.5) ? random.below(8) : 8 + random.below(20'000));
        const auto packet = Udp(Bytes(random.below(1400)), flow);
        Process(monitor, packet);
        sent[flow].first += packet.size();
        ++sent[flow].second;
        total += packet.size();
    }
    EXPECT_EQ(Count(monitor, "monitored_bytes"), total);
    EXPECT_EQ(Count(monitor, "monitored_flows"), Kept);
    EXPECT_GT(Count(monitor, "replaced_flows"), 1000u);

    std::map<uint32_t, Monitor::Flow> kept;
    uint64_t sum = 0;
    for (const auto &f : monitor.largest(1000)) {
        kept[f.key.sourcePort] = f;
        const auto &[bytes, packets] = sent.at(f.key.sourcePort);
        EXPECT_GE(f.bytes, bytes);
        EXPECT_LE(f.bytes - f.error, bytes);
        EXPECT_LE(f.packets, packets);
        sum += f.bytes;
    }
    EXPECT_EQ(sum, total) << "every byte is counted for one flow";
    for (const auto &[flow, counts] : sent) {
        if (counts.first > total / Kept) {
            EXPECT_EQ(kept.count(flow), 1u) << flow << " has " << counts.first << " of " << total;
        }
    }
    for (uint32_t flow = 0; flow < 8; ++flow)
        EXPECT_EQ(kept.count(flow), 1u) << flow;
}

TEST(Monitor, RefusesSizesOutOfRange)
{
    EXPECT_THROW(Monitor(Keeps(15)), std::invalid_argument);
    EXPECT_THROW(Monitor(Keeps((1 << 20) + 1)), std::invalid_argument);
}

} // namespace
} // namespace msfrs::test
