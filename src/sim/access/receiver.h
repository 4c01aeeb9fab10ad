// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The gateway's end of a TCP connection to a server, as Linux has it: the receive buffer and the window that it is
/// worth, delayed acknowledgements, SO_RCVLOWAT, and the round trip that a receiver sees in timestamps. Buffers and
/// windows are counted in bytes of payload: what share of a buffer the kernel offers (BufferShare) is left out.
#ifndef MSFRS_SIM_ACCESS_RECEIVER_H
#define MSFRS_SIM_ACCESS_RECEIVER_H

#include "sim/access/sender.h"

namespace msfrs::sim::access {

class Receiver {
public:
    /// \param acknowledge hands an acknowledgement to the network
    /// \param readable called when readable() has become true, or more has come meanwhile
    /// \param buffer bytes; 0: as large as the sender can use, as the kernel tunes it
    Receiver(Clock &, std::function<void(const Ack &)> acknowledge, std::function<void()> readable, int64_t buffer);

    void arrived(const Segment &);
    /// The application takes up to `most` bytes. \returns how many
    int64_t read(int64_t most);

    int64_t unread() const { return next_ - read_; }
    bool readable() const;
    /// SO_RCVLOWAT, at most what the kernel allows; nobody is told if there is enough to read then.
    /// \returns what it is then
    int64_t setLowWater(int64_t bytes);
    void growBuffer(int64_t bytes) { buffer_ = std::max(buffer_, bytes); }
    /// TCP_WINDOW_CLAMP.
    void clampWindow(int64_t bytes);
    int64_t buffer() const { return buffer_; }
    int64_t edge() const { return edge_; }
    int64_t received() const { return next_; }
    uint64_t packets() const { return packets_; }       ///< tcpi_segs_in
    /// From Linux 6.16 on a round trip that is less than the mean so far takes its place.
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
    bool tuned_;                  ///< the buffer is the kernel's affair
    int64_t buffer_, clamp_, threshold_; ///< threshold_: rcv_ssthresh, what is offered at most just now
    int64_t edge_;                ///< as offered
    int64_t next_ = 0, read_ = 0, acked_ = 0, lowWater_ = 1;
    std::vector<Range> beyond_;   ///< after a gap, in order
    int quick_ = 16;              ///< segments that are acknowledged at once
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

#endif
