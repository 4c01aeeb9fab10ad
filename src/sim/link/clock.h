// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Simulated time: an event queue with a reproducible order.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>

namespace msfrs::sim {

constexpr msfrs_time Ms = 1'000'000, Second = 1'000 * Ms;

inline double Seconds(const msfrs_time t) { return static_cast<double>(t) * 1e-9; }

/// Events at the same time run in the order in which they were scheduled.
class Clock {
public:
    using Event = std::function<void()>;

    msfrs_time now() const { return now_; }
    /// \param when not before now(): a late event runs now
    void at(msfrs_time when, Event);
    void after(const msfrs_time delay, Event event) { at(now_ + delay, std::move(event)); }
    /// When the first event is due, if there is any.
    std::optional<msfrs_time> next() const;
    /// Advances time to `until`, unless it is later already.
    void run(msfrs_time until);

private:
    struct Due {
        msfrs_time when;
        uint64_t order;
        Event event;
        bool operator<(const Due &o) const { return when != o.when ? when > o.when : order > o.order; }
    };

    std::priority_queue<Due> events_;
    msfrs_time now_ = 0;
    uint64_t order_ = 0;
};

/// An event that runs later unless it is cancelled. May be destroyed before its time, and before the clock.
class Timer {
public:
    Timer(Clock &clock, Clock::Event event): clock_(clock), state_(std::make_shared<State>(State{std::move(event)})) {}
    ~Timer() { stop(); }
    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

    /// Sets or resets it.
    void set(msfrs_time when);
    void stop() { state_->serial = 0; }
    bool running() const { return state_->serial != 0; }
    msfrs_time when() const { return state_->when; } ///< while running

private:
    struct State {
        Clock::Event event;
        msfrs_time when = 0;
        uint64_t serial = 0, last = 0; ///< serial: of the valid setting; 0: none
    };

    Clock &clock_;
    std::shared_ptr<State> state_;
};

} // namespace msfrs::sim
