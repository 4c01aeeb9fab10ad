// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/ticket.h"

#include <algorithm>
#include <utility>

namespace msfrs::sim::access {

constexpr int64_t MostRead = 65536;          ///< bytes that Squid reads at a time

template <class Job>
void Ticket::attempt(const Job job)
{
    if (session_.request())
        gateway_.with([&](auto &scheduler) { job(scheduler, now()); });
}

void Ticket::start()
{
    if (!gateway_.scheduler_) {
        forward();
        return;
    }
    gateway_.with([&](auto &scheduler) { session_.hold(scheduler, cls_, user_, now()); });
    if (!session_.request())
        finish(true);
    else if (session_.held())
        waiting_ = true;
    else
        forward();
}

void Ticket::granted()
{
    endPause();
    if (std::exchange(waiting_, false))
        gateway_.clock_.after(0, [this] { forward(); });
    if (std::exchange(paused_, false))
        gateway_.clock_.after(0, [this] { goOn(); });
    if (std::exchange(saying_, false))
        gateway_.clock_.after(0, [this] { send(); });
}

void Ticket::leave()
{
    endPause();
    attempt([this](auto &scheduler, const auto time) {
        session_.finish(scheduler, time);
        session_.end(scheduler, time);
    });
    reading_ = paused_ = saying_ = false;
}

/// Reads on if the scheduler allows it.
void Ticket::goOn()
{
    if (!connection_)
        return;
    bool may = true;
    attempt([&](auto &scheduler, const auto time) { may = session_.mayRead(scheduler, rest(), stated(), time); });
    paused_ = paused_ || !may;
    reading_ = may;
    readSoon();
}

/// Unread bytes are read after the current call has returned.
void Ticket::readSoon()
{
    if (connection_ && connection_->receiver().readable())
        gateway_.clock_.after(0, [this] { read(); });
}

void Ticket::paused(const int64_t rest, const int64_t least)
{
    paused_ = true;
    least_ = least;
    looking_ = rest < 0;
    if (rest > 0 && rest <= connection_->receiver().buffer() * 4 / 5) {
        watching_ = connection_->receiver().setLowWater(rest) >= rest;
        if (!watching_)
            connection_->receiver().setLowWater(1);
    }
}

/// Removes the bytes sent to the client in a pause from the kernel, and stops waiting for the rest.
void Ticket::endPause()
{
    looking_ = false;
    if (connection_ && std::exchange(watching_, false))
        connection_->receiver().setLowWater(1);
    if (ahead_ > 0)
        taken_ += connection_->receiver().read(std::exchange(ahead_, 0));
}

int64_t Ticket::takeAhead()
{
    endPause();
    return std::exchange(taken_, 0);
}

/// \returns the number of bytes for the client; in a pause they stay in the kernel, so that the window stays shut
int64_t Ticket::take()
{
    auto &receiver = connection_->receiver();
    if (!looking_)
        return receiver.read(MostRead);
    const auto news = receiver.unread() - ahead_;
    if (news < least_)
        return 0;
    ahead_ += news;
    return news;
}

bool Ticket::maySend(const std::string_view data)
{
    bool may = true;
    attempt([&](auto &scheduler, const auto time) { may = session_.maySend(scheduler, data, time); });
    saying_ = !may;
    return may;
}

void Ticket::read()
{
    if (connection_ && watching_ && paused_ && connection_->receiver().unread() >= rest()) {
        endPause();
        paused_ = false;
        session_.arrived();
        reading_ = true;
    }
    if (!connection_ || !reading_ || !connection_->receiver().readable())
        return;
    const auto bytes = take();
    if (bytes == 0)
        return;
    reading_ = false;
    const auto data = took(bytes);
    attempt([&](auto &scheduler, const auto time) { session_.charge(scheduler, bytes, data, time); });
    deliver(bytes);
    if (connection_)
        goOn();
}

PathSample Ticket::path(const msfrs_time now) const
{
    PathSample seen;
    if (!connection_)
        return seen;
    const auto &receiver = connection_->receiver();
    seen.server = connection_->server();
    seen.rtt = connection_->latest();
    seen.age = now - receiver.arrivedAt();
    seen.least = std::min(connection_->least(), connection_->smoothed());
    seen.packets = receiver.packets();
    seen.outOfOrder = receiver.outOfOrder();
    return seen;
}

int64_t Ticket::bufferedWindow(int64_t, int64_t)
{
    return connection_->boundedBuffer * 4 / 5;
}

void Ticket::setWindow(const int64_t bytes)
{
    if (bytes > connection_->boundedBuffer) {
        connection_->boundedBuffer = bytes;
        connection_->receiver().growBuffer(bytes);
    }
    connection_->receiver().clampWindow(bytes);
}

void Ticket::setLowWater(const int64_t bytes)
{
    if (!connection_)
        return;
    connection_->receiver().setLowWater(bytes);
    readSoon();
}

} // namespace msfrs::sim::access
