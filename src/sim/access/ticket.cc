// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/ticket.h"

#include <algorithm>
#include <utility>

namespace msfrs::sim::access {

namespace {
constexpr int64_t BatchBytes = 4096;
constexpr int64_t MostRead = 65536;          ///< bytes that Squid reads at once
constexpr msfrs_time UnreadFor = Second;
} // namespace

void Ticket::start()
{
    if (!gateway_.scheduler_) {
        forward();
        return;
    }
    state_ = State::Waiting;
    holding_ = true;
    auto why = Refusal::None;
    gateway_.with([&](auto &scheduler) {
        scheduled_ = scheduler.hold(*this, cls_, user_, gateway_.clock_.now(), why);
    });
    holding_ = false;
    if (!scheduled_)
        finish(true);
    else if (state_ == State::Served)
        forward();
}

void Ticket::granted()
{
    const auto now = gateway_.clock_.now();
    const bool first = state_ == State::Waiting;
    if (state_ == State::Paused || state_ == State::Arrived)
        exchange_.resume(now);
    else
        exchange_.begin(now);
    if (state_ != State::Arrived)
        state_ = State::Served;
    untilFitting_ = 1;
    if (first && !holding_)
        gateway_.clock_.after(0, [this] { forward(); });
    if (std::exchange(paused_, false))
        gateway_.clock_.after(0, [this] { goOn(); });
    if (std::exchange(saying_, false))
        gateway_.clock_.after(0, [this] { send(); });
}

void Ticket::leave()
{
    setBatch(1);
    takeAhead();
    if (const auto scheduled = std::exchange(scheduled_, nullptr))
        gateway_.with([&](auto &scheduler) { scheduler.done(scheduled, gateway_.clock_.now()); });
    state_ = State::Reading;
    reading_ = paused_ = watching_ = saying_ = false;
}

/// Squid would read on.
void Ticket::goOn()
{
    if (!connection_)
        return;
    if (watching_) {
        watching_ = false;
        connection_->receiver().setLowWater(1);
    }
    if (state_ != State::Paused)
        takeAhead();
    reading_ = mayRead();
    readSoon();
}

/// Unread bytes are read after the current call has returned.
void Ticket::readSoon()
{
    if (connection_ && connection_->receiver().readable())
        gateway_.clock_.after(0, [this] { read(); });
}

bool Ticket::mayRead()
{
    if (!scheduled_ || state_ == State::Arrived || looksAhead())
        return true;
    const auto now = gateway_.clock_.now();
    if (state_ == State::Silent || state_ == State::Asking) {
        bool go = false;
        gateway_.with([&](auto &scheduler) {
            go = exchange_.mayGoOnUnasked(now) && !scheduler.owes(*scheduled_);
        });
        if (go)
            return true;
        go = state_ == State::Silent && ask();
        paused_ = !go;
        return go;
    }
    bool more = true, contended = false;
    paused_ = true; // granted() may come before readMore() has answered
    state_ = State::Served;
    gateway_.with([&](auto &scheduler) {
        const auto unread = connection_->receiver().unread();
        if (rest() >= 0)
            scheduler.expect(*scheduled_, stated(), now);
        more = scheduler.readMore(*scheduled_, now, exchange_.mayBeComplete() && unread == 0);
        contended = scheduler.contended();
        if (more && untilFitting_ <= 0) {
            untilFitting_ = std::max<int64_t>(scheduler.config().quantum, 1);
            scheduler.lookAtPath(*scheduled_, now);
            gateway_.fitWindow(*connection_, *scheduled_, window_);
        }
    });
    if (more) {
        paused_ = false;
        prepareBatch(contended);
        return true;
    }
    if (paused_)
        state_ = State::Paused;
    setBatch(1);
    batchSilent_ = false;
    const auto left = rest();
    looking_ = left < 0;
    if (left > 0 && left <= connection_->receiver().buffer() * 4 / 5) {
        watching_ = connection_->receiver().setLowWater(left) >= left;
        if (!watching_)
            connection_->receiver().setLowWater(1);
    }
    return looksAhead();
}

/// \returns how many bytes there are for the client; in a pause they stay in the kernel, so that no window opens
int64_t Ticket::take()
{
    auto &receiver = connection_->receiver();
    if (!looksAhead())
        return receiver.read(MostRead);
    return receiver.unread() - std::exchange(ahead_, receiver.unread());
}

/// What went to the client in a pause leaves the kernel, and is charged as if it came now.
void Ticket::takeAhead()
{
    if (ahead_ == 0)
        return;
    const auto bytes = connection_->receiver().read(std::exchange(ahead_, 0));
    untilFitting_ -= bytes;
    if (!scheduled_)
        return;
    gateway_.with([&](auto &scheduler) { scheduler.charge(*scheduled_, bytes, gateway_.clock_.now()); });
}

bool Ticket::maySend(const std::string_view data)
{
    if (!scheduled_)
        return true;
    const auto now = gateway_.clock_.now();
    const bool answered = exchange_.state() == Exchange::State::Answered;
    if (!exchange_.clientSays(data.data(), data.size(), now)) {
        saying_ = state_ == State::Asking || (state_ == State::Silent && !ask());
        return !saying_;
    }
    if (answered && asked() && (state_ == State::Served || state_ == State::Paused))
        gateway_.with([&](auto &scheduler) { scheduler.askedMore(*scheduled_, now); });
    return true;
}

/// Begins a new exchange. \returns whether it may go on at once
bool Ticket::ask()
{
    const auto now = gateway_.clock_.now();
    state_ = State::Asking;
    bool go = false;
    gateway_.with([&](auto &scheduler) { go = scheduler.again(*scheduled_, now); });
    if (go) {
        exchange_.begin(now);
        state_ = State::Served;
        untilFitting_ = 1;
    }
    return go;
}

void Ticket::read()
{
    if (connection_ && watching_ && paused_ && connection_->receiver().unread() >= rest()) {
        watching_ = paused_ = false;
        state_ = State::Arrived;
        reading_ = true;
        connection_->receiver().setLowWater(1);
    }
    if (state_ != State::Paused)
        takeAhead();
    if (!connection_ || !reading_ || !connection_->receiver().readable())
        return;
    const auto bytes = take();
    if (bytes == 0)
        return;
    reading_ = false;
    const auto data = took(bytes);
    if (scheduled_) {
        const auto now = gateway_.clock_.now();
        exchange_.serverSays(data, static_cast<size_t>(bytes), now);
        untilFitting_ -= bytes;
        batchRead_ = true;
        if (rest() == 0)
            setBatch(1);
        if (!looksAhead())
            gateway_.with([&](auto &scheduler) { scheduler.charge(*scheduled_, bytes, now); });
    }
    deliver(bytes);
    if (connection_)
        goOn();
}

bool Ticket::silent(const msfrs_time now)
{
    const auto patience = gateway_.scheduler_->config().patience;
    if (state_ != State::Served || exchange_.silentAt(srtt_, patience) > now)
        return false;
    if (connection_) {
        srtt_ = connection_->smoothed();
        const auto since = exchange_.silentAt(srtt_, patience);
        if (since > now || (connection_->receiver().unread() > 0 && now - since < UnreadFor))
            return false;
    }
    setBatch(1);
    batchSilent_ = false;
    readSoon();
    exchange_.end();
    state_ = State::Silent;
    return true;
}

PathSample Ticket::path(const msfrs_time now)
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

// ReadBatch

void Ticket::prepareBatch(const bool contended)
{
    int64_t bytes = 1;
    if (contended && !batchSilent_ && rest() >= BatchBytes)
        bytes = BatchBytes;
    else if (batched_ && rest() > 0)
        bytes = std::min(lowWater_, rest());
    setBatch(bytes);
}

void Ticket::setBatch(const int64_t bytes)
{
    if (connection_ && bytes != lowWater_)
        connection_->receiver().setLowWater(bytes);
    lowWater_ = bytes;
    if (bytes > 1 && !batched_)
        batchRead_ = true;
    batched_ = bytes > 1;
}

void Ticket::checkBatch()
{
    if (!batched_)
        return;
    batchSilent_ = !batchRead_;
    batchRead_ = false;
    if (batchSilent_)
        setBatch(1);
    readSoon();
}

} // namespace msfrs::sim::access
