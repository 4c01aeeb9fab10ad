// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/config.h"

#include "support/plugins.h"
#include "support/refused.h"

#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

using namespace edge;

Config Read(const std::string &text)
{
    std::istringstream in(text);
    return ReadConfig(in, "edge.conf", PluginDir());
}

std::string Refused(const std::string &text)
{
    return RefusalOf([&] { Read(text); });
}

const std::string Least = "link rate=1Mbit\nqueue number=3\n";

TEST(EdgeConfig, Defaults)
{
    const auto c = Read(Least);
    EXPECT_EQ(c.link.rate, 1'000'000);
    EXPECT_EQ(c.link.mtu, 1500);
    EXPECT_EQ(c.queue.number, 3u);
    EXPECT_EQ(c.queue.threads, 1u);
    EXPECT_TRUE(c.queue.failOpen);
    EXPECT_STREQ(c.scheduler.plugin->ops().name, "fifo");
    EXPECT_FALSE(c.aqm.plugin);
    EXPECT_EQ(c.limit, 1000u);
    EXPECT_EQ(c.flow.by, FlowBy::Connection);
    ASSERT_EQ(c.classes.size(), 1u);
    EXPECT_EQ(c.defaultClass, 0u);
    EXPECT_FALSE(c.markShift);
    EXPECT_EQ(c.user.value, "nobody");
    EXPECT_FALSE(c.gso());
}

