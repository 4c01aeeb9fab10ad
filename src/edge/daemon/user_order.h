// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The order within a user's queue: what a connection begins with goes before what others have of theirs.
///
/// A user who downloads has packets waiting for seconds on a slow link. Behind them a handshake is sent again and again
/// until it is given up, and a name server's answer comes too late; and all that is sent again has crossed the link. So
/// the first `Early` bytes of a connection since nothing of it waited go before the rest, in order of arrival both.
/// Packets of a connection keep their order. Users are not concerned: the engine's items are a user's *turns*, and
/// which packet a turn is for is decided when it comes. What an AQM drops is of the rest, while there is any.
///
/// Overshoot. Who begins sends a window, and twice as much every round trip until it hears of a loss or of a queue. All
/// of that makes a queue at the provider before it comes here, and an AQM that waits for a queue to stand is too late.
/// So a connection of which too much waits is to hear of it at once, by one packet: once, since nothing of it waited.
///
/// Cost: O(1), and a look-up of user and connection for each packet.
#ifndef MSFRS_EDGE_DAEMON_USER_ORDER_H
#define MSFRS_EDGE_DAEMON_USER_ORDER_H

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <deque>
#include <unordered_map>

namespace msfrs::edge {

struct Held;

class UserOrder {
public:
    static constexpr int64_t Early = 16384; ///< bytes on the link; a quantum, as a response in Squid

    /// A packet waits, and is the host of this item. Nothing happens with one that is for no user.
    /// \param bytes on the link, > 0
    void queued(msfrs_item &, Held &, int64_t bytes);
    /// The turn of which this packet is the host has come. \returns the packet that goes; the item is not looked at
    Held &next(Held &host);
    /// Whether more than `most` bytes wait of the connection of this packet, which has left. True once for a beginning.
    bool overshoots(const Held &, int64_t most);
    /// The turn of which this packet is the host is lost. \returns the packet that is lost: of the rest, the oldest
    /// (`newest`: the youngest)
    Held &lost(Held &host, bool newest);

private:
    struct Connection {
        int64_t bytes = 0;      ///< since nothing of it waited
        int64_t queued = 0;     ///< bytes that wait
        uint32_t waiting = 0;   ///< packets
        bool told = false;      ///< overshoots() was true
    };
    struct Queue {
        std::deque<Held *> early, rest;
        std::unordered_map<uint64_t, Connection> connections;
    };

    using Users = std::unordered_map<uint64_t, Queue>;

    Held &leave(Users::iterator, Held &host, bool early, bool newest);

    Users users_;
};

} // namespace msfrs::edge

#endif
