// SPDX-License-Identifier: GPL-2.0-or-later
#include "session/session.h"

#include <algorithm>
#include <utility>

namespace msfrs {

Refusal Session::hold(RequestScheduler &scheduler, const uint32_t cls, const std::string_view user,
                      const msfrs_time now, const int64_t expected, const msfrs_time since)
{
    auto why = Refusal::None;
    patience_ = scheduler.config().patience;
    state_ = State::Waiting;
    request_ = scheduler.hold(*this, cls, user, now, why, expected, since);
    if (!request_)
        state_ = State::Refused;
    return why;
}

void Session::adopt(RequestScheduler &scheduler, const uint32_t cls, const std::string_view user, const msfrs_time now)
{
    patience_ = scheduler.config().patience;
    state_ = State::Served;
    exchange_.begin(now);
    request_ = scheduler.adopt(*this, cls, user, now);
}

bool Session::mayRead(RequestScheduler &scheduler, const int64_t rest, const int64_t stated, const msfrs_time now)
{
    if (free())
        return true;
    if (rest >= 0) // first, since the order depends on it
        scheduler.expect(*request_, stated, now);
    if (state_ == State::Silent || state_ == State::Asking) {
        if (!scheduler.owes(*request_) && exchange_.mayGoOnUnasked(now))
            return true;
        return state_ == State::Silent && ask(scheduler, now);
    }
    if (state_ != State::Served)
        return false;

    patience_ = scheduler.config().patience;
    chargeAhead(scheduler, now);
    if (!scheduler.readMore(*request_, now, exchange_.mayBeComplete() && server_.unread() == 0)) {
        state_ = State::Paused;
        stopBatch();
        holder_.paused(rest, least());
        return free();
    }
    const auto quantum = scheduler.config().quantum;
    if (window_.due(quantum)) {
        scheduler.lookAtPath(*request_, now);
        if (const auto buffered = server_.bufferedWindow(window_.bound(), quantum))
            window_.fit(server_, buffered, scheduler.receiveBuffer(*request_, scheduler.baseRoundTrip(server_.key())));
    }
    int64_t decoding = 0;
    if (!server_.plain()) { // TLS keeps the bytes of a record until it has all, and a record may be a whole quantum
        decoding = TlsRecords::Longest; // it may have read some already: so many fewer may come
        window_.came(1);                // it has read some by the next call, when the window can be adjusted
    }
    batch_.prepare((rest >= 0 ? rest : exchange_.recordLeft()) - decoding, scheduler.contended());
    setLowWater();
    return true;
}

void Session::charge(RequestScheduler &scheduler, const int64_t bytes, const char *const data, const msfrs_time now)
{
    if (!request_ || bytes <= 0)
        return;
    exchange_.serverSays(data, static_cast<size_t>(bytes), now);
    if (server_.readsAhead()) {
        server_.cameAhead(bytes, least(), now);
        return;
    }
    unreadUntil_ = 0;
    window_.came(bytes);
    batch_.noteRead(bytes);
    if (!data) // of a tunnel, the next read sets it
        setLowWater();
    scheduler.charge(*request_, bytes, now);
}

bool Session::maySend(RequestScheduler &scheduler, const std::string_view data, const msfrs_time now)
{
    if (!request_)
        return true;
    const bool answered = exchange_.state() == Exchange::State::Answered;
    if (!exchange_.clientSays(data.data(), data.size(), now))
        return state_ != State::Asking && ask(scheduler, now);
    if (answered && asked() && (state_ == State::Served || state_ == State::Paused))
        scheduler.askedMore(*request_, now);
    return true;
}

/// Begins a new exchange. \returns whether it may continue at once
bool Session::ask(RequestScheduler &scheduler, const msfrs_time now)
{
    if (state_ != State::Silent)
        return true; // the exchange and the scheduler disagree: the client must not wait for that
    state_ = State::Asking;
    if (!scheduler.again(*request_, now))
        return false;
    exchange_.begin(now);
    state_ = State::Served;
    window_.beginQuantum();
    return true;
}

void Session::arrived()
{
    if (state_ == State::Paused)
        state_ = State::Arrived;
}

void Session::checkBatch()
{
    batch_.check();
    setLowWater();
}

void Session::finish(RequestScheduler &scheduler, const msfrs_time now)
{
    stopBatch();
    state_ = State::Free;
    chargeAhead(scheduler, now);
}

void Session::end(RequestScheduler &scheduler, const msfrs_time now)
{
    if (const auto ended = std::exchange(request_, nullptr))
        scheduler.done(ended, now);
}

void Session::release()
{
    stopBatch();
    state_ = State::Free;
    request_ = nullptr;
}

/// Bytes read during a pause are charged when the pause is over.
void Session::chargeAhead(RequestScheduler &scheduler, const msfrs_time now)
{
    const auto ahead = server_.takeAhead();
    window_.came(ahead);
    if (request_ && ahead > 0)
        scheduler.charge(*request_, ahead, now);
}

/// Bytes of which the client can use something.
int64_t Session::least() const { return std::max<int64_t>(exchange_.recordLeft(), 1); }

void Session::setLowWater()
{
    if (batch_.lowWater() == lowWater_)
        return;
    lowWater_ = batch_.lowWater();
    server_.setLowWater(lowWater_);
}

void Session::stopBatch()
{
    batch_.stop();
    setLowWater();
}

void Session::granted()
{
    const auto now = holder_.now();
    if (state_ == State::Paused || state_ == State::Arrived)
        exchange_.resume(now);
    else
        exchange_.begin(now);
    if (state_ != State::Arrived)
        state_ = State::Served;
    window_.beginQuantum();
    holder_.granted();
}

void Session::expired()
{
    state_ = State::Refused;
    holder_.expired();
}

void Session::dropped(const Refusal why)
{
    state_ = State::Refused;
    holder_.dropped(why);
}

bool Session::silent(const msfrs_time now)
{
    if (state_ == State::Arrived) // nothing more will come over the link, however slowly the client reads
        return true;
    if (state_ != State::Served || now < unreadUntil_ || exchange_.silentAt(srtt_, patience_) > now)
        return false;
    if (server_.open()) {
        srtt_ = server_.roundTrip();
        const auto since = exchange_.silentAt(srtt_, patience_);
        if (since > now)
            return false;
        // A server with unread bytes in the kernel is not silent, but a client that does not read cannot keep the slot.
        if (now - since < Exchange::Pause && server_.unread() > 0) {
            unreadUntil_ = since + Exchange::Pause;
            return false;
        }
    }
    stopBatch();
    exchange_.end();
    state_ = State::Silent;
    return true;
}

} // namespace msfrs
