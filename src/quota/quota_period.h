// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The periods of quotas, by the clock on the wall. `local` is what that clock shows, in seconds since its own
/// 1970-01-01 00:00: UTC plus the offset of the time zone at that moment. No time zone is known here.
#ifndef MSFRS_QUOTA_QUOTA_PERIOD_H
#define MSFRS_QUOTA_QUOTA_PERIOD_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace msfrs {

/// From the full hour, from midnight, from Monday's midnight, from that of the first of the month.
enum class QuotaPeriod { Hour, Day, Week, Month };
constexpr QuotaPeriod QuotaPeriods[] = {QuotaPeriod::Hour, QuotaPeriod::Day, QuotaPeriod::Week, QuotaPeriod::Month};

/// "hour", "day", "week", "month"
const char *QuotaPeriodText(QuotaPeriod);
std::optional<QuotaPeriod> QuotaPeriodOf(std::string_view text);

/// Which period of its kind it is: one more than the one before, and no moment later has a lower number.
int64_t QuotaPeriodNumber(QuotaPeriod, int64_t local);

/// When the period of that moment ends: where the next one begins, in seconds of the same clock.
int64_t QuotaPeriodEnd(QuotaPeriod, int64_t local);

} // namespace msfrs

#endif
