// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Paths in separate threads that share a rate and a conditioner whose rules are replaced meanwhile; a separate program
/// for the thread sanitizer.
#include "edge/daemon/packets.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

namespace msfrs::test {
namespace {

using namespace edge;

TEST(Threads, ShareARateAndAConditioner)
{
    constexpr unsigned Threads = 3;
    constexpr uint32_t Packets = 4000;
    std::istringstream text("udp protocol=udp rate=1Mbit depth=6000B mark=ef\n");
    const auto rules = ReadRules(text, "edge.rules");
    Conditioner conditioner(std::make_shared<const RuleTable>(rules), true);
    CommonRate common;
    const auto config = PathUnderTest::Parse("link rate=12Mbit\nqueue number=0 threads=3\nscheduler drr\nlimit 100\n"
                                             "class be default=on\nclass ef\nclassify be protocol=tcp\n");
    config->rules = std::make_shared<const std::vector<Rule>>(rules);
    std::atomic<uint64_t> verdicts{0}, offered{0}, policed{0};
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < Threads; ++n) {
        threads.emplace_back([&, n] {
            Host host(n);
            KeptVerdicts given;
            PacketPath path(std::make_unique<Schedule>(config, host.engine()), &conditioner, &common, given, 0);
            for (uint32_t id = 1; id <= Packets; ++id) {
                PacketOf of;
                of.source = static_cast<uint8_t>(id % 7);
                of.protocol = id % 2 ? 6 : 17;
                auto p = Make(of);
                const Arrival a{id, 0, p.bytes.data(), p.captured, p.length};
                path.arrive(&a, 1, id * 100 * Us);
            }
            path.flush(Packets * 100 * Us);
            verdicts += given.all.size();
            for (const auto &c : path.counts()) {
                offered += c.offered.packets;
                policed += c.policed.packets;
            }
        });
    }
    for (int n = 0; n < 20; ++n)
        conditioner.replace(std::make_shared<const RuleTable>(rules));
    for (auto &thread : threads)
        thread.join();
    EXPECT_EQ(verdicts, Threads * Packets);
    EXPECT_EQ(offered, Threads * Packets);
    EXPECT_GT(policed, 0u);
    EXPECT_LT(policed, Threads * Packets / 2); // the other half is TCP
}

} // namespace
} // namespace msfrs::test
