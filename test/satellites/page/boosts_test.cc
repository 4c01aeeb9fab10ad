// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/boosts.h"
#include "satellites/page/http.h"
#include "support/directory.h"

#include "daemon/descriptor.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <set>

namespace msfrs::test {
namespace {

using namespace page;

TEST(Boosts, AreAskedForByEmptyFiles)
{
    const Directory directory;
    const auto path = directory.path() + "/boosts";
    const Boosts boosts(path);
    boosts.ask("10.20.1.7");
    boosts.ask("2001:db8:0:7::/64");
    boosts.ask("../../etc/x\n");
    boosts.ask("10.20.1.7");
    std::set<std::string> names;
    for (const auto &file : std::filesystem::directory_iterator(path)) {
        EXPECT_EQ(file.file_size(), 0u);
        names.insert(file.path().filename());
    }
    EXPECT_EQ(names, (std::set<std::string>{"10.20.1.7.boost", "2001%3Adb8%3A0%3A7%3A%3A%2F64.boost",
                                            "..%2F..%2Fetc%2Fx%0A.boost"}));
    EXPECT_THROW(boosts.ask(std::string(201, 'x')), Refused);
    for (size_t n = 3; n < Boosts::MostWaiting; ++n)
        boosts.ask("u" + std::to_string(n));
    EXPECT_THROW(boosts.ask("one more"), Refused);
    EXPECT_THROW(Boosts("/nowhere/boosts"), SystemError);
}

} // namespace
} // namespace msfrs::test
