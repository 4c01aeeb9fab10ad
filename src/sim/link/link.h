// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The simulated link: a token bucket and, before it, a drop-tail queue in bytes. With a bucket of two full frames it
/// is the provider's, as in the field trial, which uses sch_tbf. Without a bucket it is a wire: frames leave one after
/// the other, each after its transmission time. For a link behind a scheduler see port.h.
#pragma once

#include "sim/link/clock.h"

#include <deque>

namespace msfrs::sim {

/// Bytes of a frame: Ethernet, IPv4 and TCP with timestamps around a segment of at most Mss; no frame check sequence.
constexpr int64_t Mss = 1448, Headers = 14 + 20 + 32, FullFrame = Mss + Headers, HandshakeFrame = 74;

class Link {
public:
    /// \param rate C in bit/s, > 0, counting whole frames
    /// \param buffer bytes that may wait; at least two full frames may
    /// \param bucket its depth, bytes: at least a full frame, or 0: none
    Link(Clock &, double rate, int64_t buffer, double bucket = 2 * FullFrame);

    /// A frame arrives at the provider's queue.
    /// \param arrives called when it has passed the link
    /// \returns whether it was queued
    bool send(int64_t bytes, Clock::Event arrives);

    /// Changes C, >= 0.
    void setRate(double);
    double rate() const { return rate_; }
    int64_t buffer() const { return buffer_; }
    int64_t backlog() const { return backlog_; } ///< bytes that wait

    /// Counts since the object was created.
    struct Counts {
        uint64_t offeredFrames = 0, droppedFrames = 0, carriedFrames = 0;
        int64_t offered = 0, dropped = 0, carried = 0; ///< bytes
    };
    const Counts &counts() const { return counts_; }

    /// Starts to measure the queue, in transmission time of the link. Once C has changed, the queue is the wait of the
    /// frame at its head, since the transmission time is infinite while the link is down.
    void measureQueue();
    double meanQueue() const;              ///< s, over time
    double queueQuantile(double share) const; ///< s, not exceeded in this share of the time; to a ms

private:
    struct Frame {
        int64_t bytes;
        Clock::Event arrives;
        msfrs_time came;
    };

    void serve();
    void fill();
    void note() const;
    double queueNow() const;

    Clock &clock_;
    double rate_;
    bool varies_ = false;  ///< C has changed
    int64_t buffer_, backlog_ = 0;
    std::deque<Frame> frames_;
    Timer next_;
    double bucket_;
    double tokens_;        ///< bytes, at tokensAt_
    msfrs_time tokensAt_ = 0;
    Counts counts_;
    mutable std::vector<msfrs_time> queued_; ///< time by milliseconds of queue
    mutable double queueTime_ = 0;           ///< integral of the queue in s over time in ns
    mutable msfrs_time noted_ = 0;
    msfrs_time measured_ = 0;                ///< start of the measurement
};

} // namespace msfrs::sim
