// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/functions_file.h"

#include "support/plugins.h"
#include "support/refused.h"

#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

using namespace middlebox;

const std::string Least = "link rate=1Mbit\nqueue number=0\n";
const std::string Classes = "class all\nclass a parent=all\nclass b parent=all default=on\n";

edge::Config Edge(const std::string &more)
{
    std::istringstream in(Least + more);
    return edge::ReadConfig(in, "edge.conf", PluginDir());
}

CpuConfig Read(const std::string &text)
{
    std::istringstream in(text);
    return ReadFunctions(in, "functions.conf", Edge(Classes));
}

TEST(FunctionsFile, SaysWhichFunctionAClassGoesThrough)
{
    const auto cpu = Read("function encrypt class=b alpha=0.5 beta=2 passes=3\ncpu share=25%\n"
                          "function encrypt class=a alpha=1 beta=0\n");
    EXPECT_EQ(cpu.share, 0.25);
    ASSERT_EQ(cpu.functions.size(), 2u);
    EXPECT_STREQ(cpu.functions[0].kind->name, "encrypt");
    EXPECT_EQ(cpu.functions[0].cls, 2u);
    EXPECT_EQ(cpu.functions[0].passes, 3u);
    EXPECT_EQ(cpu.functions[0].time.beta, 2);
    EXPECT_EQ(cpu.functions[1].cls, 1u);
    EXPECT_EQ(Read("function forward class=a alpha=1 beta=0\n").share, 0.5);
}

TEST(FunctionsFile, TheExampleIsTaken)
{
    const std::string directory = TreeFile("examples/middlebox/");
    const auto config = edge::ReadConfig(directory + "edge.conf", PluginDir());
    CheckConfig(config, "edge.conf");
    EXPECT_EQ(ReadFunctions(directory + "functions.conf", config).functions.size(), config.classes.size());
}

TEST(FunctionsFile, MistakesAreRefusedWithLineAndRange)
{
    const struct {
        std::string text, wanted;
    } cases[] = {
        {"", "functions.conf: a line is missing: function NAME class=CLASS"},
        {"\nfunction", "functions.conf:2: a value is missing; give function NAME class=CLASS"},
        {"pace fast", "functions.conf:1: \"pace\": expected function NAME"},
        {"function zip class=a alpha=1 beta=1", "function zip: allowed are forward, monitor, redundancy and encrypt"},
        {"function forward alpha=1 beta=1", "class"},
        {"function forward class=all alpha=1 beta=1", "class=all: allowed are the classes that have packets: a and b"},
        {"function forward class=c alpha=1 beta=1", "class=c: allowed are the classes that have packets: a and b"},
        {"function forward class=a alpha=1 beta=1\nfunction monitor class=a alpha=1 beta=1",
         "functions.conf:2: class=a: its packets pass forward already"},
        {"function forward class=a beta=1", "alpha"},
        {"function forward class=a alpha=1", "beta"},
        {"function forward class=a alpha=-1 beta=1", "alpha=-1: allowed are 0 to 1000"},
        {"function forward class=a alpha=1 beta=1000001", "beta=1000001: allowed are 0 to 1000000"},
        {"function forward class=a alpha=nan beta=1", "alpha=nan: allowed are 0 to 1000"},
        {"function forward class=a alpha=1us beta=1", "alpha=1us: allowed are 0 to 1000"},
        {"function forward class=a alpha=1 beta=1 passes=0", "passes=0"},
        {"function monitor class=a alpha=1 beta=1 flows=15", "flows=15"},
        {"function redundancy class=a alpha=1 beta=1 cache=1KB", "cache=1KB: allowed are 1MB to 1024MB"},
        {"cpu", "share"},
        {"cpu share=0%", "share=0%: allowed are 0.1% to 100%"},
        {"cpu share=101%", "share=101%: allowed are 0.1% to 100%"},
        {"cpu share=0.5", "share=0.5: allowed are 0.1% to 100%"},
        {"cpu share=1%\ncpu share=1%", "functions.conf:2: \"cpu\": expected function NAME"},
    };
    for (const auto &c : cases) {
        const auto said = RefusalOf([&] { Read(c.text + "\n"); });
        EXPECT_NE(said.find(c.wanted), std::string::npos) << c.text << ": " << said;
    }
}

TEST(FunctionsFile, WhatOnlyTheEdgeDoesIsRefused)
{
    EXPECT_EQ(RefusalOf([] { CheckConfig(Edge("limit 10000\n"), "edge.conf"); }), "accepted");
    const struct {
        std::string text, wanted;
    } cases[] = {
        {"limit 10001\n", "edge.conf: limit 10001: whole packets are held; allowed are 1 to 10000"},
        {"mark shift=0\n", "edge.conf: mark"},
        {"control /tmp/socket\n", "edge.conf: control"},
        {"inside 198.18.0.0/15\nexcess socket=/tmp/socket\n", "edge.conf: excess"},
        {"rules " + TreeFile("conf/edge/diffserv.rules") + "\n", "edge.conf: rules"},
    };
    for (const auto &c : cases) {
        const auto said = RefusalOf([&] { CheckConfig(Edge(c.text), "edge.conf"); });
        EXPECT_EQ(said.substr(0, c.wanted.size()), c.wanted);
    }
    std::istringstream in("link rate=1Mbit\nqueue number=0 threads=2\n");
    const auto threads = edge::ReadConfig(in, "edge.conf", PluginDir());
    EXPECT_EQ(RefusalOf([&] { CheckConfig(threads, "edge.conf"); }),
     "edge.conf: threads: msfrs-middlebox has one thread; remove threads=");
}

} // namespace
} // namespace msfrs::test
