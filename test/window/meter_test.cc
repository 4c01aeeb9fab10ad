// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/meter.h"

#include "support/fake_interface.h"
#include "support/host.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

using test::FakeInterface;
using test::Host;

class MeterTest : public ::testing::Test {
protected:
    void make(std::unique_ptr<InterfaceCounter> counter, const uint32_t packetOverhead = 0)
    {
        meter.emplace(std::move(counter), "eth9", 0.25, packetOverhead, host.engine().log);
    }

    /// Bytes since the last call.
    double more()
    {
        const double before = total_;
        total_ = meter->total();
        return total_ - before;
    }

    Host host;
    std::optional<Meter> meter;

private:
    double total_ = 0;
};

TEST_F(MeterTest, PayloadWithOverheadWhereThereIsNoInterface)
{
    make(nullptr);
    EXPECT_EQ(more(), 0);
    meter->payload(1000);
    meter->payload(600);
    EXPECT_EQ(more(), 2000);
    EXPECT_FALSE(meter->metered());
    EXPECT_EQ(more(), 0) << "bytes were counted twice";
    EXPECT_TRUE(host.log().empty());
}

TEST_F(MeterTest, PacketsAreCountedWithTheirHeadersAlready)
{
    make(nullptr);
    meter->payload(400);
    meter->packets(1500);
    EXPECT_EQ(more(), 2000);
    EXPECT_EQ(more(), 0) << "bytes were counted twice";

    FakeInterface eth("eth9");
    make(FakeInterface::Open("eth9"));
    more();
    eth.bytes = *eth.bytes + 700;
    meter->packets(1500);
    EXPECT_EQ(more(), 700) << "the interface has seen them itself";
}

TEST_F(MeterTest, CounterCountsFromTheStartAndPayloadPlaysNoPart)
{
    FakeInterface eth("eth9");
    eth.bytes = 1'000'000;
    make(FakeInterface::Open("eth9"));
    eth.bytes = 1'000'500;
    meter->payload(4000);
    EXPECT_EQ(more(), 500);
    EXPECT_TRUE(meter->metered());
    EXPECT_EQ(more(), 0) << "an idle link is not a missing counter";
    EXPECT_TRUE(meter->metered());
    EXPECT_TRUE(host.log().empty());
}

TEST_F(MeterTest, DisappearsOnceLoggedAndComesBack)
{
    FakeInterface eth("eth9");
    make(FakeInterface::Open("eth9"));
    eth.bytes = 100;
    EXPECT_EQ(more(), 100);

    eth.bytes.reset();
    for (int n = 0; n < 3; ++n) {
        meter->payload(800);
        EXPECT_EQ(more(), 1000);
        EXPECT_FALSE(meter->metered());
    }
    EXPECT_EQ(host.logged(0), "interface eth9 has no receive counter; utilisation is taken from payload bytes\n");

    eth.bytes = 5000;
    meter->payload(800);
    EXPECT_EQ(more(), 1000) << "what the counter did while it was away is unknown";
    EXPECT_FALSE(meter->metered());
    eth.bytes = 5700;
    meter->payload(1);
    EXPECT_EQ(more(), 700);
    EXPECT_TRUE(meter->metered());
    EXPECT_EQ(host.logged(0), "interface eth9 has no receive counter; utilisation is taken from payload bytes\n"
                              "interface eth9 is back; utilisation is taken from its receive counter\n");

    eth.bytes.reset();
    more();
    EXPECT_EQ(host.log().size(), 3u) << "a second loss is a second event";
}

TEST_F(MeterTest, CounterThatStartsAnewGivesNoHugeInterval)
{
    FakeInterface eth("eth9");
    eth.bytes = 1'000'000;
    make(FakeInterface::Open("eth9"));
    eth.bytes = 300; // the interface was removed and created again between two readings
    meter->payload(400);
    EXPECT_EQ(more(), 500);
    EXPECT_FALSE(meter->metered());
    eth.bytes = 1000;
    EXPECT_EQ(more(), 700);
    EXPECT_TRUE(meter->metered());
    EXPECT_TRUE(host.log().empty());
}

TEST_F(MeterTest, InterfaceThatWasNeverThere)
{
    make(FakeInterface::Open("eth9"));
    meter->payload(400);
    EXPECT_EQ(more(), 500);
    EXPECT_EQ(host.logged(0), "interface eth9 has no receive counter; utilisation is taken from payload bytes\n");
    FakeInterface eth("eth9");
    eth.bytes = 70;
    EXPECT_EQ(more(), 0);
    eth.bytes = 90;
    EXPECT_EQ(more(), 20);
    EXPECT_TRUE(meter->metered());
}

TEST_F(MeterTest, NeverGoesBackWhateverTheCounterDoes)
{
    test::Random random(3);
    FakeInterface eth("eth9");
    make(FakeInterface::Open("eth9"));
    double before = 0;
    for (int n = 0; n < 5000; ++n) {
        if (random.chance(0.2))
            eth.bytes.reset();
        else
            eth.bytes = random.below(uint64_t(1) << 45);
        meter->payload(random.between(0, 100'000));
        const double total = meter->total();
        ASSERT_GE(total, before);
        before = total;
    }
}

TEST_F(MeterTest, PacketsBringWhatTheCounterLeavesOut)
{
    FakeInterface eth("eth9");
    eth.bytes = 5000;
    eth.packets = 40;
    make(FakeInterface::Open("eth9"), 22);
    EXPECT_EQ(more(), 0) << "what came before";
    eth.bytes = 5000 + 3000;
    eth.packets = 40 + 2;
    EXPECT_EQ(more(), 3044);
    eth.bytes = 100;
    eth.packets = 1;
    meter->payload(400);
    EXPECT_EQ(more(), 500) << "started anew: payload, with its own overhead";
    meter->packets(700);
    eth.packets = 2;
    EXPECT_EQ(more(), 22);
}

TEST_F(MeterTest, TheLatestIsNotReadAgainWhileTheInterfaceAnswers)
{
    FakeInterface eth("eth9");
    make(FakeInterface::Open("eth9"));
    eth.bytes = 100;
    EXPECT_EQ(more(), 100);
    const int reads = eth.reads;
    eth.bytes = 300;
    meter->payload(80);
    EXPECT_EQ(meter->latest(), 100);
    EXPECT_EQ(meter->own(), 100) << "what responses brought is known at any time";
    EXPECT_EQ(eth.reads, reads);
    eth.bytes.reset();
    EXPECT_EQ(more(), 100) << "payload, now that the interface is gone";
    meter->payload(80);
    EXPECT_EQ(meter->latest(), 300) << "without an interface it costs nothing to know";
}

TEST_F(MeterTest, CountsBeyond32Bits)
{
    FakeInterface eth("eth9");
    eth.bytes = uint64_t(1) << 40;
    make(FakeInterface::Open("eth9"));
    eth.bytes = (uint64_t(1) << 40) + (uint64_t(1) << 33);
    EXPECT_EQ(more(), 8589934592.0);
}

TEST(SysfsCounter, ReadsTheLoopbackAndMissesWhatIsNotThere)
{
    EXPECT_TRUE(OpenSysfsCounter("lo", true)->read());
    EXPECT_FALSE(OpenSysfsCounter("msfrs-not-there", false)->read());
    EXPECT_FALSE(OpenSysfsCounter("", false)->read());
}

} // namespace
} // namespace msfrs
