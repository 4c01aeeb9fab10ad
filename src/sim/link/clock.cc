// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/link/clock.h"

#include <algorithm>

namespace msfrs::sim {

void Clock::at(const msfrs_time when, Event event)
{
    events_.push({std::max(when, now_), ++order_, std::move(event)});
}

std::optional<msfrs_time> Clock::next() const
{
    return events_.empty() ? std::nullopt : std::optional(events_.top().when);
}

void Clock::run(const msfrs_time until)
{
    while (!events_.empty() && events_.top().when <= until) {
        // Moving does not change `when` and `order`, by which the queue is ordered.
        auto due = std::move(const_cast<Due &>(events_.top()));
        events_.pop();
        now_ = due.when;
        due.event();
    }
    now_ = std::max(now_, until);
}

void Timer::set(const msfrs_time when)
{
    state_->when = when;
    state_->serial = ++state_->last;
    clock_.at(when, [state = state_, serial = state_->serial] {
        if (state->serial != serial)
            return;
        state->serial = 0;
        state->event();
    });
}

} // namespace msfrs::sim
