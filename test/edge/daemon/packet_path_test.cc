// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/packets.h"
#include "support/audit.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

namespace msfrs::test {
namespace {

using namespace edge;

// A packet of 1500 bytes takes 1 ms.
const std::string Slow = "link rate=12Mbit\nqueue number=0\n";

std::vector<uint32_t> UpTo(const uint32_t n)
{
    std::vector<uint32_t> all(n);
    std::iota(all.begin(), all.end(), 1);
    return all;
}

/// The counters add up, for each class and for the engine.
void ExpectCountsToAddUp(const PathUnderTest &t)
{
    const auto counts = t.path.counts();
    Volume queued;
    for (size_t n = 0; n < counts.size(); ++n) {
        EXPECT_EQ(counts[n].queued.packets, t.path.schedule().classAt(n).backlog);
        queued += counts[n].queued;
    }
    const auto &engine = t.path.schedule().engine();
    EXPECT_EQ(queued.packets, engine.totals().queued.items);
    EXPECT_EQ(AuditLaws(engine), "");
    const auto total = t.total();
    EXPECT_EQ(total.offered.packets, total.policed.packets + total.dropped.packets + total.passed.packets +
              total.queued.packets);
    EXPECT_EQ(total.waits.count(), total.passed.packets);
}

/// And every packet got a verdict, unless a class and its counters disappeared in a reload.
void ExpectVerdictsToAddUp(const PathUnderTest &t)
{
    ExpectCountsToAddUp(t);
    const auto total = t.total();
    EXPECT_EQ(t.verdicts.all.size(), total.offered.packets - total.queued.packets);
    EXPECT_EQ(t.verdicts.passed().size(), total.passed.packets);
}

TEST(PacketPath, LetsGoAtTheRateInOrder)
{
    PathUnderTest t(Slow);
    for (int n = 0; n < 5; ++n)
        t.arrive({});
    EXPECT_EQ(t.verdicts.passed(), UpTo(1)); // an idle link
    EXPECT_EQ(t.path.next(), 1 * Ms);
    t.run(2 * Ms);
    EXPECT_EQ(t.verdicts.passed(), UpTo(3));
    ExpectVerdictsToAddUp(t);
    t.run(10 * Ms);
    EXPECT_EQ(t.verdicts.passed(), UpTo(5));
    EXPECT_EQ(t.path.next(), std::nullopt);
    EXPECT_NEAR(static_cast<double>(t.total().waits.sum), 10e6, 1);
}

TEST(PacketPath, CountsWhatTheLinkAddsToAPacket)
{
    PathUnderTest t("link rate=8Mbit overhead=38B mtu=1500B\nqueue number=0\n");
    t.arrive({});
    t.arrive({});
    EXPECT_EQ(t.path.next(), 1538 * Us);
}

TEST(PacketPath, SegmentsThatStayTogetherCountAsTheLinkWillSeeThem)
{
    LinkConfig link;
    link.overhead = 14;
    const auto onLink = [&](const uint32_t length, const uint32_t headers) {
        Traits t;
        t.length = length;
        t.headers = headers;
        return PacketPath::onLink(link, t);
    };
    EXPECT_EQ(onLink(1500, 40), 1514);
    EXPECT_EQ(onLink(40 + 1460 * 10, 40), 10 * 1514);
    EXPECT_EQ(onLink(40 + 1460 * 10 + 1, 40), 10 * 1514 + 55);
    EXPECT_EQ(onLink(65535, 65000), 65549); // larger headers than any link has
}

TEST(PacketPath, ClassesShareByWeight)
{
    PathUnderTest t(Slow + "scheduler drr\nclass two weight=2\nclass one default=on\n"
                           "classify two from=198.18.0.2\nlimit 600\n");
    for (int n = 0; n < 300; ++n) {
        t.arrive({1});
        t.arrive({2});
    }
    t.run(300 * Ms);
    const auto counts = t.path.counts();
    EXPECT_NEAR(static_cast<double>(counts[0].passed.packets) / static_cast<double>(counts[1].passed.packets), 2, 0.05);
    ExpectVerdictsToAddUp(t);
}

TEST(PacketPath, AHierarchyOfClasses)
{
    NEEDS_PLUGIN("faba");
    PathUnderTest t(Slow + "scheduler drr\naqm faba bucket=tree\nclass staff weight=3\nclass web parent=staff\n"
                           "class mail parent=staff weight=2\nclass guests default=on\n"
                           "classify web to-port=80\nclassify mail to-port=25\n");
    t.arrive({1, 1, 1000, 80});
    t.arrive({1, 1, 1000, 25});
    t.arrive({1, 1, 1000, 443});
    const auto &schedule = t.path.schedule();
    EXPECT_STREQ(schedule.classAt(1).parent->name, "staff");
    const auto counts = t.path.counts();
    EXPECT_EQ(counts[0].offered.packets, 0u);
    EXPECT_EQ(counts[1].offered.packets + counts[2].offered.packets, 2u);
    EXPECT_EQ(counts[3].offered.packets, 1u);
    EXPECT_EQ(AuditLaws(schedule.engine()), "");
}

TEST(PacketPath, TheLimitAndTheAqmDrop)
{
    for (const std::string aqm : {"", "droptail", "choke min=2 max=4", "faba"}) {
        if (!aqm.empty() && !IsBuilt(ParseVariant(aqm).name))
            continue;
        PathUnderTest t(Slow + "limit 10\n" + (aqm.empty() ? "" : "aqm " + aqm + "\n"));
        for (int n = 0; n < 200; ++n) {
            t.arrive({static_cast<uint8_t>(n % 5)});
            if (n % 20 == 0)
                t.run(t.now + 1 * Ms);
            ExpectVerdictsToAddUp(t);
            EXPECT_LE(t.total().queued.packets, 10u);
        }
        EXPECT_GT(t.total().dropped.packets, 100u) << aqm;
        t.run(t.now + Second);
        ExpectVerdictsToAddUp(t);
        EXPECT_EQ(t.total().queued.packets, 0u);
    }
}

TEST(PacketPath, CongestionIsMarkedWhereThereAreBitsForIt)
{
    NEEDS_PLUGIN("red");
    for (const bool bits : {true, false}) {
        PathUnderTest t(Slow + "aqm red min=1 max=2 ecn=on\nlimit 100\n" + (bits ? "mark shift=8\n" : ""));
        PacketOf capable;
        capable.ecn = Capable0;
        capable.mark = 0x100'0001;
        for (int n = 0; n < 3000; ++n) {
            t.arrive(capable);
            t.run(t.now + 900 * Us);
        }
        t.run(t.now + Second);
        const auto total = t.total();
        size_t marked = 0;
        for (const auto &v : t.verdicts.all) {
            if (v.pass && v.mark) {
                ++marked;
                EXPECT_EQ(*v.mark, 0x100'0001u | MarkCongestion << 8);
            }
        }
        EXPECT_EQ(marked, total.marked.packets);
        EXPECT_EQ(marked > 0, bits);
        EXPECT_GT(total.dropped.packets + total.marked.packets, 0u);
        ExpectVerdictsToAddUp(t);
    }
}

std::vector<Rule> RulesOf(const std::string &text)
{
    std::istringstream in(text);
    return ReadRules(in, "edge.rules");
}

TEST(PacketPath, WhatIsDroppedAsItsTurnComesHasAVerdictAndTheNextGoes)
{
    const auto judge = "aqm " + TestModule("judge") + " every=3 when=turn verdict=";
    PathUnderTest drops(Slow + judge + "drop\n");
    for (int n = 0; n < 9; ++n)
        drops.arrive({});
    drops.run(6 * Ms);
    EXPECT_EQ(drops.verdicts.passed(), (std::vector<uint32_t>{1, 2, 4, 5, 7, 8})) << "a drop takes no time on the link";
    ExpectVerdictsToAddUp(drops);
    EXPECT_EQ(drops.total().dropped.packets, 3u);
    EXPECT_EQ(drops.path.next(), std::nullopt) << "the last was dropped, and nothing waits";

    PathUnderTest marks(Slow + judge + "mark\nmark shift=8\n");
    PacketOf capable;
    capable.ecn = Capable0;
    for (int n = 0; n < 3; ++n)
        marks.arrive(capable);
    marks.run(5 * Ms);
    EXPECT_FALSE(marks.verdicts.all.at(1).mark);
    ASSERT_TRUE(marks.verdicts.all.at(2).mark);
    EXPECT_EQ(*marks.verdicts.all[2].mark, MarkCongestion << 8);
    EXPECT_EQ(marks.total().marked.packets, 1u);

    PathUnderTest flushed(Slow + judge + "drop\n");
    for (int n = 0; n < 6; ++n)
        flushed.arrive({});
    flushed.path.flush(flushed.now);
    EXPECT_EQ(flushed.verdicts.all.size(), 6u);
    ExpectVerdictsToAddUp(flushed);
}

TEST(PacketPath, RulesPoliceMarkAndClassify)
{
    NEEDS_PLUGIN("diffserv");
    // 3,000 bytes of UDP conform and are expedited; the rest is best effort.
    const auto rules = RulesOf("voice protocol=udp rate=1kbit depth=3000B mark=ef\n");
    std::string classes;
    for (const auto &c : PerHopClasses)
        classes += std::string("class ") + c.name + (c.name == std::string("be") ? " default=on\n" : "\n");
    PathUnderTest t(Slow + "scheduler diffserv strict=on\nmark shift=24\n" + classes, rules);
    PacketOf tcp;
    tcp.protocol = 6;
    tcp.dscp = 46; // set outside: not trusted
    t.arrive(tcp);
    t.arrive(tcp);
    for (int n = 0; n < 3; ++n)
        t.arrive({});
    t.run(Second);
    EXPECT_EQ(t.verdicts.passed(), (std::vector<uint32_t>{1, 3, 4, 2})); // strict priority: ef first
    const auto counts = t.path.counts();
    EXPECT_EQ(counts[0].offered.packets, 3u);
    EXPECT_EQ(counts[0].policed.packets, 1u); // the packet's length counts, not that of the copied part
    EXPECT_EQ(counts[5].passed.packets, 2u);
    for (const auto &v : t.verdicts.all) {
        if (!v.pass)
            continue;
        ASSERT_TRUE(v.mark);
        EXPECT_EQ(*v.mark, (v.id <= 2 ? MarkSet | 0 : MarkSet | 46u) << 24);
    }
    ExpectVerdictsToAddUp(t);
}

TEST(PacketPath, AcknowledgementsAndRequestsHaveClassesOfTheirOwn)
{
    PathUnderTest t(Slow + "class acks\nclass requests\nclass rest default=on\nclassify acks kind=ack\n"
                           "classify requests kind=request to-port=80 length=0-600\n");
    PacketOf p;
    p.protocol = 6;
    p.length = 40;
    t.arrive(p);       // an acknowledgement
    p.tcpFlags = 0x12; // SYN, ACK
    t.arrive(p);
    p.tcpFlags = 0x18;
    p.length = 540;
    t.arrive(p); // a request
    p.length = 1500;
    t.arrive(p); // an upload
    p.protocol = 17;
    p.length = 40;
    t.arrive(p);
    const auto counts = t.path.counts();
    EXPECT_EQ(counts[0].offered.packets, 1u);
    EXPECT_EQ(counts[1].offered.packets, 1u);
    EXPECT_EQ(counts[2].offered.packets, 3u);
}

TEST(PacketPath, WhatCannotBeReadIsBestEffort)
{
    PathUnderTest t(Slow + "class some\nclass rest default=on\nclassify some protocol=any\nlimit 1000\n");
    Random random(3);
    for (uint32_t captured = 0; captured <= 64; ++captured) {
        MadePacket p = Make({});
        p.captured = captured;
        for (auto &b : p.bytes)
            b = static_cast<uint8_t>(random.bits());
        t.arriveAs(p);
        p = Make({});
        p.captured = captured; // truncated at any point
        t.arriveAs(p);
    }
    EXPECT_GE(t.path.unreadable(), 20u);
    EXPECT_EQ(t.path.counts()[1].offered.packets, t.path.unreadable());
    t.run(Second);
    EXPECT_EQ(t.total().passed.packets, 130u);
    ExpectVerdictsToAddUp(t);
}

TEST(PacketPath, TheWaysOfTheKernelAreSeenThrough)
{
    // Behind NAT the packet's source is the gateway's address; that of the connection is the user's.
    PathUnderTest t(Slow + "flow host\ninside 198.18.0.0/24\n");
    auto p = Make({9});
    FlowKey origin = *ReadKey(p.bytes.data(), p.captured);
    origin.source.low = 0xc6120002;
    const Arrival a{77, 0, p.bytes.data(), p.captured, p.length, &origin};
    t.arrive({9}); // occupies the link
    t.path.arrive(&a, 1, 0);
    std::vector<std::string> names;
    t.path.schedule().engine().eachFlow(t.path.schedule().classAt(0),
                                        [&](const NamedFlow &f) { names.push_back(AddressText(f.name())); });
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, (std::vector<std::string>{"198.18.0.2", "198.18.0.9"}));
}

TEST(PacketPath, FlowsAreBounded)
{
    PathUnderTest t("link rate=none\nqueue number=0\n");
    constexpr uint32_t Many = Schedule::MostFlows + 5000;
    for (uint32_t n = 0; n < Many; ++n)
        t.arrive({static_cast<uint8_t>(n >> 16), 1, static_cast<uint16_t>(n)});
    EXPECT_EQ(t.path.schedule().engine().flows(), Schedule::MostFlows + 1); // plus the flow of all others
    EXPECT_EQ(t.verdicts.passed().size(), Many);
    t.path.tidy(t.now + 1000 * Second);
    EXPECT_EQ(t.path.schedule().engine().flows(), 0u);
}

TEST(PacketPath, AReloadLosesNothingAndKeepsTheOrderOfAFlow)
{
    PathUnderTest t(Slow + "scheduler drr\naqm codel\nclass a weight=3\nclass b default=on\nclassify a to-port=80\n");
    std::map<uint32_t, uint16_t> flowOf;
    for (int n = 0; n < 90; ++n) {
        const auto port = static_cast<uint16_t>(80 + n % 3);
        flowOf[t.arrive({1, 1, 1000, port})] = port;
        if (n == 30)
            t.path.replace(t.Compile(Slow + "scheduler fq\naqm pie\nflow src\nclass b default=on\n"), t.now);
        if (n == 60)
            t.path.replace(t.Compile("link rate=24Mbit\nqueue number=0\nscheduler fifo\nlimit 2\nclass c\n"), t.now);
        if (n <= 60) { // later arrivals exceed the smaller limit
            ExpectCountsToAddUp(t);
            EXPECT_EQ(t.verdicts.dropped(), 0u) << n;
        }
    }
    t.run(Second);
    ASSERT_EQ(t.path.next(), std::nullopt);
    EXPECT_EQ(t.verdicts.all.size(), 90u); // one verdict each
    std::map<uint16_t, uint32_t> last;
    for (const auto id : t.verdicts.passed()) {
        EXPECT_GT(id, last[flowOf[id]]);
        last[flowOf[id]] = id;
    }
}

TEST(PacketPath, AReloadWithTheSameSchedulerChangesNobodysTurn)
{
    for (const std::string sched : Built({"msf", "drr", "fq", "msfq", "diffserv"})) {
        const auto text = Slow + "scheduler " + sched +
                          "\nclass a weight=3\nclass b default=on\nclassify a to-port=80\n";
        std::vector<uint32_t> passed[2];
        for (const bool reloads : {false, true}) {
            PathUnderTest t(text);
            for (uint32_t n = 0; n < 400; ++n) {
                PacketOf of{static_cast<uint8_t>(1 + n % 5), 1, 1000, static_cast<uint16_t>(80 + n % 2)};
                of.length = 100 + n * 331 % 1400;
                t.arrive(of);
                t.run(t.now + 300 * Us);
                if (reloads && n % 7 == 3)
                    t.path.replace(t.Compile(text), t.now);
            }
            ExpectCountsToAddUp(t);
            t.run(10 * Second);
            passed[reloads] = t.verdicts.passed();
        }
        EXPECT_EQ(passed[0].size(), 400u);
        EXPECT_EQ(passed[0], passed[1]) << sched;
    }
}

TEST(PacketPath, AReloadThatTellsFlowsApartOtherwiseBeginsThemAnew)
{
    PathUnderTest t(Slow + "scheduler msf\nflow src\n");
    t.arrive({1});
    t.arrive({1});
    t.path.replace(t.Compile(Slow + "scheduler msf\nflow dst\n"), t.now);
    EXPECT_EQ(t.path.schedule().engine().flows(), 1u) << "the destination's; the source's has no part in it";
    t.run(Second);
    EXPECT_EQ(t.verdicts.passed(), UpTo(2));
}

TEST(PacketPath, ClassesOfTheSameNameGoOnCounting)
{
    PathUnderTest t(Slow + "class a\nclass b default=on\nclassify a to-port=80\n");
    for (int n = 0; n < 4; ++n)
        t.arrive({});
    t.run(1 * Ms);
    t.path.replace(t.Compile(Slow + "class z\nclass a default=on\n"), t.now);
    const auto counts = t.path.counts();
    EXPECT_EQ(counts[1].offered.packets, 4u);
    EXPECT_EQ(counts[1].passed.packets, 2u);
    EXPECT_EQ(counts[1].queued.packets, 2u);
}

TEST(PacketPath, AtTheEndAllGoesInOrder)
{
    PathUnderTest t(Slow + "scheduler drr\n");
    for (int n = 0; n < 20; ++n)
        t.arrive({});
    t.path.flush(t.now);
    EXPECT_EQ(t.verdicts.passed(), UpTo(20));
    EXPECT_EQ(t.path.next(), std::nullopt);
}

TEST(PacketPath, AnObserverSeesWhatPasses)
{
    PathUnderTest t(Slow + "limit 2\n");
    uint64_t bytes = 0;
    t.path.observe([&](const Held &h, int64_t) { bytes += h.traits.length; });
    for (int n = 0; n < 5; ++n)
        t.arrive({});
    t.run(Second);
    EXPECT_EQ(bytes, t.total().passed.bytes);
    EXPECT_EQ(bytes, 3u * 1500);
}

TEST(CommonRate, IsDividedByTheWeightsOfWhatWaits)
{
    CommonRate common;
    SharedRate a(common), b(common);
    const std::vector<double> weights = {3, 1};
    EXPECT_EQ(a.of(weights), 1); // nothing is queued anywhere
    a.tell(0, 1);
    EXPECT_EQ(a.of(weights), 1);
    b.tell(0, 2);
    b.tell(1, 1);
    EXPECT_DOUBLE_EQ(a.of(weights), 1.0 / 4); // a third of the class of weight 3
    EXPECT_DOUBLE_EQ(b.of(weights), 3.0 / 4);
    b.clear();
    EXPECT_EQ(a.of(weights), 1);
}

TEST(CommonRate, TwoPathsKeepTheRateTogether)
{
    PathUnderTest t(Slow + "scheduler drr\nlimit 10000\n", {}, 2);
    KeptVerdicts others;
    PacketPath second(t.Compile(Slow + "scheduler drr\nlimit 10000\n"), nullptr, &t.common, others, 0);
    auto p = Make({7});
    // One flow here, three there.
    for (uint32_t n = 1; n <= 3000; ++n) {
        t.arrive({1});
        p.bytes[15] = static_cast<uint8_t>(n % 3);
        const Arrival a{n, 0, p.bytes.data(), p.captured, p.length};
        second.arrive(&a, 1, 0);
    }
    for (msfrs_time now = 0; now <= Second; now += 100 * Us) {
        t.path.service(now);
        second.service(now);
    }
    const auto here = static_cast<double>(t.verdicts.passed().size()), there = static_cast<double>(others.all.size());
    EXPECT_NEAR(here + there, 1000, 10);
    EXPECT_NEAR(there / here, 3, 0.1);
}

} // namespace
} // namespace msfrs::test
