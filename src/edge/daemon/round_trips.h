// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// RTT samples between here and servers, from the TCP segments that pass in both directions. Passive: nothing is sent.
///
/// If both ends of a connection use timestamps (RFC 7323), most segments have them: a value sent upstream returns as an
/// echo, and the first echo of a value gives an RTT sample (as pping does; K. Nichols, 2017). Without timestamps the
/// handshake gives one, and each upstream segment with data, by the first acknowledgement of all of it; not if it was
/// retransmitted (Karn and Partridge, 1987). No sample includes the users' part of the path.
///
/// Holes in the downstream sequence are counted as well: they are a trace of losses before this point.
#pragma once

#include "edge/match.h"
#include "plugin/msfrs_plugin.h"

#include <array>
#include <optional>
#include <vector>

namespace msfrs::edge {

constexpr uint8_t Tcp = 6; ///< protocol

/// The header of a TCP segment.
struct TcpSegment {
    uint32_t from = 0, to = 0;   ///< sequence numbers: of its first byte, and of the one after it; SYN and FIN count
    uint32_t acknowledged = 0;   ///< only with `ack`
    bool syn = false, ack = false, reset = false;
    bool stamped = false;        ///< it has the timestamps option
    uint32_t stamp = 0, echo = 0; ///< valid only then; echo: and with `ack`
};

/// Parses a segment. It is untrusted: nothing beyond `captured` is read, and truncated options or wrong lengths end the
/// search.
/// \param transport offset of its header, as set by ReadKey() \param length bytes of the whole packet
/// \returns nothing if the header is truncated, or longer than the packet
std::optional<TcpSegment> ReadTcp(const uint8_t *packet, size_t captured, size_t length, size_t transport);

/// An RTT sample of a server.
struct RoundTrip {
    uint64_t server;  ///< key of its address
    msfrs_time time;  ///< ns, from 1 to RoundTrips::Longest
};

/// Follows a bounded number of connections.
class RoundTrips {
public:
    static constexpr size_t Most = 2048;       ///< connections followed, about 0.5 MB; further ones give no samples
    static constexpr msfrs_time Longest = 10'000'000'000;  ///< ns: longer samples are of servers, not of the path
    static constexpr msfrs_time Idle = 2'000'000'000;      ///< ns after which another connection may take the entry
    static constexpr msfrs_time Apart = 10'000'000;        ///< least ns between two timestamps of a connection

    RoundTrips(): flows_(Most) {}

    /// A segment to a server. `now` never decreases. A connection that finds no entry is not followed.
    void up(const FlowKey &, const TcpSegment &, msfrs_time now);
    /// A segment from a server. \returns an RTT sample, if it gives one
    std::optional<RoundTrip> down(const FlowKey &, const TcpSegment &, msfrs_time now);

    // Sums over segments from servers on followed connections.
    uint64_t packets() const { return packets_; }       ///< segments with data
    uint64_t outOfOrder() const { return outOfOrder_; } ///< of these, those that came while an earlier one was missing

private:
    struct Sent {
        uint32_t what;  ///< a timestamp, or the sequence number that acknowledges it all
        msfrs_time at;
    };
    struct Flow {
        FlowKey key;               ///< of segments to the server
        msfrs_time latest = 0;     ///< when last seen
        bool used = false, spoke = false, heard = false; ///< spoke, heard: sentTo, expected are known
        std::array<Sent, 8> sent;  ///< unanswered so far, the oldest at `first`
        uint32_t first = 0, waiting = 0;
        uint32_t lastStamp = 0;
        bool stamped = false;      ///< lastStamp is known
        uint32_t sentTo = 0;       ///< the highest sequence number sent up
        uint32_t expected = 0, highest = 0; ///< from the server: the next without a hole; the highest
        msfrs_time trip = 0;       ///< latest RTT sample, ns

        void send(uint32_t what, msfrs_time now);
        std::optional<msfrs_time> answered(uint32_t upTo, bool exactly, msfrs_time now);
        std::optional<msfrs_time> unstamped(msfrs_time now);
    };

    Flow *find(const FlowKey &upward);
    Flow *place(const FlowKey &upward, msfrs_time now);
    void order(Flow &, const TcpSegment &);

    std::vector<Flow> flows_;
    uint64_t packets_ = 0, outOfOrder_ = 0;
};

} // namespace msfrs::edge
