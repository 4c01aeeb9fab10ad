// SPDX-License-Identifier: GPL-2.0-or-later
#include "window/swings.h"

#include <algorithm>

namespace msfrs {

constexpr double Fall = 0.7; ///< C over its earlier value

void Swings::seen(const double rate, const bool queue, const msfrs_time now)
{
    const bool turns = falling_ ? rate * Fall > extreme_ : queue && rate < Fall * extreme_;
    if (!turns) {
        extreme_ = falling_ ? std::min(extreme_, rate) : std::max(extreme_, rate);
        return;
    }
    falling_ = !falling_;
    extreme_ = rate;
    if (!falling_)
        return;
    falls_.push_back(now);
    if (falls_.size() > Several)
        falls_.pop_front();
}

bool Swings::varies(const msfrs_time now) const
{
    return falls_.size() >= Several && now - falls_.front() <= Lately;
}

} // namespace msfrs