TEST(EdgeConfig, Everything)
{
    const auto c = Read("# an uplink\n"
                        "link rate=2.5Gbit overhead=38B mtu=1492B burst=3KB\n"
                        "queue number=10 threads=4 gso=auto fail-open=off conntrack=off buffer=1MB\n"
                        "scheduler drr quantum=3000\naqm codel target=20\nlimit 200\n"
                        "flow host ipv6-prefix=64\ninside 198.18.0.0/16 2001:db8::/32\n"
                        "class staff weight=3 # interior\n"
                        "class web weight=0.5 parent=staff aggregate=on\nclass rest default=on\n"
                        "classify web from=198.18.1.1-198.18.1.9 protocol=tcp to-port=443 length=0-600 dscp=ef "
                        "kind=request\n"
                        "mark shift=24\ncontrol /run/msfrs/edge.sock\nuser daemon\n"
                        "excess socket=/run/msfrs/excess.sock interval=250ms\n");
    EXPECT_EQ(c.excess.socket, "/run/msfrs/excess.sock");
    EXPECT_EQ(c.excess.interval, 250'000'000);
    EXPECT_EQ(c.link.rate, 2'500'000'000);
    EXPECT_EQ(c.link.burst, 3072);
    EXPECT_EQ(c.queue.threads, 4u);
    EXPECT_TRUE(c.gso());
    EXPECT_FALSE(c.queue.failOpen);
    EXPECT_EQ(c.aqm.text, "codel target=20");
    EXPECT_EQ(c.flow.inside.size(), 2u);
    ASSERT_EQ(c.classes.size(), 3u);
    EXPECT_TRUE(c.classes[0].interior);
    EXPECT_EQ(c.classes[1].parent, "staff");
    EXPECT_EQ(c.defaultClass, 2u);
    ASSERT_EQ(c.classify.size(), 1u);
    EXPECT_EQ(c.classify[0].cls, 1u);
    EXPECT_EQ(c.classify[0].dscp, 46);
    EXPECT_EQ(c.classify[0].length.last, 600u);
    EXPECT_EQ(c.classify[0].kind, ClassifyLine::Kind::Request);
    EXPECT_EQ(c.markShift, 24u);
}

struct Mistake {
    const char *text, *says;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, NameLineValueAndWhatIsAllowed) { EXPECT_EQ(Refused(Least + GetParam().text), GetParam().says); }

INSTANTIATE_TEST_SUITE_P(EdgeConfig, Mistakes, testing::Values(
    Mistake{"link rate=2Mbit\n", "edge.conf:3: \"link\": line 1 has it already"},
    Mistake{"limit\n", "edge.conf:3: a value is missing; give limit PACKETS"},
    Mistake{"limit 0\n", "edge.conf:3: limit 0: allowed are 1 to 60000 packets"},
    Mistake{"limit 5 6\n", "edge.conf:3: \"6\": unexpected; give limit PACKETS"},
    Mistake{"flow user\n", "edge.conf:3: flow user: allowed are connection, src, dst and host"},
    Mistake{"flow src ipv6-prefix=0\n", "edge.conf:3: ipv6-prefix=0: allowed are 1 to 128"},
    Mistake{"flow host\n",
            "edge.conf: flow host: the networks of the users are missing; add a line: inside NETWORK..."},
    Mistake{"inside 198.18.0.1/16\n", "edge.conf:3: inside=198.18.0.1/16: the bits after the first 16 must be 0"},
    Mistake{"scheduler\n", "edge.conf:3: a value is missing; give scheduler NAME [PARAMETER=VALUE]..."},
    Mistake{"scheduler drr quantum=0\n", "edge.conf:3: drr parameter quantum=0 is not allowed: expected a whole "
                                         "number from 1 to 1000000000 bytes"},
    Mistake{"scheduler drr fast\n", "edge.conf:3: \"fast\": expected PARAMETER=VALUE"},
    Mistake{"class a weight=0\n", "edge.conf:3: weight=0: allowed are 0.001 to 1000000"},
    Mistake{"class a\nclass a\n", "edge.conf:4: class a: declared above already; give each class a name of its own"},
    Mistake{"class a/b\n", "edge.conf:3: class \"a/b\": a name has letters, digits, '-', '_' and '.', at most 32"},
    Mistake{"class a\nclass b\n", "edge.conf: no class is the default, for packets that no line classifies; add "
                                  "default=on to one of a and b"},
    Mistake{"class a default=on\nclass b default=on\n", "edge.conf:4: default=on: class a is the default already"},
    Mistake{"class b parent=a\n", "edge.conf:3: parent=a: a parent is declared before the classes below it; declare "
                                  "it in a line above, class NAME"},
    Mistake{"class a default=on\nclass b parent=a\n", "edge.conf:3: class a has classes below it, so it cannot be the "
                                                      "default"},
    Mistake{"class a\nclass b parent=a default=on\nclassify a\n",
            "edge.conf:3: class a has classes below it, so it cannot have packets of its own: classify names a class "
            "below it"},
    Mistake{"classify a\n", "edge.conf:3: classify a: there is no such class; declare it in a line above, class NAME"},
    Mistake{"class a\nclassify a kind=big\n", "edge.conf:4: kind=big: allowed are any, ack and request"},
    Mistake{"class a\nclassify a length=9-1\n", "edge.conf:4: length=9-1: the range ends before it begins"},
    Mistake{"class a\nclassify a port=1\n", "edge.conf:4: field \"port\": unknown; the fields are from, to, protocol, "
                                            "from-port, to-port, length, dscp and kind"},
    Mistake{"mark shift=25\n", "edge.conf:3: shift=25: allowed are 0 to 24"},
    Mistake{"control edge.sock\n", "edge.conf:3: control edge.sock: must be a path that begins with '/', at most 107 "
                                   "characters"},
    Mistake{"inside 198.18.0.0/16\nexcess interval=1ms\n",
            "edge.conf:4: socket is missing: the path that msfrs_excess has in squid.conf"},
    Mistake{"excess socket=/s\n", "edge.conf:3: excess: the networks of the users are missing; add a line: "
                                 "inside NETWORK..."},
    Mistake{"excess socket=s\n", "edge.conf:3: socket=s: must be a path that begins with '/', at most 107 characters"},
    Mistake{"excess socket=/s interval=9ms\n", "edge.conf:3: interval=9ms: allowed are 10ms to 10s"},
    Mistake{"excess socket=/s interval=100\n",
            "edge.conf:3: interval=100: not a number with a unit (us, ms, s); allowed are 10ms to 10s, as in 100ms"},
    Mistake{"excess socket=/s interval=1mss\n",
            "edge.conf:3: interval=1mss: not a number with a unit (us, ms, s); allowed are 10ms to 10s, as in 100ms"},
    Mistake{"segment ledger\n",
            "edge.conf:3: segment ledger: must be a path that begins with '/', at most 200 characters"},
    Mistake{"segment /a/b\n", "edge.conf:3: segment /a/b: expected the name of shared memory, '/' and a name"},
    Mistake{"segment /l\n",
            "edge.conf:3: segment /l: the networks of the users are missing; add a line: inside NETWORK..."},
    Mistake{"inside 198.18.0.0/16\nsegment /l\nclass a\n",
            "edge.conf:4: segment /l: Squid publishes the classes; remove the lines of class"},
    Mistake{"inside 198.18.0.0/16\nsegment /l\nexcess socket=/s\n",
            "edge.conf:4: segment /l: the same bytes would be charged twice; remove the line of excess"},
    Mistake{"rules /nowhere\n", "edge.conf:3: /nowhere: cannot be opened: No such file or directory"},
    Mistake{"aqm droptail limit=0\n", "edge.conf:3: droptail parameter limit=0 is not allowed: expected a whole number "
                                      "from 1 to 10000000 packets"},
    Mistake{"aqm droptail limit=2000\n", "edge.conf:3: droptail: limit=2000 would never be reached: the host queues 1000 packets "
                                     "at most; allowed are 1 to 1000"},
    Mistake{"limit 100\naqm codel target=60 interval=50\n", "edge.conf:4: codel: target=60 must be less than interval=50"},
    Mistake{"class a\nclass b default=on\nclassify a protocol=udp\nclassify b\nclassify a to-port=80\n",
            "edge.conf:7: classify a: never matches first: edge.conf:6 assigns all of its packets to class b"},
    Mistake{"class a\nclass b default=on\nclassify a protocol=tcp\nclassify b protocol=tcp kind=ack\n",
            "edge.conf:6: classify b: never matches first: edge.conf:5 assigns all of its packets to class a"}));

TEST(EdgeConfig, ALineBehindOneThatTakesAPartOfItsPacketsIsAccepted)
{
    EXPECT_EQ(Refused(Least + "class a\nclass b default=on\nclassify a protocol=tcp kind=ack\n"
                      "classify b protocol=tcp\nclassify a dscp=ef\nclassify b length=0-100\nclassify b to-port=1\n"),
              "accepted");
}

TEST(EdgeConfig, AnUnknownKeywordIsAnsweredWithThoseThatThereAre)
{
    EXPECT_EQ(Refused(Least + "limt 5\n").find("edge.conf:3: \"limt\": unknown; a line begins with link, queue, "), 0u);
}

TEST(EdgeConfig, WhatMustBeThere)
{
    EXPECT_EQ(Refused("queue number=1\n"),
              "edge.conf: a line is missing: link rate=RATE|none|auto [min=RATE max=RATE] [overhead=SIZE] [mtu=SIZE] "
              "[burst=SIZE]");
    EXPECT_EQ(Refused("link rate=none\n").substr(0, 46), "edge.conf: a line is missing: queue number=N [");
    EXPECT_EQ(Refused("link\n"), "edge.conf:1: rate is missing: give a rate, rate=none or rate=auto");
    EXPECT_EQ(Refused("link rate=1bit\n"), "edge.conf:1: rate=1bit: allowed are 1kbit to 1000Gbit, none and auto");
    EXPECT_EQ(Refused("queue number=65535 threads=2\n"),
              "edge.conf:1: number=65535: with 2 threads the last queue would be beyond 65535");
    EXPECT_EQ(Refused("queue number=1 gso=yes\n"), "edge.conf:1: gso=yes: allowed are auto, on and off");
    EXPECT_EQ(Refused("queue threads=2\n"),
              "edge.conf:1: number is missing: the number in the NFQUEUE rule");
}

TEST(EdgeConfig, APartyOfALedgerHasWhatSquidTells)
{
    const std::string rest = "inside 198.18.0.0/16\nsegment /l\n";
    auto party = Read("link rate=none\nqueue number=3\n" + rest);
    EXPECT_FALSE(party.gso()) << "the rate is not known";
    EXPECT_TRUE(Read("link rate=none\nqueue number=3 gso=on\n" + rest).gso());
    EXPECT_EQ(Refused("link rate=none\nqueue number=3 threads=2\n" + rest),
              "edge.conf:4: segment /l: a user has one account; set threads=1");
    ASSERT_EQ(party.classes.size(), 1u);
    party = party.withClasses({2, {{"gold", 4}, {"bronze", 0.5}}, 1});
    ASSERT_EQ(party.classes.size(), 2u);
    EXPECT_EQ(party.classes[1].name, "bronze");
    EXPECT_EQ(party.classes[1].weight, 0.5);
    EXPECT_EQ(party.defaultClass, 1u);
    EXPECT_EQ(NeedsRestart(Read(Least + rest), Read(Least)),
              "without segment: a reload cannot change this; restart msfrs-edge");
}

TEST(EdgeConfig, ARateThatIsFound)
{
    const std::string link = "link rate=auto min=2Mbit max=80Mbit\n", queue = "queue number=3\n",
        inside = "inside 198.18.0.0/16\n";
    const auto c = Read(link + queue + inside);
    EXPECT_TRUE(c.link.found());
    EXPECT_EQ(c.link.bounds.min, 2e6);
    EXPECT_EQ(c.link.bounds.max, 80e6);
    EXPECT_FALSE(c.gso());
    EXPECT_FALSE(Read(Least).link.found());
    EXPECT_EQ(NeedsRestart(Read(Least), c), "");
    const std::string why = ": rate=auto estimates the rate between min= and max=, as in min=2Mbit max=80Mbit";
    EXPECT_EQ(Refused("link rate=auto max=2Mbit\n"), "edge.conf:1: min is missing" + why);
    EXPECT_EQ(Refused("link rate=auto min=2Mbit\n"), "edge.conf:1: max is missing" + why);
    EXPECT_EQ(Refused("link rate=auto min=3Mbit max=2Mbit\n"), "edge.conf:1: min=3Mbit: is above max=2Mbit");
    EXPECT_EQ(Refused("link rate=auto min=none max=2Mbit\n"), "edge.conf:1: min=none: not a number with a "
              "unit (bit, kbit, Mbit, Gbit); allowed are 1kbit to 1000Gbit, as in 2Mbit");
    EXPECT_EQ(Refused("link rate=auto min=1Mbit max=2000Gbit\n"),
              "edge.conf:1: max=2000Gbit: allowed are 1kbit to 1000Gbit");
    EXPECT_EQ(Refused("link rate=2Mbit max=2Mbit\n"),
              "edge.conf:1: max=2Mbit: is for rate=auto alone; leave it out with rate=2Mbit");
    EXPECT_EQ(Refused(link + queue), "edge.conf:1: rate=auto: the networks of the users are missing; add a line: "
                                     "inside NETWORK...");
    EXPECT_EQ(Refused(link + "queue number=3 threads=2\n" + inside),
              "edge.conf:1: rate=auto: requires one thread that sees both directions of a connection; set "
              "threads=1");
    EXPECT_EQ(Refused(link + queue + inside + "excess socket=/s\n"),
              "edge.conf:1: rate=auto: packets that Squid schedules by another rate must not be paced; remove the "
              "line of excess, or set msfrs_link rate=auto in squid.conf");
    EXPECT_EQ(Refused(link + queue + inside + "segment /l\n"),
              "edge.conf:4: segment /l: Squid publishes the rate; set link rate=RATE or rate=none for the time "
              "without Squid");
    NEEDS_PLUGIN("drfq");
    EXPECT_EQ(Refused(link + queue + inside + "scheduler drfq\n"),
              "edge.conf:4: scheduler drfq needs the link's rate, which rate=auto changes: give scheduler drfq "
              "rate=BITS");
    EXPECT_NO_THROW(Read(link + queue + inside + "scheduler drfq rate=9000000\n"));
}

TEST(EdgeConfig, WhatAReloadCannotChange)
{
    const auto now = Read(Least);
    EXPECT_EQ(NeedsRestart(now, Read(Least + "limit 5\nscheduler drr\naqm pie\nclass z\n")), "");
    EXPECT_NE(NeedsRestart(now, Read("link rate=1Mbit\nqueue number=4\n")), "");
    EXPECT_NE(NeedsRestart(now, Read("link rate=1Gbit\nqueue number=3\n")), ""); // segments are not split
    const std::string told = Least + "inside 198.18.0.0/16\nexcess socket=/s\n";
    EXPECT_EQ(NeedsRestart(now, Read(told)),
              "edge.conf:4: another socket or interval: a reload cannot change this; restart msfrs-edge");
    EXPECT_EQ(NeedsRestart(Read(told), now),
              "without excess: a reload cannot change this; restart msfrs-edge");
    EXPECT_EQ(NeedsRestart(Read(told), Read(told + "inside 198.19.0.0/16\n")), "");
    EXPECT_EQ(NeedsRestart(now, Read(Least + "user daemon\n")),
              "user daemon: a reload cannot change this; restart msfrs-edge");
}

TEST(EdgeConfig, AnotherKindOfPluginIsRefused)
{
    EXPECT_NE(Refused(Least + "scheduler codel\n").find("codel.so is an AQM, expected a scheduler"), std::string::npos);
    EXPECT_EQ(Refused(Least + "aqm nosuch\n").find("edge.conf:3: no AQM 'nosuch'"), 0u);
}

/// Schedulers that convert bytes to time need the link's rate: that of the link or, if it has none, a parameter.
TEST(EdgeConfig, SchedulersKnowTheLinksRate)
{
    NEEDS_PLUGIN("drfq");
    const auto read = [](const std::string &text) { return Read("queue number=0\n" + text); };
    EXPECT_EQ(read("link rate=7Mbit\nscheduler drfq\n").scheduler.params[1].i, 7'000'000);
    EXPECT_EQ(read("link rate=7Mbit\nscheduler drfq rate=9000000\n").scheduler.params[1].i, 9'000'000);
    EXPECT_EQ(read("link rate=none\nscheduler drfq rate=9000000\n").scheduler.params[1].i, 9'000'000);
    EXPECT_THROW(read("link rate=none\nscheduler drfq\n"), RuleError);
    EXPECT_NO_THROW(read("link rate=none\nscheduler drr\n"));
}

} // namespace
} // namespace msfrs::test
