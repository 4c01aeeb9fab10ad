// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Packets that go through functions on their way to the link, in the daemon's packet path under a simulated clock.
#include "edge/daemon/packet_path.h"
#include "edge/daemon/report.h"

#include "packets.h"
#include "support/plugins.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <sstream>

namespace msfrs::test {
namespace {

using namespace edge;

/// Both functions take this long here, whatever the packet.
constexpr int64_t FunctionTime = 50 * Us;
constexpr const char *Functions = "function encrypt alpha=0 beta=50\nfunction forward alpha=0 beta=50\n";
constexpr const char *Classes = "class large function=encrypt\nclass small function=forward\nclass rest default=on\n"
                                "classify large from-port=1\nclassify small from-port=2\n";

class Box : private Verdicts {
public:
    explicit Box(const std::string &more): path_(schedule(more), nullptr, common_, *this, 0) {}

    std::unique_ptr<Schedule> schedule(const std::string &more)
    {
        std::istringstream in("link rate=100Mbit\nqueue number=0\n" + more);
        auto config = std::make_shared<const Config>(ReadConfig(in, "box.conf", PluginDir()));
        return std::make_unique<Schedule>(config, EngineHost{[](int, const std::string &) {}, Options().random},
                                          [this] { return cpu_ += FunctionTime; });
    }

    void arrive(const uint16_t flow, const size_t length, const msfrs_time now)
    {
        auto packet = Udp(Bytes(length - 28), flow);
        const auto size = static_cast<uint32_t>(packet.size());
        flows_[++ids_] = flow;
        const Arrival arrival{ids_, 0, packet.data(), size, size};
        path_.arrive(&arrival, 1, now);
    }

    /// Packets of flow 1 (1250 bytes: 100 us of the link) and 2 (125 bytes: 10 us) are always there.
    void keepBusy(const msfrs_time until)
    {
        msfrs_time now = 0;
        while (now < until) {
            for (const uint16_t flow : {1, 2}) {
                for (auto waiting = queued(flow); waiting < 30; ++waiting)
                    arrive(flow, flow == 1 ? 1250 : 125, now);
            }
            now = std::max(now + 1, path_.next().value());
            path_.service(now);
        }
    }

    uint64_t queued(const uint16_t flow) const { return path_.counts()[flow - 1].queued.packets; }
    double passed(const uint16_t flow) const { return static_cast<double>(path_.counts()[flow - 1].passed.packets); }

    PacketPath &path() { return path_; }
    const std::vector<uint32_t> &accepted() const { return accepted_; }
    uint16_t flowOf(const uint32_t id) const { return flows_.at(id); }
    int64_t cpu() const { return cpu_; }

private:
    void accept(const uint32_t id) override { accepted_.push_back(id); }
    void accept(const uint32_t id, uint32_t) override { accepted_.push_back(id); }
    void drop(uint32_t) override {}

