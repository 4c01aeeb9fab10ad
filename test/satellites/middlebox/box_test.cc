// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Packets that pass through functions before the link, under a simulated clock.
#include "satellites/middlebox/box.h"

#include "satellites/middlebox/functions_file.h"

#include "packets.h"
#include "support/audit.h"
#include "support/plugins.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <sstream>

namespace msfrs::test {
namespace {

using namespace middlebox;

/// Time of either function here, for any packet.
constexpr int64_t FunctionTime = 50 * Us;
constexpr const char *Functions = "function encrypt class=large alpha=0 beta=50\n"
                                  "function forward class=small alpha=0 beta=50\n";
constexpr const char *Classes = "class large\nclass small\nclass rest default=on\n"
                                "classify large from-port=1\nclassify small from-port=2\n";

class BoxUnderTest : private edge::Verdicts {
public:
    /// \param scheduler its line, with more of the link's configuration
    explicit BoxUnderTest(const std::string &scheduler, const std::string &share = "100%"):
        config_(configuration(scheduler)),
        box_(std::make_unique<edge::Schedule>(config_, host_.engine(), 2), functions(share), Options().random,
             [this] { return cpu_ += FunctionTime; }, *this, 0)
    {}

    void arrive(const uint16_t flow, const size_t length, const msfrs_time now)
    {
        auto packet = Udp(Bytes(length - 28), flow);
        const auto size = static_cast<uint32_t>(packet.size());
        flows_[++ids_] = flow;
        box_.arrive({ids_, 0, packet.data(), size, size}, now);
    }

    /// Keeps packets of flow 1 (1250 bytes: 100 us of the link) and 2 (125 bytes: 10 us) queued.
    void keepBusy(const msfrs_time until)
    {
        msfrs_time now = 0;
        while (now < until) {
            for (const uint16_t flow : {1, 2}) {
                for (auto waiting = queued(flow); waiting < 30; ++waiting)
                    arrive(flow, flow == 1 ? 1250 : 125, now);
            }
            now = std::max(now + 1, box_.next().value());
            box_.service(now);
        }
    }

    uint64_t queued(const uint16_t flow) const { return counts(flow).waiting(); }
    double passed(const uint16_t flow) const { return static_cast<double>(counts(flow).passed.packets); }
    const BoxCounts &counts(const uint16_t flow) const { return box_.counts()[flow - 1u]; }

    Box &box() { return box_; }
    const std::vector<uint32_t> &accepted() const { return accepted_; }
    uint16_t flowOf(const uint32_t id) const { return flows_.at(id); }
    int64_t cpu() const { return cpu_; }

private:
    static std::shared_ptr<const edge::Config> configuration(const std::string &scheduler)
    {
        std::istringstream in("link rate=100Mbit\nqueue number=0\nscheduler " + scheduler + "\n" + Classes);
        return std::make_shared<const edge::Config>(edge::ReadConfig(in, "edge.conf", PluginDir()));
    }
    CpuConfig functions(const std::string &share) const
    {
        std::istringstream in("cpu share=" + share + "\n" + Functions);
        return ReadFunctions(in, "functions.conf", *config_);
    }
    void give(const uint32_t id, const bool pass, std::optional<uint32_t>) override
    {
        if (pass)
            accepted_.push_back(id);
    }

