// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/transaction.h"

#include <algorithm>

namespace msfrs::sim::access {

Transaction::Transaction(Gateway &gateway, const Wish &wish, Watcher watcher):
    Ticket(gateway, wish.cls, wish.user), wish_(wish), watcher_(std::move(watcher)), rest_(ResponseHeader + wish.size)
{
}

void Transaction::forward()
{
    if (wish_.thinks == Never)
        return;
    connection_ = gateway_.reuse(wish_.server);
    if (connection_) {
        request();
        return;
    }
    connection_ = &gateway_.connect(wish_.server);
    connection_->onOpen = [this] { request(); };
    connection_->open();
}

void Transaction::request()
{
    connection_->onReadable = [this] { read(); };
    connection_->request(wish_.size, wish_.thinks);
    goOn();
}

const char *Transaction::took(const int64_t bytes)
{
    rest_ -= bytes;
    headed_ = true;
    return nullptr;
}

void Transaction::deliver(const int64_t bytes)
{
    const auto body = std::min(bytes, wish_.size - rest_); // the part of `bytes` after the header
    if (body > 0)
        watcher_.received(body);
    if (rest_ <= 0)
        finish(false);
}

void Transaction::finish(const bool refused)
{
    leave();
    if (connection_) {
        gateway_.keep(*connection_);
        connection_ = nullptr;
    }
    const auto ended = std::move(watcher_.ended);
    gateway_.end(*this);
    ended(refused);
}

} // namespace msfrs::sim::access
