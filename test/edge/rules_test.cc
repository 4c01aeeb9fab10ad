// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/rules.h"

#include "support/flow_rules.h"
#include "support/plugins.h"
#include "support/refused.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

using namespace edge;

std::vector<Rule> Read(const std::string &text)
{
    std::istringstream in(text);
    return ReadRules(in, "edge.rules");
}

std::string Refused(const std::string &text)
{
    return RefusalOf([&] { Read(text); });
}

TEST(Rules, AllFields)
{
    const auto rules = Read("# a comment\n"
                            "\n"
                            "voice from=198.18.1.0/24 to=198.19.0.1-198.19.0.9 protocol=udp from-port=5060 "
                            "to-port=16384-32767 rate=1.5Mbit depth=2KB mark=ef # behind it\r\n"
                            "\tsix.to_any\tfrom=2001:db8::/33 protocol=50 mark=af43\n"
                            "rest mark=be");
    ASSERT_EQ(rules.size(), 3u);
    const auto &voice = rules[0];
    EXPECT_EQ(voice.name, "voice");
    EXPECT_EQ(voice.match.family, Family::V4);
    EXPECT_EQ(voice.match.source.first, (Address{0, 0xc6120100}));
    EXPECT_EQ(voice.match.source.last, (Address{0, 0xc61201ff}));
    EXPECT_EQ(voice.match.destination.first, (Address{0, 0xc6130001}));
    EXPECT_EQ(voice.match.destination.last, (Address{0, 0xc6130009}));
    EXPECT_EQ(voice.match.protocol.first, 17u);
    EXPECT_EQ(voice.match.protocol.last, 17u);
    EXPECT_EQ(voice.match.sourcePort.first, 5060u);
    EXPECT_EQ(voice.match.sourcePort.last, 5060u);
    EXPECT_EQ(voice.match.destinationPort.first, 16384u);
    EXPECT_EQ(voice.match.destinationPort.last, 32767u);
    EXPECT_EQ(voice.police->rate, 1'500'000);
    EXPECT_EQ(voice.police->depth, 2048);
    EXPECT_EQ(voice.mark.value, 46);
    EXPECT_EQ(voice.mark.cls, PerHop::Ef);

    const auto &six = rules[1];
    EXPECT_EQ(six.name, "six.to_any");
    EXPECT_EQ(six.match.family, Family::V6);
    EXPECT_EQ(six.match.source.first, (Address{0x20010db800000000, 0}));
    EXPECT_EQ(six.match.source.last, (Address{0x20010db87fffffff, UINT64_MAX}));
    EXPECT_EQ(six.match.destination.last, LastAddress);
    EXPECT_EQ(six.match.protocol.first, 50u);
    EXPECT_EQ(six.match.destinationPort.last, NoPort);
    EXPECT_FALSE(six.police);
    EXPECT_EQ(six.mark.value, 38);
    EXPECT_EQ(six.mark.cls, PerHop::Af4);

    EXPECT_FALSE(rules[2].match.family);
    EXPECT_EQ(rules[2].mark.cls, PerHop::Be);
    EXPECT_NO_THROW(Classifier({rules[0].match, rules[1].match, rules[2].match}));
}

TEST(Rules, PrefixesOfEveryLength)
{
    for (unsigned length = 0; length <= 32; ++length) {
        const auto range = Read("r from=0.0.0.0/" + std::to_string(length) + " mark=be")[0].match.source;
        EXPECT_EQ(range.last, (Address{0, length == 32 ? 0 : UINT64_MAX >> (32 + length)})) << length;
    }
    for (unsigned length = 0; length <= 128; ++length) {
        const auto range = Read("r from=::/" + std::to_string(length) + " mark=be")[0].match.source;
        const Address last{length < 64 ? UINT64_MAX >> length : 0,
                           length <= 64 ? UINT64_MAX : length == 128 ? 0 : UINT64_MAX >> (length - 64)};
        EXPECT_EQ(range.last, last) << length;
    }
}

TEST(Rules, NothingIsAFileOfNoRules)
{
    EXPECT_TRUE(Read("").empty());
    EXPECT_TRUE(Read("\n # only this\n\n").empty());
    const auto any = Read("a from=any to=any protocol=any from-port=any to-port=any mark=be");
    EXPECT_EQ(any[0].match.sourcePort.last, NoPort);
}

TEST(Rules, EveryCodePoint)
{
    for (const auto &c : CodePoints)
        EXPECT_EQ(Read(std::string("r mark=") + c.name)[0].mark.value, c.value) << c.name;
    EXPECT_EQ(std::string(BestEffort.name), "be");
    for (size_t n = 0; n + 1 < std::size(PerHopClasses); ++n)
        EXPECT_EQ(PerHopClasses[n].weight, 2 * PerHopClasses[n + 1].weight);
}

