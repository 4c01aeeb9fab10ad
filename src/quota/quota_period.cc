// SPDX-License-Identifier: GPL-2.0-or-later
#include "quota/quota_period.h"

#include <ctime>

namespace msfrs {

namespace {

constexpr int64_t Hour = 3600, Day = 24 * Hour; ///< s

/// As in QuotaPeriod.
constexpr struct {
    const char *name;
    int64_t length, offset; ///< s, offset: from the beginning of a period to 1970-01-01. Months have no fixed length
} Kinds[] = {{"hour", Hour, 0}, {"day", Day, 0}, {"week", 7 * Day, 3 * Day}, {"month", 0, 0}};

const auto &KindOf(const QuotaPeriod period) { return Kinds[static_cast<size_t>(period)]; }

/// Rounds down, also below zero.
constexpr int64_t Whole(const int64_t n, const int64_t of) { return n / of - (n % of < 0); }

constexpr int FirstMonth = 2; ///< months of the year 0 before the one with the number 0, which is in saved counts

int64_t MonthOf(const time_t at)
{
    std::tm date{};
    gmtime_r(&at, &date);
    return (date.tm_year + 1900) * int64_t{12} + date.tm_mon - FirstMonth;
}

int64_t BeginOfMonth(const int64_t number)
{
    std::tm date{};
    date.tm_year = -1900;
    date.tm_mon = static_cast<int>(number) + FirstMonth; // timegm() carries the years
    date.tm_mday = 1;
    return timegm(&date);
}

} // namespace

const char *QuotaPeriodText(const QuotaPeriod period) { return KindOf(period).name; }

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
    if (period == QuotaPeriod::Month)
        return MonthOf(local);
    return Whole(local + KindOf(period).offset, KindOf(period).length);
}

int64_t QuotaPeriodEnd(const QuotaPeriod period, const int64_t local)
{
    const auto next = QuotaPeriodNumber(period, local) + 1;
    return period == QuotaPeriod::Month ? BeginOfMonth(next) : next * KindOf(period).length - KindOf(period).offset;
}

} // namespace msfrs
