// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Probes by the kernel's TCP: a SYN with its retransmissions, and a RST once the server has answered, in place of the
/// ACK that would complete the handshake. So the program behind the server's port sees no connection.
#pragma once

#include "daemon/event.h"
#include "syn/gate.h"

#include <functional>
#include <map>

namespace msfrs::syn {

class HalfOpen final : public Prober {
public:
    /// \param transparent whether a probe has the client's address, as Squid's connections have with TPROXY: the gateway's
    /// own may not be routed, or not be served
    /// \param finished called from the event loop \throws SystemError
    HalfOpen(event_base *, bool transparent, std::function<void(const Server &, Outcome)> finished);
    HalfOpen(const HalfOpen &) = delete;

    std::optional<Outcome> start(const Server &, const Address &client) override;
    void stop(const Server &) override;

private:
    void look();

    bool transparent_;
    std::function<void(const Server &, Outcome)> finished_;
    Descriptor ready_; ///< epoll: the sockets that have an outcome
    std::map<Server, Descriptor> sockets_;
    std::map<int, Server> servers_; ///< by descriptor
    Event readable_;
};

} // namespace msfrs::syn
