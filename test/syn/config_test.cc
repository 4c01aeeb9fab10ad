// SPDX-License-Identifier: GPL-2.0-or-later
#include "syn/config.h"

#include "support/refused.h"

#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

syn::Config Read(const std::string &text)
{
    std::istringstream in(text);
    return syn::ReadConfig(in, "iptables.conf");
}

std::string Refused(const std::string &text)
{
    return RefusalOf([&] { Read(text); });
}

TEST(SynConfig, Defaults)
{
    const auto c = Read("inside = eth0\n#syn-queue = 7\n");
    EXPECT_EQ(c.queue, 100u);
    EXPECT_EQ(c.bits.value, 0x200u);
    EXPECT_EQ(c.bits.mask, 0x200u);
    EXPECT_EQ(c.user.value, "proxy");
    EXPECT_FALSE(c.transparent);
}

TEST(SynConfig, ReadsItsOptionsAndNoOther)
{
    const auto c = Read("mode=tproxy\n syn-queue =7 # ours\nsyn-mark = 0x10/48\nsquid-user = squid\nsource = 10.0.0.0/8\n");
    EXPECT_EQ(c.queue, 7u);
    EXPECT_EQ(c.bits.value, 0x10u);
    EXPECT_EQ(c.bits.mask, 0x30u);
    EXPECT_EQ(c.bits.in(0x121u), 0x111u);
    EXPECT_TRUE(c.transparent);
    EXPECT_EQ(c.user.value, "squid");
    EXPECT_EQ(Read("syn-queue = none\n").queue, std::nullopt);
}

TEST(SynConfig, RefusesWithFileLineAndValue)
{
    EXPECT_EQ(Refused("\nsyn-queue = 65536\n"),
              "iptables.conf:2: syn-queue '65536' must be a number from 0 to 65535, or none");
    for (const auto *const mark : {"", "1", "0/1", "0x2/0x1", "0x/1", "1/0x100000000", "-1/1", "0x1g/0x1"})
        EXPECT_EQ(Refused(std::string("syn-mark = ") + mark + "\n"),
                  std::string("iptables.conf:1: syn-mark '") + mark +
                      "' must be VALUE/MASK, 32 bits, VALUE not 0 and within MASK, for example 0x200/0x200");
    EXPECT_EQ(Refused("squid-user = a b\n"), "iptables.conf:1: squid-user 'a b' must be the name of a user");
    EXPECT_NE(Refused("syn-queue\n"), "");
}

} // namespace
} // namespace msfrs::test