TEST(Rules, MessagesSayWhereWhatAndWhatIsAllowed)
{
    const std::string fields = "the fields are from, to, protocol, from-port, to-port, rate, depth and mark";
    const std::string points =
        "allowed are ef, af11, af12, af13, af21, af22, af23, af31, af32, af33, af41, af42, af43, be";
    const std::string addresses =
        "not an address; allowed are any, ADDRESS, ADDRESS/LENGTH and FIRST-LAST of IPv4 or IPv6";
    const std::pair<std::string, std::string> cases[] = {
        {"a/b mark=be", "name \"a/b\": a rule begins with its name: letters, digits, '-', '_' and '.', at most 32"},
        {"from=any mark=be",
         "name \"from=any\": a rule begins with its name: letters, digits, '-', '_' and '.', at most 32"},
        {"r colour=red mark=be", "field \"colour\": unknown; " + fields},
        {"r mark", "\"mark\": expected FIELD=VALUE; " + fields},
        {"r mark=", "\"mark=\": expected FIELD=VALUE; " + fields},
        {"r from=any from=any mark=be", "field \"from\": given twice"},
        {"r", "mark is missing; " + points},
        {"r mark=af5", "mark=af5: not a code point; " + points},
        {"r from=198.18.1.300 mark=be", "from=198.18.1.300: " + addresses},
        {"r from=198.18.1 mark=be", "from=198.18.1: " + addresses},
        {"r to=fe80::1%eth0 mark=be", "to=fe80::1%eth0: " + addresses},
        {"r to=198.18.0.1- mark=be", "to=198.18.0.1-: " + addresses},
        {"r to=198.18.0.0/33 mark=be", "to=198.18.0.0/33: the length of a prefix is 0 to 32"},
        {"r to=2001:db8::/129 mark=be", "to=2001:db8::/129: the length of a prefix is 0 to 128"},
        {"r to=198.18.0.0/ mark=be", "to=198.18.0.0/: the length of a prefix is 0 to 32"},
        {"r to=198.18.0.0/-1 mark=be", "to=198.18.0.0/-1: " + addresses},
        {"r from=198.18.1.7/24 mark=be", "from=198.18.1.7/24: the bits after the first 24 must be 0"},
        {"r from=2001:db8::1/64 mark=be", "from=2001:db8::1/64: the bits after the first 64 must be 0"},
        {"r from=198.18.0.9-198.18.0.3 mark=be", "from=198.18.0.9-198.18.0.3: the range ends before it begins"},
        {"r from=198.18.0.9-::1 mark=be", "from=198.18.0.9-::1: the ends of a range are both IPv4 or both IPv6"},
        {"r from=198.18.0.9 to=::1 mark=be", "to=::1: IPv6, and from=198.18.0.9 is not: no packet is both"},
        {"r protocol=quic mark=be",
         "protocol=quic: not a protocol; allowed are any, 0 to 255, icmp, igmp, tcp, udp, dccp, gre, esp, ah, icmpv6, "
         "ospf, sctp, udplite"},
        {"r protocol=256 mark=be",
         "protocol=256: not a protocol; allowed are any, 0 to 255, icmp, igmp, tcp, udp, dccp, gre, esp, ah, icmpv6, "
         "ospf, sctp, udplite"},
        {"r to-port=65536 mark=be", "to-port=65536: not a port; allowed are any, 0 to 65535 and FIRST-LAST"},
        {"r to-port=http mark=be", "to-port=http: not a port; allowed are any, 0 to 65535 and FIRST-LAST"},
        {"r to-port=1-2-3 mark=be", "to-port=1-2-3: not a port; allowed are any, 0 to 65535 and FIRST-LAST"},
        {"r from-port=9-3 mark=be", "from-port=9-3: the range ends before it begins"},
        {"r protocol=icmp to-port=1 mark=be",
         "to-port=1: protocol=icmp has no ports; these have: tcp, udp, dccp, sctp, udplite"},
        {"r rate=1Mbit mark=be", "depth is missing: a policer has both rate and depth"},
        {"r depth=2KB mark=be", "rate is missing: a policer has both rate and depth"},
        {"r rate=1000 depth=2KB mark=be",
         "rate=1000: not a number with a unit (bit, kbit, Mbit, Gbit); allowed are 1bit to 1000Gbit, as in 2Mbit"},
        {"r rate=1MB depth=2KB mark=be",
         "rate=1MB: not a number with a unit (bit, kbit, Mbit, Gbit); allowed are 1bit to 1000Gbit, as in 2Mbit"},
        {"r rate=0.4bit depth=2KB mark=be", "rate=0.4bit: allowed are 1bit to 1000Gbit"},
        {"r rate=-1Mbit depth=2KB mark=be", "rate=-1Mbit: allowed are 1bit to 1000Gbit"},
        {"r rate=nanbit depth=2KB mark=be", "rate=nanbit: allowed are 1bit to 1000Gbit"},
        {"r rate=1001Gbit depth=2KB mark=be", "rate=1001Gbit: allowed are 1bit to 1000Gbit"},
        {"r rate=1Mbit depth=63B mark=be", "depth=63B: allowed are 64B to 1000000000B"},
        {"r rate=1Mbit depth=2kB mark=be",
         "depth=2kB: not a number with a unit (B, KB, MB); allowed are 64B to 1000000000B, as in 15KB"},
        {"r mark=be\nr mark=ef", "name \"r\": line 3 has a rule of that name"},
    };
    for (const auto &[line, message] : cases) {
        const auto number = 3 + std::count(line.begin(), line.end(), '\n');
        EXPECT_EQ(Refused("# first\nfirst to-port=9 mark=be\n" + line), "edge.rules:" + std::to_string(number) + ": " + message);
    }
}

