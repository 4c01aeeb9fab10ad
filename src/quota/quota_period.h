// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Periods of quotas, by wall-clock time. `local` is local time, in seconds since 1970-01-01 00:00 of the same clock:
/// UTC plus the offset of the time zone at that moment. Time zones are not known here.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace msfrs {

/// From the full hour, from midnight, from Monday's midnight, from midnight of the first of the month.
enum class QuotaPeriod { Hour, Day, Week, Month };
constexpr QuotaPeriod QuotaPeriods[] = {QuotaPeriod::Hour, QuotaPeriod::Day, QuotaPeriod::Week, QuotaPeriod::Month};

/// "hour", "day", "week", "month"
const char *QuotaPeriodText(QuotaPeriod);
std::optional<QuotaPeriod> QuotaPeriodOf(std::string_view text);

/// The number of the period: one more than that of the period before, and never lower at a later moment.
int64_t QuotaPeriodNumber(QuotaPeriod, int64_t local);

/// End of the period at that moment, where the next one begins, in seconds of the same clock.
int64_t QuotaPeriodEnd(QuotaPeriod, int64_t local);

} // namespace msfrs
