// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Round trips between here and servers, from the TCP segments that pass in both directions. Passive: nothing is sent.
///
/// A connection whose ends use timestamps (RFC 7323) has them in most segments: a value that goes up comes back as an
/// echo, and the first echo of a value tells a round trip (as pping does; K. Nichols, 2017). Without timestamps the
/// handshake tells one, and each segment that carries something up, with the first acknowledgement of all of it; not
/// if it was sent twice (Karn and Partridge, 1987). How long the users' part of the way takes is in none of them.
///
/// Of what comes down, holes in the order are counted as well: a trace of losses before here.
#ifndef MSFRS_EDGE_DAEMON_ROUND_TRIPS_H
#define MSFRS_EDGE_DAEMON_ROUND_TRIPS_H

#include "edge/match.h"
#include "plugin/msfrs_plugin.h"

#include <array>
#include <optional>
#include <vector>

namespace msfrs::edge {

constexpr uint8_t Tcp = 6; ///< protocol

/// What the header of a segment of TCP says.
struct TcpSegment {
    uint32_t from = 0, to = 0;   ///< sequence numbers: of its first byte, and of the one after it; SYN and FIN count
    uint32_t acknowledged = 0;   ///< only with `ack`
    bool syn = false, ack = false, reset = false;
    bool stamped = false;        ///< it has the timestamps option
    uint32_t stamp = 0, echo = 0; ///< only then; echo: and with `ack`
};

/// Reads a segment. It is untrusted: nothing beyond `captured` is read, and options that are cut short or whose lengths
/// are wrong end the search.
/// \param transport where its header begins, as ReadKey() says \param length bytes of the whole packet
/// \returns nothing if the header is cut short, or longer than the packet
std::optional<TcpSegment> ReadTcp(const uint8_t *packet, size_t captured, size_t length, size_t transport);

/// A round trip to a server.
struct RoundTrip {
    uint64_t server;  ///< key of its address
    msfrs_time time;  ///< ns, from 1 to RoundTrips::Longest
};

/// Follows a bounded number of connections.
class RoundTrips {
public:
    static constexpr size_t Most = 2048;       ///< connections that are followed; about 0.5 MB
    static constexpr msfrs_time Longest = 10'000'000'000;  ///< ns: a server that says nothing is no path
    static constexpr msfrs_time Idle = 2'000'000'000;      ///< ns after which another may take a connection's place
    static constexpr msfrs_time Apart = 10'000'000;        ///< ns between two stamps of a connection, at least

    RoundTrips(): flows_(Most) {}

    /// A segment goes to a server. `now` is never less than before. A connection that finds no place is not followed.
    void up(const FlowKey &, const TcpSegment &, msfrs_time now);
    /// A segment comes from a server. \returns a round trip, if it tells one
    std::optional<RoundTrip> down(const FlowKey &, const TcpSegment &, msfrs_time now);

    // Sums of what came down for connections that are followed.
    uint64_t packets() const { return packets_; }       ///< that carry something
    uint64_t outOfOrder() const { return outOfOrder_; } ///< of these, that came while one before them was missing

private:
    struct Sent {
        uint32_t what;  ///< a stamp, or the sequence number that acknowledges it all
        msfrs_time at;
    };
    struct Flow {
        FlowKey key;               ///< as it goes up
        msfrs_time latest = 0;     ///< when it was seen last
        bool used = false, spoke = false, heard = false; ///< spoke, heard: sentTo, expected are known
        std::array<Sent, 8> sent;  ///< what is not answered yet, the oldest at `first`
        uint32_t first = 0, waiting = 0;
        uint32_t lastStamp = 0;
        bool stamped = false;      ///< lastStamp is known
        uint32_t sentTo = 0;       ///< the highest sequence number sent up
        uint32_t expected = 0, highest = 0; ///< of what comes down: the next without a hole; the highest
        msfrs_time trip = 0;       ///< ns, the latest

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

#endif