    Host host_;
    int64_t cpu_ = 0;
    uint32_t ids_ = 0;
    std::map<uint32_t, uint16_t> flows_;
    std::vector<uint32_t> accepted_;
    std::shared_ptr<const edge::Config> config_;
    Box box_;
};

/// The purpose of drfq and atfq: each flow has the same time on the resource that it needs most. By bytes, the flow of
/// small packets would have nearly the whole processor.
TEST(TwoResources, DominantSharesAgree)
{
    for (const std::string scheduler : {"drfq", "atfq", "atfq packets=1", "drr"}) {
        BoxUnderTest box(scheduler);
        box.keepBusy(2 * Second);
        const double large = box.passed(1) * 100, small = box.passed(2) * 50; // us on the dominant resource
        ASSERT_GT(large, 0);
        if (scheduler == "drr") {
            EXPECT_GT(small / large, 3) << "equal bytes are no equal shares";
        } else {
            EXPECT_NEAR(small / large, 1, 0.02) << scheduler;
        }
        EXPECT_GE(large + small, 2e6 - 1e3) << scheduler << ": no less than without a buffer between the resources";
        if (scheduler != "atfq") { // the order of its loops needs no buffer, and need not fill this one
            EXPECT_NEAR((box.passed(1) + box.passed(2)) * 50, 2e6, 1e4) << scheduler << ": the processor is never idle";
        }
        EXPECT_EQ(AuditLaws(box.box().schedule().engine()), "");
    }
}

TEST(TwoResources, EveryPacketIsReallyProcessedBeforeItIsSent)
{
    BoxUnderTest box("drfq");
    box.keepBusy(Second / 2);
    const auto &cpu = box.box().cpu();
    for (const uint16_t flow : {1, 2}) {
        const auto &use = cpu.use(flow - 1u);
        EXPECT_GE(static_cast<double>(use.packets), box.passed(flow));
        EXPECT_LE(static_cast<double>(use.packets), box.passed(flow) + 4) << "a few are ahead of the link";
        EXPECT_EQ(use.measured, use.packets * uint64_t{FunctionTime});
    }
    EXPECT_EQ(Count(cpu.function(0), "encrypted_packets"), cpu.use(0).packets);
    EXPECT_EQ(Count(cpu.function(1), "forwarded_packets"), cpu.use(1).packets);
    EXPECT_EQ(Count(cpu.function(1), "forwarded_bytes"), 125 * cpu.use(1).packets) << "whole packets are processed";
}

TEST(TwoResources, FunctionsKeepToTheirShare)
{
    BoxUnderTest box("drfq", "20%");
    box.keepBusy(Second);
    EXPECT_NEAR((box.passed(1) + box.passed(2)) * 50, 2e5, 2e3) << "us";
}

TEST(TwoResources, AFlowsOrderIsKept)
{
    BoxUnderTest box("drfq");
    box.keepBusy(Second / 4);
    std::map<uint16_t, uint32_t> last;
    for (const auto id : box.accepted()) {
        EXPECT_LT(last[box.flowOf(id)], id);
        last[box.flowOf(id)] = id;
    }
    EXPECT_EQ(last.size(), 2u);
}

TEST(TwoResources, AClassWithoutFunctionNeedsTheLinkAlone)
{
    BoxUnderTest box("drfq");
    for (int n = 0; n < 3; ++n)
        box.arrive(3, 1250, 0);
    for (msfrs_time now = 0; box.box().next(); box.box().service(now))
        now = *box.box().next();
    EXPECT_EQ(box.accepted().size(), 3u);
    EXPECT_EQ(box.cpu(), 0) << "no function was executed";
}

/// On a link on which no packet waits for long, the buffer holds packets that wait for the processor.
TEST(TwoResources, WhoSendsLessThanTheShareLosesNothing)
{
    BoxUnderTest box("drfq\nlimit 50");
    msfrs_time now = 0;
    for (int n = 0; n < 5000; ++n, now += 20 * Us) {
        box.arrive(2, 125, now); // two and a half times the processor's capacity
        if (n % 50 == 0)
            box.arrive(1, 1250, now);
        for (auto due = box.box().next(); due && *due <= now; due = box.box().next())
            box.box().service(now);
    }
    EXPECT_GT(box.counts(2).dropped.packets, 2000u);
    EXPECT_EQ(box.counts(1).dropped.packets, 0u);
}

TEST(TwoResources, TheEndLosesNothing)
{
    BoxUnderTest box("drfq");
    for (int n = 0; n < 50; ++n)
        box.arrive(static_cast<uint16_t>(1 + n % 2), 1000, 0);
    box.box().service(Second); // some are between the processor and the link
    box.box().flush(Second);
    EXPECT_EQ(box.box().next(), std::nullopt);
    auto accepted = box.accepted();
    std::sort(accepted.begin(), accepted.end());
    std::vector<uint32_t> all(50);
    std::iota(all.begin(), all.end(), 1);
    EXPECT_EQ(accepted, all);
}

TEST(TwoResources, ReportsTellEstimatesBesideWhatWasTaken)
{
    BoxUnderTest box("drfq");
    for (int n = 0; n < 3; ++n)
        box.arrive(1, 1500, n * Second);
    box.box().service(9 * Second);
    EXPECT_EQ(box.box().report(),
              "class large: offered 3 packets 4500 bytes, dropped 0 packets, passed 3 packets 4500 bytes\n"
              "class small: offered 0 packets 0 bytes, dropped 0 packets, passed 0 packets 0 bytes\n"
              "class rest: offered 0 packets 0 bytes, dropped 0 packets, passed 0 packets 0 bytes\n"
              "function encrypt of class large: packets 3, bytes 4500, estimated_seconds 0.00015, "
              "processor_seconds 0.00015, encrypted_packets 3, encrypted_bytes 4440, failed_packets 0\n"
              "function forward of class small: packets 0, bytes 0, estimated_seconds 0, processor_seconds 0, "
              "forwarded_packets 0, forwarded_bytes 0, expired_packets 0, malformed_packets 0\n");
}

} // namespace
} // namespace msfrs::test
