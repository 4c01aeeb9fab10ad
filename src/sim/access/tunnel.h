// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One tunnel at the simulated gateway, as in Squid's patched tunnel.cc.
#pragma once

#include "sim/access/http2_session.h"
#include "sim/access/ticket.h"

namespace msfrs::sim::access {

class Tunnel final : public Ticket {
public:
    Tunnel(Gateway &, uint32_t cls, const std::string &user, uint32_t server, std::shared_ptr<Http2Session>);

private:
    void forward() override;
    void finish(bool refused) override;
    const char *took(const int64_t bytes) override { return http2_->pass(bytes); }
    void deliver(int64_t) override { http2_->deliver(); }
    void send() override;
    void readClient();

    const uint32_t server_;
    const std::shared_ptr<Http2Session> http2_;
    Http2Session::Words words_;         ///< of the client, being forwarded
    bool held_ = false;            ///< they wait, and the client is not read
};

} // namespace msfrs::sim::access
