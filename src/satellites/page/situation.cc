// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/situation.h"

#include <cmath>

namespace msfrs::page {

namespace {

/// Share of the link that bypasses Squid and is worth a sentence. The share of responses is estimated (overhead= of
/// msfrs_link); handshakes, small packets, retransmissions and DNS of Squid itself may be several percent more.
constexpr double MuchPast = 0.1;
/// Minimum part of PastOver that must be measured, s. Bytes that the kernel has received and Squid has not read yet
/// appear to bypass Squid, and are a large part of the bytes that the link carries in a second.
constexpr double PastLeast = 10;

/// The intervals that ended in the last seconds: their number, and the mean of a figure with its standard error.
struct Mean {
    double count = 0, mean = 0, error = 0;
};

template <class Figure>
Mean MeanOf(const ManagerReport &report, const double seconds, const Figure &figure)
{
    Mean of;
    double squares = 0;
    for (auto at = report.intervals.rbegin(); at != report.intervals.rend() && (of.count == 0 || at->ago < seconds);
         ++at) {
        const std::optional<double> value = figure(*at);
        if (!value)
            continue;
        const double off = *value - of.mean; // Welford's algorithm
        of.mean += off / ++of.count;
        squares += off * (*value - of.mean);
    }
    of.error = of.count > 1 ? std::sqrt(squares / (of.count - 1) / of.count) : 0;
    return of;
}

} // namespace

double Used(const Situation &now)
{
    const auto of = MeanOf(now.report, UsedOver, [](const IntervalRow &row) { return std::optional(row.utilisation); });
    return of.count > 0 ? of.mean : now.gateway.utilisation;
}

std::optional<double> PastSquid(const Situation &now)
{
    if (!now.gateway.metered)
        return {};
    const auto past = MeanOf(now.report, PastOver, [](const IntervalRow &row) {
        return row.own ? std::optional(row.utilisation - *row.own) : std::nullopt;
    });
    // Two standard errors: one of forty such figures is above the bound by chance.
    if (past.count * now.report.interval < PastLeast || past.mean - 2 * past.error < MuchPast)
        return {};
    return past.mean;
}

std::string CauseOfQueue(const Situation &now)
{
    // Measured for less than PastSquid(), which knows nothing yet when `msfrsctl off` has filled the queue.
    const auto past = MeanOf(now.report, UsedOver, [](const IntervalRow &row) {
        return row.own ? std::optional(row.utilisation - *row.own) : std::nullopt;
    });
    // The share of responses includes packets that msfrs-edge has released.
    if ((now.gateway.metered && past.mean >= MuchPast) || now.report.edgeShare >= MuchPast)
        return "traffic that bypasses Squid builds it, see msfrsctl status.";
    return "rate= of msfrs_link may be too high, see msfrsctl doctor.";
}

} // namespace msfrs::page
