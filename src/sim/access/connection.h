// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A connection of the gateway to a server: handshake, requests one after the other, answers. Uplink and the path
/// between server and provider have unlimited capacity; the downlink is the Link.
#pragma once

#include "sim/link/link.h"
#include "sim/access/receiver.h"
#include "sim/access/sender.h"

#include <optional>

namespace msfrs::sim::access {

constexpr int64_t ResponseHeader = 272; ///< bytes, as in the field trial

/// The path to a server and back, without the link's queue.
struct ServerPath {
    ServerPath(const msfrs_time r): rtt(r) {}

    msfrs_time rtt;       ///< base RTT, ns > 0
    msfrs_time jump = 0;  ///< ns >= 0: extra delay from the server in every other `every`
    msfrs_time every = 0; ///< ns; 0: constant
    /// Delay from the server at some time, ns.
    msfrs_time down(const msfrs_time now) const { return rtt - rtt / 2 + (every > 0 && now / every % 2 ? jump : 0); }
};

class Connection {
public:
    /// \param buffer receive buffer in bytes, 0: the kernel's own
    Connection(Clock &, Link &, uint32_t server, const ServerPath &, int64_t buffer);

    /// Called when it may be written to, and when there are bytes to read.
    std::function<void()> onOpen, onReadable;

    void open();
    /// The gateway sends a message, which the server receives later.
    void say(std::function<void(Sender &)> heard);
    /// The server answers with header and body, `thinks` ns after it has received the request.
    void request(int64_t body, msfrs_time thinks = 0);

    uint32_t server() const { return server_; }
    Receiver &receiver() { return receiver_; }
    const Receiver &receiver() const { return receiver_; }
    const std::optional<Sender> &sender() const { return sender_; }

    // What the gateway's kernel knows of the path, ns, 0: not known (struct tcp_info).
    msfrs_time smoothed() const { return srtt_; }
    msfrs_time latest() const;
    msfrs_time least() const { return least_; }

    // State kept for the gateway.
    int64_t boundedBuffer = 0;  ///< receive buffer requested, bytes of window
    msfrs_time idleSince = 0;

private:
    void answerHandshake();
    void comeDown(Clock::Event);
    void carry(const Segment &);
    void sample(msfrs_time rtt);

    Clock &clock_;
    Link &link_;
    uint32_t server_;
    const ServerPath path_;
    msfrs_time opened_ = 0, comes_ = 0, asked_ = -1, lastAsked_ = 0, synAcked_ = 0;
    Receiver receiver_;
    std::optional<Sender> sender_;
    Timer again_;
    bool established_ = false;
    int tries_ = 0;
    msfrs_time srtt_ = 0, least_ = 0;
};

} // namespace msfrs::sim::access
