// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/why.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

class Why : public testing::Test {
protected:
    Why()
    {
        auto &g = now.gateway;
        g.scheduling = true;
        g.capacity = 2e6;
        g.utilisation = 0.97;
        g.own = 0.95;
        ClassState gold, bronze;
        gold.name = "gold";
        gold.weight = 4;
        gold.users = 1;
        bronze.name = "bronze";
        bronze.weight = 1;
        bronze.users = 4;
        g.classes = {gold, bronze};
        now.flow.classes.resize(2);
        now.users.update({{"ann", "gold", 0, 1, 1}, {"bob", "bronze", 0, 0, 1}}, 100);
    }

    std::string said(const std::string &user)
    {
        std::string all;
        for (const auto &sentence : WhySlow(now, user))
            all += sentence + "\n";
        return all;
    }

    Situation now;
};

TEST_F(Why, ItWaits)
{
    now.users.update({{"ann", "gold", 25'000, 2, 1}}, 101);
    now.report.held = {{"bob", "bronze", "b.example", "request", 9},
                       {"ann", "gold", "a.example", "request", 2.5},
                       {"ann", "gold", "c.example", "exchange", 1},
                       {"ann", "gold", "d.example", "response", 0.5}};
    EXPECT_EQ(said("ann"), "2 requests and 1 response of this user wait for a turn on the link, the longest for 2.5 s "
                           "(a.example).\n"
                           "Class gold has weight 4. 5 users want something now; by weight this user's share of the "
                           "link is 1.0 Mbit/s, and it receives 200 kbit/s.\n"
                           "The link is full (97 % of 2.0 Mbit/s).\n");
}

TEST_F(Why, ItHasItsShare)
{
    now.users.update({{"ann", "gold", 125'000, 2, 1}}, 101);
    EXPECT_NE(said("ann").find("others wait longer"), std::string::npos) << "beyond those that are listed";
    EXPECT_NE(said("ann").find("It has its share: it waits because the others have theirs."), std::string::npos);
}

TEST_F(Why, NothingWaits)
{
    now.gateway.utilisation = 0.3;
    const auto text = said("bob");
    EXPECT_EQ(text.substr(0, 30), "Nothing of this user waits her");
    EXPECT_NE(text.find("The link is not full (30 % of 2.0 Mbit/s)."), std::string::npos);
}

TEST_F(Why, ItIsNotKnown)
{
    EXPECT_EQ(said("eve").substr(0, 33), "Squid knows no user of this name ");
}

TEST_F(Why, WhatElseMakesItSlow)
{
    now.gateway.queue = 0.4;
    now.gateway.own = 0.5;
    now.flow.classes[1].refused = 0.1;
    const auto text = said("bob");
    EXPECT_NE(text.find("The queue at the provider adds 400 ms to every answer."), std::string::npos);
    EXPECT_NE(text.find("Traffic that does not pass through Squid has 47 % of the link."), std::string::npos);
    EXPECT_NE(text.find("Requests of class bronze are being refused"), std::string::npos);
    EXPECT_EQ(said("ann").find("refused"), std::string::npos);
}

TEST_F(Why, AQuotaIsUsedUp)
{
    now.report.quotas = {{"gold", "bronze", "day", 5e9, 12'000, 3, 2, {{"bob", 5.4e9}, {"ann", 4e9}}}};
    EXPECT_NE(said("bob").find("This user has had 5.0 GB, and a user of class gold may have 4.7 GB in a day: it goes "
                               "on in class bronze for another 3 h 20 min."), std::string::npos) << said("bob");
    EXPECT_EQ(said("ann").find("4.7 GB"), std::string::npos) << "it has not had all of it";
    now.report.quotas[0].most.erase(now.report.quotas[0].most.begin());
    EXPECT_NE(said("bob").find("In class bronze go on those who have had the 4.7 GB that a user of class gold may have "
                               "in a day."), std::string::npos) << "it is not among those who are named";
    EXPECT_EQ(said("eve").find("4.7 GB"), std::string::npos);
}

TEST_F(Why, NothingIsScheduled)
{
    now.gateway.scheduling = false;
    EXPECT_EQ(said("ann"), "Requests are not scheduled now: each goes out at once.\n");
}

TEST(RateText, AsPeopleReadIt)
{
    EXPECT_EQ(RateText(0), "0 bit/s");
    EXPECT_EQ(RateText(999.4), "999 bit/s");
    EXPECT_EQ(RateText(999.6), "1.0 kbit/s");
    EXPECT_EQ(RateText(12'345'678), "12 Mbit/s");
    EXPECT_EQ(RateText(5e12), "5000 Gbit/s");
}

} // namespace
} // namespace msfrs::test
