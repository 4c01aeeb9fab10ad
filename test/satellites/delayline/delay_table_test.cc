// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/delayline/delay_table.h"

#include <arpa/inet.h>
#include <cstring>
#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::delayline {
namespace {

/// Only the fields that ParseEndpoints reads: a version and two addresses.
std::vector<uint8_t> Header(const char *from, const char *to)
{
    const bool v6 = std::strchr(from, ':');
    std::vector<uint8_t> packet(v6 ? 40 : 20);
    packet[0] = v6 ? 0x60 : 0x45;
    EXPECT_EQ(inet_pton(v6 ? AF_INET6 : AF_INET, from, &packet[v6 ? 8 : 12]), 1);
    EXPECT_EQ(inet_pton(v6 ? AF_INET6 : AF_INET, to, &packet[v6 ? 24 : 16]), 1);
    return packet;
}

/// The delay in ms that the table gives a packet; -1: none.
double DelayOf(const DelayTable &table, const char *from, const char *to)
{
    const auto packet = Header(from, to);
    const auto ends = ParseEndpoints(packet.data(), packet.size());
    if (!ends)
        return -2;
    const auto entry = table.find(*ends);
    return entry ? static_cast<double>(table.delay(*entry)) * 1e-6 : -1;
}

std::string Refusal(const std::string &line)
{
    DelayTable table;
    try {
        table.add(line, "t:1");
    } catch (const RuleError &error) {
        return error.what();
    }
    return "accepted";
}

TEST(DelayTable, LongestPrefixWinsWhateverTheOrder)
{
    DelayTable table;
    table.add("198.19.0.0/16 100ms", "t");
    table.add("198.19.1.7 3ms", "t");
    table.add("198.19.1.0/24 20ms", "t");
    table.add("0.0.0.0/0 1s", "t");
    EXPECT_EQ(DelayOf(table, "198.19.1.7", "198.18.0.1"), 3);
    EXPECT_EQ(DelayOf(table, "198.18.0.1", "198.19.1.8"), 20);
    EXPECT_EQ(DelayOf(table, "198.19.2.8", "198.18.0.1"), 100);
    EXPECT_EQ(DelayOf(table, "198.18.0.2", "198.18.0.1"), 1000);
}

TEST(DelayTable, PrefixesThatEndInsideAByte)
{
    DelayTable table;
    table.add("198.18.16.0/20 7ms", "t");
    EXPECT_EQ(DelayOf(table, "198.18.31.255", "198.19.0.1"), 7);
    EXPECT_EQ(DelayOf(table, "198.18.32.0", "198.19.0.1"), -1);
    EXPECT_EQ(DelayOf(table, "198.18.15.255", "198.19.0.1"), -1);
}

TEST(DelayTable, DirectionsCanDiffer)
{
    DelayTable table;
    table.add("from 198.19.1.0/24 5ms", "t");
    table.add("to 198.19.1.0/24 250us", "t");
    EXPECT_EQ(DelayOf(table, "198.19.1.1", "198.18.0.1"), 5);
    EXPECT_EQ(DelayOf(table, "198.18.0.1", "198.19.1.1"), 0.25);
}

TEST(DelayTable, FamiliesDoNotMix)
{
    DelayTable table;
    table.add("::/0 9ms", "t");
    EXPECT_EQ(DelayOf(table, "198.19.1.1", "198.18.0.1"), -1);
    EXPECT_EQ(DelayOf(table, "2001:2::1", "2001:2:0:8001::1"), 9);
    table.add("2001:2:0:8001::/64 4ms", "t");
    EXPECT_EQ(DelayOf(table, "2001:2::1", "2001:2:0:8001::1"), 4);
    EXPECT_EQ(DelayOf(table, "2001:2::1", "2001:2:0:8002::1"), 9);
}

TEST(DelayTable, FileWithCommentsAndItsLineInTheMessage)
{
    DelayTable table;
    std::istringstream good("# domestic\n198.19.1.0/24 6ms # half of the RTT\n\n2001:2::/32 8ms\n");
    table.read(good, "delays.txt");
    EXPECT_EQ(table.size(), 2u);
    std::istringstream bad("198.19.1.0/24 6ms\n198.19.2.0/24 6\n");
    try {
        table.read(bad, "delays.txt");
        FAIL() << "accepted";
    } catch (const RuleError &error) {
        EXPECT_STREQ(error.what(),
                     "delays.txt:2: delay=6: not a number with a unit (us, ms, s); allowed are 0ms to 10s, as in "
                     "100ms");
    }
}

TEST(DelayTable, RefusalsNameTheValueAndWhatIsAllowed)
{
    EXPECT_EQ(Refusal("198.19.1.0/24"),
              "t:1: \"198.19.1.0/24\": expected [from|to] PREFIX DELAY (for example 198.19.1.0/24 6ms)");
    EXPECT_EQ(Refusal("198.19.1/24 6ms"),
              "t:1: prefix=198.19.1/24: not an address; allowed are ADDRESS and ADDRESS/LENGTH of IPv4 or IPv6");
    EXPECT_EQ(Refusal("198.19.1.0/33 6ms"), "t:1: prefix=198.19.1.0/33: the length of a prefix is 0 to 32");
    EXPECT_EQ(Refusal("2001:2::/129 6ms"), "t:1: prefix=2001:2::/129: the length of a prefix is 0 to 128");
    EXPECT_EQ(Refusal("198.19.1.0/8 6ms"), "t:1: prefix=198.19.1.0/8: the bits after the first 8 must be 0");
    for (const char *delay : {"-1ms", "11s", "nanms", "infs"})
        EXPECT_EQ(Refusal(std::string("::/0 ") + delay),
                  std::string("t:1: delay=") + delay + ": allowed are 0ms to 10s");
    EXPECT_EQ(Refusal("::/0 10s"), "accepted");
}

TEST(ParseEndpoints, RefusesWhatIsNotAWholeHeader)
{
    auto packet = Header("198.19.1.1", "198.18.0.1");
    EXPECT_TRUE(ParseEndpoints(packet.data(), 20));
    EXPECT_FALSE(ParseEndpoints(packet.data(), 19));
    EXPECT_FALSE(ParseEndpoints(packet.data(), 0));
    packet[0] = 0x55;
    EXPECT_FALSE(ParseEndpoints(packet.data(), 20));
    packet = Header("2001:2::1", "2001:2::2");
    EXPECT_TRUE(ParseEndpoints(packet.data(), 40));
    EXPECT_FALSE(ParseEndpoints(packet.data(), 39));
}

} // namespace
} // namespace msfrs::delayline
