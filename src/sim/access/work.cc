// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/work.h"

#include <utility>

namespace msfrs::sim::access {

void Work::asked(const int64_t bytes) { change(bytes, 1); }

void Work::received(const int64_t bytes) { change(-bytes, 0); }

void Work::ended(const int64_t rest) { change(-rest, -1); }

void Work::measure()
{
    change(0, 0);
    closePeriod();
    since_ = clock_.now();
    byteSeconds_ = carried_ = offeredBytes_ = 0;
}

double Work::unfinished()
{
    change(0, 0);
    return changedAt_ > since_ ? byteSeconds_ / Seconds(changedAt_ - since_) : 0;
}

double Work::utilisation()
{
    closePeriod();
    return offeredBytes_ > 0 ? carried_ / offeredBytes_ : 1;
}

void Work::change(const int64_t bytes, const int requests)
{
    const auto now = clock_.now();
    byteSeconds_ += static_cast<double>(bytes_) * Seconds(now - std::exchange(changedAt_, now));
    bytes_ += bytes;
    if (requests != 0)
        closePeriod();
    requests_ += requests;
}

/// Ends a period in which requests were open throughout, or not at all.
void Work::closePeriod()
{
    const auto now = clock_.now(), from = std::exchange(openedAt_, now);
    const auto carried = link_.counts().carried, before = std::exchange(openedWith_, carried);
    if (requests_ == 0 || now == from)
        return;
    carried_ += static_cast<double>(carried - before);
    offeredBytes_ += MeanRate(offered_, Seconds(from), Seconds(now)) / 8 * Seconds(now - from);
}

} // namespace msfrs::sim::access
