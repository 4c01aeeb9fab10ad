// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Refused configurations and their exact messages.
#include "support/requests.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace msfrs {
namespace {

using namespace test;

class ConfigTest : public RequestTest {
protected:
    template <class Change>
    std::string refused(const Change &change)
    {
        auto c = config;
        change(c);
        return refusal(c);
    }
};

TEST_F(ConfigTest, TellsTheValueAndWhatIsAllowed)
{
    const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
    EXPECT_EQ(refusal(config), "accepted");
    EXPECT_EQ(refused([](auto &c) { c.rate = 0; }), "link rate 0 is not allowed: expected a rate above 0 bit/s");
    EXPECT_EQ(refused([](auto &c) { c.rate = -1; }), "link rate -1 is not allowed: expected a rate above 0 bit/s");
    EXPECT_EQ(refused([=](auto &c) { c.rate = nan; }), "link rate nan is not allowed: expected a rate above 0 bit/s");
    EXPECT_EQ(refused([=](auto &c) { c.rate = inf; }), "link rate inf is not allowed: expected a rate above 0 bit/s");
    EXPECT_EQ(refused([](auto &c) { c.overhead = 1.5; }),
              "link overhead 1.5 is not allowed: expected a share from 0 to 1");
    EXPECT_EQ(refused([](auto &c) { c.packetOverhead = 257; }),
              "overhead of a packet 257 is not allowed: expected 0 to 256 bytes");
    EXPECT_EQ(refused([](auto &c) { c.rtt = 0; }), "round trip time 0 is not allowed: expected a time above 0 ns");
    for (double target : {0.0, 1.0, nan}) {
        EXPECT_EQ(refused([=](auto &c) { c.window.target = target; }).find("window target "), 0u);
    }
    EXPECT_EQ(refused([](auto &c) { c.window.target = 98; }),
              "window target 98 is not allowed: expected a share above 0 and below 1");
    EXPECT_EQ(refused([](auto &c) { c.window.interval = 0; }),
              "window interval 0 is not allowed: expected a time above 0 ns");
    EXPECT_EQ(refused([](auto &c) { c.window.growth = 1; }),
              "window growth 1 is not allowed: expected a factor above 1");
    EXPECT_EQ(refused([](auto &c) { c.window.reserve = -0.1; }),
              "window reserve -0.1 is not allowed: expected a share of 0 or more");
    EXPECT_EQ(refused([](auto &c) { c.quantum = -1; }), "quantum -1 is not allowed: expected 0 (none) or more bytes");
    EXPECT_EQ(refused([](auto &c) { c.maxWait = 0; }), "longest wait 0 is not allowed: expected a time above 0 ns");
    EXPECT_EQ(refused([](auto &c) { c.maxPerUser = 0; }),
              "queued requests per user 0 is not allowed: expected 1 or more");
    EXPECT_EQ(refused([](auto &c) { c.maxQueued = 0; }),
              "queued requests in all 0 is not allowed: expected 1 or more");
}

TEST_F(ConfigTest, Classes)
{
    EXPECT_EQ(refused([](auto &c) { c.classes.clear(); }),
              "there is no class: expected at least one, and one of them the default");
    EXPECT_EQ(refused([](auto &c) { c.defaultClass = 2; }),
              "default class number 2 is not allowed: expected the number of a class");
    EXPECT_EQ(refused([](auto &c) { c.classes[1].weight = 0; }),
              "class bronze weight 0 is not allowed: expected a number above 0");
    EXPECT_EQ(refused([](auto &c) { c.classes[0].weight = -2; }),
              "class gold weight -2 is not allowed: expected a number above 0");
    EXPECT_EQ(refused([](auto &c) { c.classes[1].name = "gold"; }), "class gold is declared twice");
    EXPECT_EQ(refused([](auto &c) { c.classes[1].name = ""; }), "class number 2 has no name");
}

TEST_F(ConfigTest, Plugins)
{
    EXPECT_EQ(refused([](auto &c) { c.arbiter.settings = {{"wake", "later"}}; }),
              "msf parameter wake=later is not allowed: expected one of virtual paper");
    EXPECT_EQ(refused([](auto &c) { c.admission.settings = {{"limit", "5"}}; }),
              "admission none takes no parameters, found limit=5");
    EXPECT_EQ(refused([](auto &c) { c.arbiter.name = "wfq"; }).find("no scheduler 'wfq': "), 0u);
    EXPECT_EQ(refused([](auto &c) { c.admission.name = "red-ish"; }).find("no AQM 'red-ish': "), 0u);
    EXPECT_EQ(refused([](auto &c) { c.admission.name = PluginDir() + "/msf.so"; }),
              "plugin " + PluginDir() + "/msf.so is a scheduler, expected an AQM");
    const auto cost = refused([](auto &c) { c.arbiter = {TestModule("checker-cost"), {}}; });
    EXPECT_EQ(cost.find("scheduler checker must know"), 0u) << cost;
}

} // namespace
} // namespace msfrs
