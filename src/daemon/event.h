// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// libevent's events, and a nanosecond timer, as objects.
#pragma once

#include "daemon/descriptor.h"

#include <cstdint>
#include <ctime>
#include <event2/event.h>
#include <functional>
#include <memory>
#include <optional>
#include <sys/timerfd.h>

namespace msfrs {

inline int64_t NanosecondsOf(const clockid_t clock)
{
    timespec at{};
    clock_gettime(clock, &at);
    return int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

/// Nanoseconds of the monotonic clock.
inline int64_t MonotonicNow() { return NanosecondsOf(CLOCK_MONOTONIC); }
/// Nanoseconds of processor time used by the calling thread.
inline int64_t ThreadTime() { return NanosecondsOf(CLOCK_THREAD_CPUTIME_ID); }

using EventBase = std::unique_ptr<event_base, void (*)(event_base *)>;

/// \throws SystemError
inline EventBase NewEventBase()
{
    EventBase base(event_base_new(), event_base_free);
    if (!base)
        throw SystemError("no event loop");
    return base;
}

/// A libevent event that calls a function; removed with the object.
class Event {
public:
    /// \throws SystemError
    Event(event_base *const base, const int fd, const short what, std::function<void()> call): call_(std::move(call))
    {
        const auto thunk = [](evutil_socket_t, short, void *self) { static_cast<Event *>(self)->call_(); };
        event_ = event_new(base, fd, static_cast<short>(what | EV_PERSIST), thunk, this);
        if (!event_ || event_add(event_, nullptr) < 0)
            throw SystemError("cannot add an event");
    }
    ~Event()
    {
        if (event_)
            event_free(event_);
    }
    Event(const Event &) = delete;

private:
    std::function<void()> call_;
    event *event_ = nullptr;
};

/// One timer. libevent's own have a resolution of a millisecond.
class Timer {
public:
    Timer(event_base *const base, std::function<void()> call):
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        due_(base, timer_.get(), EV_READ, [this, call = std::move(call)] {
            at_.reset(); // setting the timer clears an unread expiry, so the descriptor is never read
            call();
            if (!at_)
                set(0);
        })
    {}

    /// Calls at that time of the monotonic clock, or at once if that has passed; nothing: never.
    void arm(const std::optional<int64_t> at)
    {
        if (at_ == at)
            return;
        at_ = at;
        set(!at ? 0 : *at > 0 ? *at : 1);
    }

    /// Calls once between the two times, and keeps a time already set if it is between them: on a virtual processor,
    /// setting the clock's interrupt takes microseconds.
    void armBetween(const int64_t first, const int64_t last)
    {
        if (!at_ || *at_ < first || *at_ > last)
            arm(last);
    }

private:
    void set(const int64_t at)
    {
        itimerspec spec{};
        spec.it_value.tv_sec = at / 1'000'000'000;
        spec.it_value.tv_nsec = at % 1'000'000'000;
        timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
    }

    Descriptor timer_;
    std::optional<int64_t> at_;
    Event due_;
};

} // namespace msfrs
