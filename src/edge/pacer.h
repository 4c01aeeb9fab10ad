// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The pacer: a token bucket that says when the next bytes may go.
///
///     a packet may go as soon as no time is owed for those before it: now >= next;  next = next + 8 L / rate
///     while packets wait,  next >= now - MostLate;  when the first comes after none,  next >= now - 8 burst / rate
///
/// What a timer was late by is made up for as long as packets wait, so that the rate holds whatever the clock's
/// interrupts are like; what the link was idle for is not, beyond the burst. Nothing is rounded: fractions of a
/// nanosecond are carried on.
#ifndef MSFRS_EDGE_PACER_H
#define MSFRS_EDGE_PACER_H

#include <cstdint>

namespace msfrs::edge {

class Pacer {
public:
    static constexpr int64_t MostRate = 1'000'000'000'000; ///< bit/s
    /// Nanoseconds that are made up for at most: a process that was stopped for seconds must not flood the link.
    static constexpr int64_t MostLate = 50'000'000;

    /// \param rate bit/s, 1..MostRate, or 0: no limit \param burst bytes that may go at once after idleness
    Pacer(int64_t rate, int64_t burst, int64_t now): next_(now) { configure(rate, burst); }

    /// From now on; what is owed already stays owed in time.
    void configure(int64_t rate, int64_t burst);
    void setRate(const int64_t rate)
    {
        if (rate != rate_)
            configure(rate, burst_);
    }
    int64_t rate() const { return rate_; }

    /// A packet comes, and none waits.
    void wake(const int64_t now) { raise(now - burstTime_); }
    bool ready(const int64_t now) const { return rate_ == 0 || now >= next_; }
    /// When the next packet may go; only sensible while one waits.
    int64_t next() const { return next_; }
    /// `bytes` (0..1e8) go now.
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
    int64_t carry_ = 0; ///< nanoseconds' fraction that next_ lacks, in units of 1 / rate
};

} // namespace msfrs::edge

#endif
