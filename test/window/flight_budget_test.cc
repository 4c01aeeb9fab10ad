// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/flight_budget.h"

#include <gtest/gtest.h>

namespace msfrs {
namespace {

constexpr msfrs_time Second = 1'000'000'000;

void Pass(FlightBudget &budget, const int seconds, const double utilisation, const double fullShare = 1)
{
    for (int n = 0; n < seconds; ++n)
        budget.update(Second, utilisation, fullShare, 0.99);
}

TEST(FlightBudget, GrowsWhileRequestsWaitAndTheLinkIsNotFull)
{
    FlightBudget budget;
    const double before = budget.factor();
    Pass(budget, 3, 0.97);
    EXPECT_DOUBLE_EQ(budget.factor(), before * 1.02);
    Pass(budget, 600, 0.5);
    EXPECT_EQ(budget.factor(), FlightBudget::Most) << "servers that are slow must not open windows without bound";
}

TEST(FlightBudget, ShrinksWhileTheLinkIsFull)
{
    FlightBudget budget;
    Pass(budget, 60, 0.9);
    const double before = budget.factor();
    Pass(budget, 3, 0.99);
    EXPECT_DOUBLE_EQ(budget.factor(), before * 0.98);
    Pass(budget, 600, 1.002);
    EXPECT_EQ(budget.factor(), FlightBudget::Least);
}

TEST(FlightBudget, StaysWhereTheLinkIsJustBelowItsTarget)
{
    FlightBudget budget;
    const double before = budget.factor();
    Pass(budget, 600, 0.9835);
    Pass(budget, 600, 0.9865);
    EXPECT_EQ(budget.factor(), before);
}

TEST(FlightBudget, OneIntervalDecidesNothing)
{
    FlightBudget budget;
    const double before = budget.factor();
    for (int n = 0; n < 60; ++n) {
        Pass(budget, 1, 0.955);
        Pass(budget, 2, 1);
    }
    EXPECT_EQ(budget.factor(), before) << "a mean of 0.985";
}

TEST(FlightBudget, LearnsNothingWhileNobodyWaits)
{
    FlightBudget budget;
    const double before = budget.factor();
    Pass(budget, 600, 0.2, 0.4);
    EXPECT_EQ(budget.factor(), before);
}

} // namespace
} // namespace msfrs
