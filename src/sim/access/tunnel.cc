// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/tunnel.h"

#include <utility>

namespace msfrs::sim::access {

Tunnel::Tunnel(Gateway &gateway, const uint32_t cls, const std::string &user, const uint32_t server,
               std::shared_ptr<Http2Session> session):
    Ticket(gateway, cls, user), server_(server), http2_(std::move(session))
{
}

void Tunnel::forward()
{
    connection_ = &gateway_.connect(server_);
    http2_->onLeave = [this] { gateway_.clock_.after(0, [this] { finish(false); }); };
    connection_->onOpen = [this] {
        connection_->onReadable = [this] { read(); };
        http2_->onWords = [this] { readClient(); };
        http2_->begin();
        goOn();
    };
    connection_->open();
}

void Tunnel::readClient()
{
    if (held_)
        return;
    words_ = http2_->take();
    if (words_.bytes.empty())
        return;
    held_ = true;
    if (maySend(words_.bytes))
        send();
}

void Tunnel::send()
{
    if (!connection_)
        return;
    connection_->say([session = http2_, words = std::exchange(words_, {})](Sender &sender) {
        session->heard(sender, words);
    });
    held_ = false;
    readClient();
}

void Tunnel::finish(bool)
{
    leave();
    if (connection_)
        connection_->onReadable = nullptr;
    connection_ = nullptr;
    http2_->onWords = http2_->onLeave = nullptr;
    gateway_.end(*this);
    http2_->close();
}

} // namespace msfrs::sim::access
