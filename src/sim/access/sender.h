// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A server's end of a TCP connection, as in Linux: CUBIC, selective acknowledgements, RACK (RFC 8985) with its tail
/// loss probe, proportional rate reduction (RFC 6937). Only the direction from the server is simulated.
#pragma once

#include "sim/link/clock.h"
#include "sim/access/cubic.h"

#include <deque>

namespace msfrs::sim::access {

/// Bytes [begin, end) of a stream.
struct Range {
    int64_t begin, end;
};

struct Segment {
    Range bytes;
    bool push;           ///< no segment follows at once
    msfrs_time echo;     ///< sending time of the latest acknowledgement that the server has seen
};

struct Ack {
    int64_t next;        ///< all bytes before it have arrived
    int64_t edge;        ///< the server may send up to here
    msfrs_time sent;
    std::vector<Range> beyond; ///< received after a gap
};

class Sender {
public:
    /// \param send sends a segment
    /// \param edge it may send up to here before the first acknowledgement
    /// \param rtt of the handshake, ns > 0
    Sender(Clock &, std::function<void(const Segment &)> send, int64_t edge, msfrs_time rtt);

    /// A message sent by the gateway at `when` has arrived.
    void heard(const msfrs_time when) { echo_ = std::max(echo_, when); }
    /// The server writes `bytes` > 0, however many the socket holds.
    void write(int64_t bytes);
    void acknowledged(const Ack &);
    /// Called after each acknowledgement: there may be room in the socket.
    std::function<void()> onAcknowledged;

    int64_t held() const { return written_ - acked_; } ///< bytes in the socket
    int64_t room() const;                              ///< SO_SNDBUF as the kernel tunes it, bytes

    const Cubic &congestion() const { return cubic_; }
    int64_t written() const { return written_; }
    uint64_t retransmitted() const { return retransmitted_; } ///< segments
    uint64_t timeouts() const { return timeouts_; }

private:
    struct Sent {
        Range bytes;
        msfrs_time at;
        uint64_t order;   ///< of the last transmission among all segments
        bool again = false, arrived = false, lost = false;
    };
    enum class Phase { Open, Recovery, Loss };

    void pump();
    void resend();
    bool sendNew(bool probe = false);
    void hand(Sent &);
    void measure(msfrs_time rtt);
    void detectLoss();
    void arm();
    void expired();
    msfrs_time timeout() const;
    double quota() const;

    Clock &clock_;
    std::function<void(const Segment &)> send_;
    Cubic cubic_;
    std::deque<Sent> sent_;       ///< not cumulatively acknowledged
    int64_t acked_ = 0, next_ = 0, written_ = 0, edge_;
    int inFlight_ = 0, lostCount_ = 0, arrivedCount_ = 0; ///< of sent_: neither lost nor arrived, lost, arrived
    uint64_t order_ = 0, latest_ = 0;  ///< latest_: the last one sent of those that have arrived
    msfrs_time srtt_ = 0, rttVar_ = 0, leastRtt_ = 0;
    msfrs_time echo_ = 0, lastSent_ = 0;
    Phase phase_ = Phase::Open;
    int64_t recoveryPoint_ = 0;   ///< a recovery ends when this has arrived
    int64_t roundEnd_ = 0;        ///< a round trip ends when this has arrived
    double prior_ = 0;            ///< window before the recovery
    double delivered_ = 0, out_ = 0; ///< segments arrived and sent since its start
    bool limited_ = false;        ///< the window limited the sender, and not the application or the receiver
    int mostInFlight_ = 0, mostBefore_ = 0; ///< in this round and in the one before
    int backoff_ = 0;
    double widest_ = Cubic::Initial; ///< the largest congestion window so far
    bool probing_ = false;        ///< the timer is a tail loss probe's
    Timer timer_, reorder_;
    uint64_t retransmitted_ = 0, timeouts_ = 0;
};

} // namespace msfrs::sim::access
