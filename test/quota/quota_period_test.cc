// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Periods against the C library's calendar.
#include "quota/quota_period.h"

#include <ctime>
#include <gtest/gtest.h>

namespace msfrs {
namespace {

constexpr int64_t Day = 86400;

int64_t At(const int year, const int month, const int day, const int hour = 0, const int minute = 0)
{
    std::tm tm{};
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    return timegm(&tm);
}

TEST(QuotaPeriod, Names)
{
    for (const auto period : QuotaPeriods)
        EXPECT_EQ(QuotaPeriodOf(QuotaPeriodText(period)), period);
    EXPECT_EQ(QuotaPeriodOf("year"), std::nullopt);
    EXPECT_EQ(QuotaPeriodOf(""), std::nullopt);
}

TEST(QuotaPeriod, EndsWhereTheCalendarSays)
{
    const auto now = At(2028, 2, 29, 17, 40); // a Tuesday
    EXPECT_EQ(QuotaPeriodEnd(QuotaPeriod::Hour, now), At(2028, 2, 29, 18));
    EXPECT_EQ(QuotaPeriodEnd(QuotaPeriod::Day, now), At(2028, 3, 1));
    EXPECT_EQ(QuotaPeriodEnd(QuotaPeriod::Week, now), At(2028, 3, 6)) << "a Monday";
    EXPECT_EQ(QuotaPeriodEnd(QuotaPeriod::Month, now), At(2028, 3, 1));
    EXPECT_EQ(QuotaPeriodEnd(QuotaPeriod::Month, At(2026, 12, 31, 23, 59)), At(2027, 1, 1));
    EXPECT_EQ(QuotaPeriodEnd(QuotaPeriod::Week, At(2026, 11, 22, 23, 59)), At(2026, 11, 23)) << "a Sunday";
    EXPECT_EQ(QuotaPeriodEnd(QuotaPeriod::Week, At(2026, 11, 23)), At(2026, 11, 30)) << "a Monday";
}

/// Every day of 500 years, some of them before 1970.
TEST(QuotaPeriod, ANumberForEachOfThem)
{
    const auto month = [](const int64_t at) { return QuotaPeriodNumber(QuotaPeriod::Month, at); };
    const auto week = [](const int64_t at) { return QuotaPeriodNumber(QuotaPeriod::Week, at); };
    for (auto at = At(1901, 1, 1); at < At(2400, 12, 31); at += Day) {
        const time_t before = at - Day, now = at;
        std::tm a, b;
        gmtime_r(&before, &a);
        gmtime_r(&now, &b);
        ASSERT_EQ(month(at) - month(before), a.tm_mon != b.tm_mon) << b.tm_year << ' ' << b.tm_yday;
        ASSERT_EQ(month(at + Day - 1), month(at));
        ASSERT_EQ(week(at) - week(before), b.tm_wday == 1) << b.tm_year << ' ' << b.tm_yday;
        for (const auto period : QuotaPeriods) {
            const auto end = QuotaPeriodEnd(period, at);
            ASSERT_GT(end, at);
            ASSERT_EQ(QuotaPeriodNumber(period, end), QuotaPeriodNumber(period, at) + 1);
            ASSERT_EQ(QuotaPeriodNumber(period, end - 1), QuotaPeriodNumber(period, at));
        }
    }
}

} // namespace
} // namespace msfrs
