// SPDX-License-Identifier: GPL-2.0-or-later
#include "quota/quota_period.h"

namespace msfrs {

namespace {

constexpr int64_t Hour = 3600, Day = 24 * Hour;
constexpr int64_t Thursday = 3; ///< days from Monday to 1970-01-01

/// Rounds down, also below zero.
constexpr int64_t Whole(const int64_t n, const int64_t of) { return n / of - (n % of < 0); }

/// Days from 0000-03-01 to the first of a month of the Gregorian calendar; months are counted from March, so that the
/// leap day is the last of a year.
constexpr int64_t DaysTo(const int64_t months)
{
    const int64_t year = Whole(months, 12), month = months - 12 * year;
    return 365 * year + Whole(year, 4) - Whole(year, 100) + Whole(year, 400) + (153 * month + 2) / 5;
}

constexpr int64_t Epoch = DaysTo(1970 * 12 - 2);

/// The month, counted as above, of a day since 1970-01-01.
constexpr int64_t MonthOf(const int64_t day)
{
    auto month = Whole((day + Epoch) * 4800, 146097); // 4800 months have 146097 days: off by one at most
    while (DaysTo(month) > day + Epoch)
        --month;
    while (DaysTo(month + 1) <= day + Epoch)
        ++month;
    return month;
}

} // namespace

const char *QuotaPeriodText(const QuotaPeriod period)
{
    switch (period) {
    case QuotaPeriod::Hour: return "hour";
    case QuotaPeriod::Day: return "day";
    case QuotaPeriod::Week: return "week";
    case QuotaPeriod::Month: return "month";
    }
    return "";
}

std::optional<QuotaPeriod> QuotaPeriodOf(const std::string_view text)
{
    for (const auto period : QuotaPeriods) {
        if (text == QuotaPeriodText(period))
            return period;
    }
    return std::nullopt;
}

int64_t QuotaPeriodNumber(const QuotaPeriod period, const int64_t local)
{
    switch (period) {
    case QuotaPeriod::Hour: return Whole(local, Hour);
    case QuotaPeriod::Day: return Whole(local, Day);
    case QuotaPeriod::Week: return Whole(Whole(local, Day) + Thursday, 7);
    case QuotaPeriod::Month: return MonthOf(Whole(local, Day));
    }
    return 0;
}

int64_t QuotaPeriodEnd(const QuotaPeriod period, const int64_t local)
{
    const auto next = QuotaPeriodNumber(period, local) + 1;
    switch (period) {
    case QuotaPeriod::Hour: return next * Hour;
    case QuotaPeriod::Day: return next * Day;
    case QuotaPeriod::Week: return (next * 7 - Thursday) * Day;
    case QuotaPeriod::Month: return (DaysTo(next) - Epoch) * Day;
    }
    return 0;
}

} // namespace msfrs
