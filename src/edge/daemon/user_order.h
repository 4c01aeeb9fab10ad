// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The order within a user's queue: the first bytes of a connection precede the rest of the user's traffic.
///
/// On a slow link the packets of a download wait for seconds. Behind them a handshake is retransmitted until it is
/// given up, and a DNS answer arrives too late; and all retransmissions have crossed the link. So the first `Early`
/// bytes of a connection, counted since it last had none waiting, precede the rest, both in order of arrival. Packets
/// of a connection keep their order. The order of users does not change: the engine's items are a user's *turns*, and
/// the packet is chosen when its turn comes. An AQM drops packets of the rest while there are any.
///
/// Overshoot. A new connection sends a window, and doubles it every round trip until it detects a loss or a queue. All
/// of that builds a queue at the provider before it arrives here, and an AQM that waits for a standing queue is too
/// late. So a connection with too many waiting bytes gets a signal at once, by one packet, once until none of it waits.
///
/// Cost: O(1), and a look-up of user and connection for each packet.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <deque>
#include <unordered_map>

namespace msfrs::edge {

struct Held;

class UserOrder {
public:
    static constexpr int64_t Early = 16384; ///< bytes on the link; a quantum, as a response in Squid

    /// A packet waits, and is the host of this item. Does nothing for a packet without a user.
    /// \param bytes on the link, > 0
    void queued(msfrs_item &, Held &, int64_t bytes);
    /// The turn of which this packet is the host has come. \returns the packet to send; the item is not read
    Held &next(Held &host) { return take(host, true, false); }
    /// Whether more than `most` bytes wait of the connection of this packet, which has left. True once per start.
    bool overshoots(const Held &, int64_t most);
    /// The turn of which this packet is the host is lost. \returns the packet to drop: of the rest, the oldest
    /// (`newest`: the youngest)
    Held &lost(Held &host, const bool newest) { return take(host, false, newest); }

private:
    struct Connection {
        int64_t bytes = 0;      ///< since none of it waited
        int64_t queued = 0;     ///< bytes that wait
        bool told = false;      ///< overshoots() was true
    };
    struct Queue {
        std::deque<Held *> early, rest;
        std::unordered_map<uint64_t, Connection> connections;
    };

    Held &take(Held &host, bool earlyFirst, bool newest);

    std::unordered_map<uint64_t, Queue> users_;
};

} // namespace msfrs::edge
