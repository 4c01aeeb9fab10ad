// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The narrow downlink: a token bucket of two full frames and, before it, the provider's drop-tail queue in bytes. The
/// same as in the field trial, where sch_tbf makes it.
#ifndef MSFRS_SIM_ACCESS_LINK_H
#define MSFRS_SIM_ACCESS_LINK_H

#include "sim/access/clock.h"

#include <deque>

namespace msfrs::sim::access {

/// Bytes of a frame: Ethernet, IPv4 and TCP with timestamps around a segment of at most Mss; no frame check sequence.
constexpr int64_t Mss = 1448, Headers = 14 + 20 + 32, FullFrame = Mss + Headers, HandshakeFrame = 74;

class Link {
public:
    /// \param rate C in bit/s, > 0, of whole frames
    /// \param buffer bytes that may wait; at least two full frames do
    Link(Clock &, double rate, int64_t buffer);

    /// A frame comes to the provider's queue.
    /// \param arrives called when it has passed the link
    /// \returns whether it was taken
    bool send(int64_t bytes, Clock::Event arrives);

    /// C is another from now on, >= 0.
    void setRate(double);
    double rate() const { return rate_; }
    int64_t buffer() const { return buffer_; }
    int64_t backlog() const { return backlog_; } ///< bytes that wait

    /// What has happened, since the object was made.
    struct Counts {
        uint64_t offeredFrames = 0, droppedFrames = 0, carriedFrames = 0;
        int64_t offered = 0, dropped = 0, carried = 0; ///< bytes
    };
    const Counts &counts() const { return counts_; }

    /// How long the queue was, in time that the link takes for it; `from` now on. Once C has changed, for how long who
    /// is at its head has waited: a link that stands still takes for ever.
    void measureQueue();
    double meanQueue() const;              ///< s, over time
    double queueQuantile(double share) const; ///< s that is not exceeded in so much of the time, to a millisecond

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
    double tokens_;        ///< bytes, at tokensAt_
    msfrs_time tokensAt_ = 0;
    Counts counts_;
    mutable std::vector<msfrs_time> queued_; ///< by milliseconds of queue: for how long
    mutable double queueTime_ = 0;           ///< integral of the queue in s over time in ns
    mutable msfrs_time noted_ = 0;
    msfrs_time measured_ = 0;                ///< since when
};

} // namespace msfrs::sim::access

#endif
