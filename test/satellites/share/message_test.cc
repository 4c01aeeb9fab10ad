// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/message.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

namespace msfrs::test {
namespace {

using namespace share;

Sums Example()
{
    Sums s;
    s.life = 7;
    s.number = 8;
    s.config = 9;
    s.places = 5;
    s.waiting = 3;
    s.queued = 4;
    s.demand = 2.5;
    s.received = UINT64_MAX;
    s.own = 11;
    s.metered = true;
    s.limit = 12.25;
    s.rate = 2e7;
    s.utilisation = 0.99;
    s.queue = 40'000'000;
    s.classes = {{1, 100, 0.5}, {UINT64_MAX, 0, 2}};
    s.users = {{3, 1000, 65535, 9}, {4, 5, 0, 0}};
    return s;
}

std::string Refused(const std::string &text)
{
    std::string why = "accepted";
    return DecodeMessage(text, why) ? "accepted" : why;
}

void PutReal(std::string &text, const size_t at, const double value) { std::memcpy(&text[at], &value, sizeof(value)); }
void PutNumber(std::string &text, const size_t at, const uint64_t value)
{
    for (size_t n = 0; n < 8; ++n)
        text[at + n] = static_cast<char>(value >> 8 * n & 0xff);
}
constexpr size_t Life = 12, Places = Life + 24, Demand = Life + 48, Metered = Demand + 24, Limit = Metered + 8;

TEST(ShareMessage, ComesBackAsItWas)
{
    std::string why;
    const auto read = DecodeMessage(EncodeMessage(Example()), why);
    ASSERT_TRUE(read) << why;
    const auto s = Example();
    EXPECT_EQ(read->life, s.life);
    EXPECT_EQ(read->number, s.number);
    EXPECT_EQ(read->config, s.config);
    EXPECT_EQ(read->places, s.places);
    EXPECT_EQ(read->waiting, s.waiting);
    EXPECT_EQ(read->queued, s.queued);
    EXPECT_EQ(read->demand, s.demand);
    EXPECT_EQ(read->received, s.received);
    EXPECT_EQ(read->own, s.own);
    EXPECT_TRUE(read->metered);
    EXPECT_EQ(read->limit, s.limit);
    EXPECT_EQ(read->rate, s.rate);
    EXPECT_EQ(read->utilisation, s.utilisation);
    EXPECT_EQ(read->queue, s.queue);
    ASSERT_EQ(read->classes.size(), 2u);
    EXPECT_EQ(read->classes[1].key, UINT64_MAX);
    EXPECT_EQ(read->classes[1].demand, 2);
    ASSERT_EQ(read->users.size(), 2u);
    EXPECT_EQ(read->users[0].waiting, 65535);
    EXPECT_EQ(read->users[0].items, 9);
    EXPECT_EQ(read->users[1].bytes, 5u);
    EXPECT_EQ(read->users[1].items, 0);
}

TEST(ShareMessage, IsBounded)
{
    auto s = Example();
    s.classes.assign(MostClasses + 1, {1, 1, 1});
    s.users.assign(MostUsers + 1, {1, 1, 1, 1});
    const auto text = EncodeMessage(s);
    EXPECT_EQ(text.size(), MostMessage);
    std::string why;
    EXPECT_EQ(DecodeMessage(text, why)->users.size(), MostUsers);
}

TEST(ShareMessage, GarbageIsRefused)
{
    const auto good = EncodeMessage(Example());
    EXPECT_EQ(Refused(""), "is not a message of msfrs-share");
    EXPECT_EQ(Refused("another type"), "is not a message of msfrs-share");
    EXPECT_EQ(Refused(good.substr(0, 50)), "has 50 bytes, less than the 124 of a head");
    EXPECT_EQ(Refused(good + "x"), "has 213 bytes; 2 classes and 2 users take 212");
    auto other = good;
    other[7] = 3;
    EXPECT_EQ(Refused(other), "has version 3, not 2: another msfrs-share wrote it");
    for (size_t n = 0; n < good.size(); ++n)
        EXPECT_NE(Refused(good.substr(0, n)), "accepted");
}

TEST(ShareMessage, FiguresOutsideTheirRangesAreRefused)
{
    const auto with = [](const size_t at, const double value) {
        auto text = EncodeMessage(Example());
        PutReal(text, at, value);
        return Refused(text);
    };
    EXPECT_EQ(with(Demand, -1), "demand -1: allowed are 0 to 1e+12");
    EXPECT_EQ(with(Demand, std::nan("")), "demand nan: allowed are 0 to 1e+12");
    EXPECT_EQ(with(Demand, std::numeric_limits<double>::infinity()), "demand inf: allowed are 0 to 1e+12");
    EXPECT_EQ(with(Limit, 0.5), "limit 0.5: allowed are 1 to 1048576");
    const auto number = [](const size_t at, const uint64_t value) {
        auto text = EncodeMessage(Example());
        PutNumber(text, at, value);
        return Refused(text);
    };
    EXPECT_EQ(number(Places, MostPlaces), "accepted");
    EXPECT_EQ(number(Places, MostPlaces + 1), "places 1048577: allowed are 0 to 1048576");
    EXPECT_EQ(number(Metered, 2), "metered 2: allowed are 0 to 1");
    EXPECT_EQ(number(124, 0), "a class without a key");
    auto many = EncodeMessage(Example());
    many[9] = 1; // 256 classes and 2
    EXPECT_EQ(Refused(many), "classes 258: allowed are 0 to 32");
}

} // namespace
} // namespace msfrs::test
