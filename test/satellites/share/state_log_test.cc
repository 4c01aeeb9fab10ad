// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/state_log.h"

#include <gtest/gtest.h>
#include <vector>

namespace msfrs::test {
namespace {

using share::StateLog;

TEST(StateLog, SaysAStateOnce)
{
    std::vector<std::string> said;
    StateLog log([&](const std::string &line) { said.push_back(line); });
    log.say("store", "answers", 1);
    log.say("store", "answers", 2);
    log.say("gateway a", "is present", 2);
    EXPECT_EQ(said, (std::vector<std::string>{"store: answers", "gateway a: is present"}));
}

TEST(StateLog, SaysLittleOfWhatChangesAllTheTime)
{
    std::vector<std::string> said;
    StateLog log([&](const std::string &line) { said.push_back(line); });
    constexpr int64_t Ms = 1'000'000;
    for (int64_t n = 0; n < 6000; ++n) // ten minutes, ten changes a second
        log.say("store", n % 2 ? "answers" : "is gone", 1 + n * 100 * Ms);
    EXPECT_GE(said.size(), 60u);
    EXPECT_LE(said.size(), 60u + StateLog::Burst);
    EXPECT_NE(said.back().find(" changes before were not said)"), std::string::npos);
    log.say("store", "stays", 601 * 1000 * Ms); // the final state is logged in the end
    for (int64_t n = 601; n < 620; ++n)
        log.tick(n * 1000 * Ms);
    EXPECT_EQ(said.back().rfind("store: stays", 0), 0u);
}

} // namespace
} // namespace msfrs::test
