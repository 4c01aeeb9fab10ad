// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The gateway's end of a TCP connection to a server, as in Linux: the receive buffer and the window that follows from
/// it, delayed acknowledgements, SO_RCVLOWAT, and the receiver's RTT estimate from timestamps. Buffers and windows are
/// counted in bytes of payload: the share of a buffer that the kernel offers (BufferShare) is not simulated.
#pragma once

#include "sim/access/sender.h"

namespace msfrs::sim::access {

class Receiver {
public:
    /// \param acknowledge sends an acknowledgement
    /// \param readable called when readable() has become true, or more bytes have arrived while it is
    /// \param buffer bytes; 0: tuned by the kernel, as large as the sender can use
    Receiver(Clock &, std::function<void(const Ack &)> acknowledge, std::function<void()> readable, int64_t buffer);

    void arrived(const Segment &);
    /// The application reads up to `most` bytes. \returns how many
    int64_t read(int64_t most);

    int64_t unread() const { return next_ - read_; }
    bool readable() const;
    /// Sets SO_RCVLOWAT, at most to what the kernel allows. Does not call readable if there is enough to read then.
    /// \returns the value set
    int64_t setLowWater(int64_t bytes);
    void growBuffer(int64_t bytes) { buffer_ = std::max(buffer_, bytes); }
    /// TCP_WINDOW_CLAMP.
    void clampWindow(int64_t bytes);
    int64_t buffer() const { return buffer_; }
    int64_t edge() const { return edge_; }
    int64_t received() const { return next_; }
    uint64_t packets() const { return packets_; }       ///< tcpi_segs_in
    /// From Linux 6.16 on an RTT sample less than the smoothed RTT replaces it.
    void takeLeast(const bool take) { takesLeast_ = take; }
    uint64_t outOfOrder() const { return outOfOrder_; } ///< tcpi_rcv_ooopack
    msfrs_time arrivedAt() const { return arrivedAt_; } ///< of the latest packet, ns; negative: none yet
    msfrs_time roundTrip() const { return rtt_; } ///< tcpi_rcv_rtt, ns; 0: not known

private:
    int64_t window() const;
    void take(const Range &);
    void acknowledge();
    void measure(msfrs_time echo);
    void tune();

    Clock &clock_;
    std::function<void(const Ack &)> acknowledge_;
    std::function<void()> readable_;
    bool tuned_;                  ///< the kernel tunes the buffer
    int64_t buffer_, clamp_, threshold_; ///< threshold_: rcv_ssthresh, upper bound of the window
    int64_t edge_;                ///< as offered
    int64_t next_ = 0, read_ = 0, acked_ = 0, lowWater_ = 1;
    std::vector<Range> beyond_;   ///< received after a gap, in order
    int quick_ = 16;              ///< segments still acknowledged at once
    bool pushed_ = false;
    Timer delayed_;
    msfrs_time rtt_ = 0, lastEcho_ = -1;
    uint64_t packets_ = 0, outOfOrder_ = 0;
    msfrs_time arrivedAt_ = -1;
    bool takesLeast_ = false;
    msfrs_time tunedAt_ = 0;
    int64_t tunedRead_ = 0;
};

} // namespace msfrs::sim::access