    int64_t cpu_ = 0;
    uint32_t ids_ = 0;
    std::map<uint32_t, uint16_t> flows_;
    std::vector<uint32_t> accepted_;
    CommonRate common_{1};
    PacketPath path_;
};

/// What drfq and atfq are for: each flow has as much time on the resource that it needs most. By bytes, the flow of
/// small packets would have the processor nearly to itself.
TEST(TwoResources, DominantSharesAgree)
{
    for (const std::string scheduler : {"drfq", "atfq", "atfq packets=1", "drr"}) {
        Box box(std::string("cpu share=100%\nscheduler ") + scheduler + "\n" + Functions + Classes);
        box.keepBusy(2 * Second);
        const double large = box.passed(1) * 100, small = box.passed(2) * 50; // us on the dominant resource
        ASSERT_GT(large, 0);
        if (scheduler == "drr") {
            EXPECT_GT(small / large, 3) << "equal bytes are no equal shares";
        } else {
            EXPECT_NEAR(small / large, 1, 0.02) << scheduler;
        }
        EXPECT_GE(large + small, 2e6 - 1e3) << scheduler << ": no less than without a buffer between the resources";
        if (scheduler != "atfq") { // its loops are in an order that needs no buffer, and need not fill this one
            EXPECT_NEAR((box.passed(1) + box.passed(2)) * 50, 2e6, 1e4) << scheduler << ": the processor is never idle";
        }
        EXPECT_EQ(box.path().schedule().engine().auditLaws(), "");
    }
}

TEST(TwoResources, EveryPacketIsReallyProcessedBeforeItIsSent)
{
    Box box(std::string("cpu share=100%\nscheduler drfq\n") + Functions + Classes);
    box.keepBusy(Second / 2);
    const auto &cpu = *box.path().schedule().cpu();
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
    Box box(std::string("cpu share=20%\nscheduler drfq\n") + Functions + Classes);
    box.keepBusy(Second);
    EXPECT_NEAR((box.passed(1) + box.passed(2)) * 50, 2e5, 2e3) << "us";
}

TEST(TwoResources, AFlowsOrderIsKept)
{
    Box box(std::string("scheduler drfq\n") + Functions + Classes);
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
    Box box(std::string("scheduler drfq\n") + Functions + Classes);
    for (int n = 0; n < 3; ++n)
        box.arrive(3, 1250, 0);
    for (msfrs_time now = 0; box.path().next(); box.path().service(now))
        now = *box.path().next();
    EXPECT_EQ(box.accepted().size(), 3u);
    EXPECT_EQ(box.cpu(), 0) << "no function was executed";
}

TEST(TwoResources, ReloadAndEndLoseNothing)
{
    const auto text = std::string("scheduler drfq\n") + Functions + Classes;
    Box box(text);
    for (int n = 0; n < 50; ++n)
        box.arrive(1 + n % 2, 1000, 0);
    box.path().service(Second); // some are between the processor and the link
    box.path().replace(box.schedule(text), Second);
    EXPECT_EQ(box.path().schedule().engine().auditLaws(), "");
    box.path().replace(box.schedule("scheduler fifo\n"), Second);
    EXPECT_EQ(box.path().schedule().cpu(), nullptr);
    box.path().replace(box.schedule(text), Second);
    box.path().flush(Second);
    auto accepted = box.accepted();
    std::sort(accepted.begin(), accepted.end());
    std::vector<uint32_t> all(50);
    std::iota(all.begin(), all.end(), 1);
    EXPECT_EQ(accepted, all);
}

TEST(TwoResources, MistakesAreRefusedWithLineAndRange)
{
    const struct {
        std::string text, wanted;
    } cases[] = {
        {"function", "box.conf:3: something is missing; wanted is: function NAME alpha=US"},
        {"function zip alpha=1 beta=1", "function zip: allowed are forward, monitor, redundancy and encrypt"},
        {"function forward beta=1", "alpha"},
        {"function forward alpha=1", "beta"},
        {"function forward alpha=-1 beta=1", "alpha=-1: allowed are 0 to 1000"},
        {"function forward alpha=1 beta=1000001", "beta=1000001: allowed are 0 to 1000000"},
        {"function forward alpha=nan beta=1", "alpha=nan: allowed are 0 to 1000"},
        {"function forward alpha=1us beta=1", "alpha=1us: allowed are 0 to 1000"},
        {"function forward alpha=1 beta=1 passes=0", "passes=0"},
        {"function monitor alpha=1 beta=1 flows=15", "flows=15"},
        {"function redundancy alpha=1 beta=1 cache=1KB", "cache=1KB: allowed are 1MB to 1024MB"},
        {"function forward alpha=1 beta=1\nfunction forward alpha=1 beta=1",
         "box.conf:4: function forward: it was declared before"},
        {"class a function=forward", "function=forward: no line `function forward` before this one"},
        {"cpu share=0%", "share=0%: allowed are 0.1% to 100%"},
        {"cpu share=101%", "share=101%: allowed are 0.1% to 100%"},
        {"cpu share=0.5", "share=0.5: allowed are 0.1% to 100%"},
        {"cpu", "share"},
        {"function forward alpha=0 beta=0\nlimit 10001", "allowed are 1 to 10000"},
        {"function forward alpha=0 beta=0\nclass a function=forward default=on\nclass b parent=a",
         "class a has classes below it"},
    };
    for (const auto &c : cases) {
        try {
            Box box(c.text + "\n");
            ADD_FAILURE() << c.text << ": accepted";
        } catch (const RuleError &error) {
            EXPECT_NE(std::string(error.what()).find(c.wanted), std::string::npos) << c.text << ": " << error.what();
        }
    }
}

/// Bytes are weighed by the link's rate, which is written once; where the link has none, the scheduler is told it.
TEST(TwoResources, SchedulersKnowTheLinksRate)
{
    const auto read = [](const std::string &text) {
        std::istringstream in("queue number=0\n" + text);
        return ReadConfig(in, "box.conf", PluginDir());
    };
    EXPECT_EQ(read("link rate=7Mbit\nscheduler drfq\n").scheduler.params[1].i, 7'000'000);
    EXPECT_EQ(read("link rate=7Mbit\nscheduler drfq rate=9000000\n").scheduler.params[1].i, 9'000'000);
    EXPECT_EQ(read("link rate=none\nscheduler drfq rate=9000000\n").scheduler.params[1].i, 9'000'000);
    EXPECT_THROW(read("link rate=none\nscheduler drfq\n"), RuleError);
    EXPECT_NO_THROW(read("link rate=none\nscheduler drr\n"));
}

TEST(TwoResources, ReportsTellEstimatesBesideWhatWasTaken)
{
    Box box(std::string("cpu share=100%\nscheduler drfq\n") + Functions + Classes);
    box.keepBusy(Second / 10);
    const auto &schedule = box.path().schedule();
    Report report;
    report.config = std::make_shared<const Config>(schedule.config());
    report.functions = {{"encrypt", 0, {3, 4500, 150'000, 180'000}, schedule.cpu()->function(0).counts()}};
    const auto count = std::to_string(Count(schedule.cpu()->function(0), "encrypted_packets"));
    EXPECT_NE(Text(report).find("function encrypt of queue 0: packets 3, bytes 4500, estimated_seconds 0.00015, "
                                "processor_seconds 0.00018; encrypted_packets " + count),
              std::string::npos) << Text(report);
    for (const std::string line : {"packets_total{function=\"encrypt\",queue=\"0\"} 3\n",
                                   "processor_seconds_total{function=\"encrypt\",queue=\"0\"} 0.00018\n"})
        EXPECT_NE(OpenMetrics(report).find("\nmsfrs_edge_function_" + line), std::string::npos) << line;
    EXPECT_NE(OpenMetrics(report).find("name=\"encrypted_packets\"} " + count), std::string::npos);
}

} // namespace
} // namespace msfrs::test
