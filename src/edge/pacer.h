// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The pacer: a token bucket that gives the departure time of the next packet.
///
///     a packet may leave once no time is owed for earlier ones: now >= next;  next = next + 8 L / rate
///     while packets wait,  next >= now - MostLate;  at an arrival when none waits,  next >= now - 8 burst / rate
///
/// While packets wait, a late timer is compensated for, so the rate holds for any timer resolution. Idle time is not
/// compensated for beyond the burst. Nothing is rounded: fractions of a nanosecond are carried over.
#pragma once

#include <cstdint>

namespace msfrs::edge {

class Pacer {
public:
    static constexpr int64_t MostRate = 1'000'000'000'000; ///< bit/s
    /// Longest delay compensated for, ns: a process that was stopped for seconds must not flood the link.
    static constexpr int64_t MostLate = 50'000'000;

    /// \param rate bit/s, 1..MostRate, or 0: no limit \param burst bytes that may leave at once after idle time
    Pacer(int64_t rate, int64_t burst, int64_t now): next_(now) { configure(rate, burst); }

    /// Takes effect now; time owed already stays owed.
    void configure(int64_t rate, int64_t burst);
    void setRate(const int64_t rate)
    {
        if (rate != rate_)
            configure(rate, burst_);
    }
    int64_t rate() const { return rate_; }

    /// A packet arrives while none waits.
    void wake(const int64_t now) { raise(now - burstTime_); }
    bool ready(const int64_t now) const { return rate_ == 0 || now >= next_; }
    /// When the next packet may leave; meaningful only while one waits.
    int64_t next() const { return next_; }
    /// `bytes` (0..1e8) leave now.
    void sent(int64_t bytes, int64_t now);

private:
    void raise(const int64_t least)
    {
        if (next_ < least) {
            next_ = least;
            carry_ = 0;
        }
    }

    int64_t rate_ = 0, burst_ = 0, burstTime_ = 0;
    int64_t next_;
    int64_t carry_ = 0; ///< fraction of a nanosecond missing from next_, in units of 1 / rate
};

} // namespace msfrs::edge
