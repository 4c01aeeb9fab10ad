// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/history.h"

#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

using namespace page;

/// Slots of 10 s, the last four of them.
History Small() { return History({10, 4, 3}); }

TEST(History, MeansOfSlots)
{
    auto h = Small();
    h.add(1000, {{"a", 1}, {"b", 7}});
    h.add(1009, {{"a", 2}});
    h.add(1010, {{"a", 5}, {"b", NAN}});
    h.add(1030, {{"a", -1e9}});
    EXPECT_EQ(h.json(), R"({"step":10,"newest":103,"columns":{"a":[1.5,5,null,-1e+09],"b":[7,null,null,null]}})");
    EXPECT_EQ(h.newestJson(), R"({"slot":103,"values":{"a":-1e+09,"b":null}})");
}

TEST(History, WhatIsOldIsForgotten)
{
    auto h = Small();
    h.add(1000, {{"a", 1}});
    h.add(1010, {{"b", 2}});
    h.advance(1040);
    EXPECT_EQ(h.json(), R"({"step":10,"newest":104,"columns":{"b":[2,null,null,null]}})") << "and a with it";
    h.advance(99'000'000);
    EXPECT_EQ(h.columns(), 0u);
}

TEST(History, ANameIsBounded)
{
    auto h = Small();
    h.add(1000, {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}});
    EXPECT_EQ(h.columns(), 3u);
    h.add(1100, {{"d", 1}});
    EXPECT_EQ(h.columns(), 1u) << "there is room when others have gone";
}

TEST(History, AClockThatIsSetBack)
{
    auto h = Small();
    h.add(1000, {{"a", 1}});
    h.add(1010, {{"a", 2}});
    h.add(1020, {{"a", 3}});
    h.add(1010, {{"a", 9}});
    EXPECT_EQ(h.json(), R"({"step":10,"newest":101,"columns":{"a":[null,null,1,9]}})");
    h.add(20, {{"a", 4}});
    EXPECT_EQ(h.json(), R"({"step":10,"newest":2,"columns":{"a":[null,null,null,4]}})");
    h.add(0, {{"a", 5}});
    h.add(-5, {{"a", 5}});
    EXPECT_EQ(h.newest(), 2) << "a clock that was never set";
}

History Filled()
{
    auto h = Small();
    h.add(1000, {{"rate/a b%\n", 0.125}});
    h.add(1020, {{"rate/a b%\n", 1e12}, {"\xC3\xA4", -3}});
    return h;
}

TEST(History, IsSavedAndLoaded)
{
    std::stringstream file;
    Filled().save(file);
    auto h = Small();
    h.load(file, 1029);
    EXPECT_EQ(h.json(), Filled().json());
}

TEST(History, WhatIsLoadedIsAsOldAsItIs)
{
    std::stringstream file;
    Filled().save(file);
    auto h = Small();
    h.load(file, 1045);
    EXPECT_EQ(h.json(), R"({"step":10,"newest":104,"columns":{"rate/a b%\u000a":[null,1e+12,null,null],)"
                        "\"\xC3\xA4\":[null,-3,null,null]}}");
    std::stringstream again;
    Filled().save(again);
    auto early = Small();
    early.load(again, 1005);
    EXPECT_EQ(early.json(), R"({"step":10,"newest":100,"columns":{"rate/a b%\u000a":[null,null,null,0.125]}})")
        << "the future is left out";
}

TEST(History, WhatIsNoneOfOursIsRefused)
{
    std::stringstream file;
    Filled().save(file);
    const auto good = file.str();
    const auto with = [&](const std::string &what, const std::string &by) {
        auto text = good;
        return text.replace(text.find(what), what.size(), by);
    };
    const std::string bad[] = {"", "\n", "garbage", std::string(2'000'000, 'x'), good.substr(0, good.size() - 4),
                               with("history 1", "history 2"), with("step 10", "step 5"), with("slots 4", "slots 9999"),
                               with("newest 102", "newest -1"), with("newest 102", "newest 9223372036854775807"),
                               with("newest 102", "newest 102 x"), with("1e+12", "1e+12 1"), with(" 1e+12", ""),
                               with("1e+12", "1e+999"), with("1e+12", "nan"), with("1e+12", "1x"),
                               with("%25", "%2"), with("%25", "%zz"), with("end", "c - - - 1\nd - - - 1\nend")};
    for (const auto &text : bad) {
        std::istringstream in(text);
        auto h = Small();
        h.add(1000, {{"kept", 1}});
        const auto before = h.json();
        EXPECT_THROW(h.load(in, 1029), std::runtime_error) << text.substr(0, 200);
        EXPECT_EQ(h.json(), before);
    }
}

} // namespace
} // namespace msfrs::test