TEST(Rules, WhatCannotBeShownIsNot)
{
    EXPECT_EQ(Refused(std::string("r from=1.2.3.4\0x mark=be", 24)),
              "edge.rules:1: from=1.2.3.4?x: not an address; allowed are any, ADDRESS, ADDRESS/LENGTH and FIRST-LAST "
              "of IPv4 or IPv6");
    EXPECT_EQ(Refused("r \x1b[2J\xff"),
              "edge.rules:1: \"?[2J?\": expected FIELD=VALUE; the fields are from, to, protocol, from-port, to-port, "
              "rate, depth and mark");
    EXPECT_EQ(Refused("r mark=" + std::string(100, 'x')),
              "edge.rules:1: mark=" + std::string(60, 'x') + "...: not a code point; allowed are ef, af11, af12, af13, "
              "af21, af22, af23, af31, af32, af33, af41, af42, af43, be");
}

TEST(Rules, AreBounded)
{
    EXPECT_EQ(Refused("#" + std::string(MostLineLength - 1, 'x') + "\nr mark=be"), "accepted");
    EXPECT_EQ(Refused("\n#" + std::string(MostLineLength, 'x')), "edge.rules:2: longer than 1024 characters");
    std::string many;
    for (size_t n = 0; n < MostRules; ++n)
        many += "r" + std::to_string(n) + " to-port=1 mark=be\n";
    EXPECT_EQ(Refused(many + "# end\n"), "accepted");
    EXPECT_EQ(Refused(many + "one-more mark=be\n"), "edge.rules:65537: more than 65536 rules");
}

TEST(Rules, WhatIsBehindARuleThatMatchesEverythingIsRefused)
{
    const std::string never = "edge.rules:3: rule b never matches first: the rule in line 1 matches all of its "
                              "packets";
    EXPECT_EQ(Refused("a mark=be\n\nb to-port=53 mark=ef\n"), never);
    EXPECT_EQ(Refused("a from=0.0.0.0/0 rate=1Mbit depth=9KB mark=be\n\nb to=198.18.0.0/15 mark=ef\n"), never);
    EXPECT_EQ(Refused("a to=::/0 mark=be\n\nb from=2001:db8::/32 protocol=tcp mark=ef\n"), never);
    EXPECT_EQ(Refused("a from=0.0.0.0/0 mark=be\nb from=::/0 mark=ef\nc from=::1 mark=ef\n"),
              "edge.rules:3: rule c never matches first: the rule in line 2 matches all of its packets");
    EXPECT_EQ(Refused("a from=0.0.0.0/0 mark=be\nb mark=ef\n"), "accepted"); // IPv6 remains
    EXPECT_EQ(Refused("a protocol=udp mark=be\nb to-port=53 mark=ef\nc mark=be\n"), "accepted");
}

TEST(Rules, FilesThatCannotBeRead)
{
    EXPECT_EQ(RefusalOf([] { ReadRules(TreeFile("test/edge/none.rules")); }),
              TreeFile("test/edge/none.rules") + ": cannot be opened: No such file or directory");
    EXPECT_EQ(RefusalOf([] { ReadRules(TreeFile("test")); }), TreeFile("test") + ": cannot be read");
}

TEST(Rules, TheExampleIsWhatItsCommentsSay)
{
    const auto rules = ReadRules(TreeFile("conf/edge/diffserv.rules"));
    std::vector<Match> matches;
    for (const auto &r : rules)
        matches.push_back(r.match);
    const Classifier c(matches);
    const auto of = [&](const FlowKey &k) { return Find(c, k) == NoMatch ? "none" : rules[Find(c, k)].name; };
    EXPECT_EQ(of({{0, 0xc6120a05}, {0, 1}, 40000, 16384, Family::V4, 17}), "voice");
    EXPECT_EQ(of({{0, 0xc6120a05}, {0, 1}, 40000, 53, Family::V4, 17}), "dns");
    EXPECT_EQ(of({{0x20010db800200000, 5}, {0, 1}, 40000, 443, Family::V6, 6}), "staff-web-v6");
    EXPECT_EQ(of({{0, 0xc6121464}, {0, 1}, 40000, 443, Family::V4, 6}), "none");
}

} // namespace
} // namespace msfrs::test
