// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The turns of a response: its stated size, its charges, the end of its quantum, and later exchanges.
#include "engine/request_state.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace msfrs {

constexpr int64_t Unsaid = 4096; ///< bytes beyond the stated size that are ignored: headers, an FTP server's replies
constexpr int64_t MostExpected = int64_t(1) << 60; ///< bytes: a larger stated size is ignored, so that sums fit

int64_t RequestScheduler::Impl::Believable(const int64_t bytes)
{
    return bytes >= 0 && bytes <= MostExpected ? bytes : MSFRS_UNKNOWN;
}

void RequestScheduler::expect(Request &r, const int64_t remaining, const msfrs_time now)
{
    const auto known = Impl::Believable(remaining);
    const auto all = r.bytes + known;
    if (remaining > known || all - Unsaid > r.stated)
        r.stated = -1;
    else if (known != MSFRS_UNKNOWN)
        r.stated = std::min(r.stated, all);
    r.remaining = r.stated < 0 ? MSFRS_UNKNOWN : known;
    if (!r.item)
        return;
    impl_->engine->expect(*r.item, r.remaining, now);
    impl_->book(r, now);
}

void RequestScheduler::expectAtLeast(Request &r, const int64_t remaining, const msfrs_time now)
{
    const auto known = Impl::Believable(remaining);
    r.remaining = known > r.bytes ? known : MSFRS_UNKNOWN;
    if (r.item)
        impl_->engine->expect(*r.item, r.remaining, now);
}

void RequestScheduler::charge(Request &r, const int64_t bytes, const msfrs_time now)
{
    auto &self = *impl_;
    assert(bytes >= 0);
    self.meter->payload(bytes);
    self.chargedBytes += bytes;
    r.bytes += bytes;
    if (r.remaining != MSFRS_UNKNOWN)
        r.remaining = r.remaining >= bytes ? r.remaining - bytes : MSFRS_UNKNOWN;
    r.arrivals.arrived(bytes, now, self.roundTrip(r.base));
    if (r.item && bytes > 0)
        self.law->arrived(r, bytes);
    r.stats->bytes += static_cast<uint64_t>(bytes);
    r.stats->unfinished += static_cast<double>(bytes) * Seconds(std::max<msfrs_time>(now - r.askedAt, 0));
    if (r.state == Request::State::Served || r.state == Request::State::Early) {
        if (r.state == Request::State::Served)
            self.engine->charge(*r.item, 0, bytes, now);
        else
            self.engine->chargeQueued(*r.item, bytes, now);
        r.quantumLeft -= bytes;
        self.book(r, now);
        if (self.blocked && self.law->opensByBytes())
            self.pump(now);
    } else if (r.state == Request::State::Paused) {
        self.engine->chargeFlow(*r.item->flow, bytes, now);
    } else if (r.state != Request::State::Refused) {
        self.owe(self.flowOf(r), bytes, now);
    }
}

bool RequestScheduler::readMore(Request &r, const msfrs_time now, const bool complete)
{
    auto &self = *impl_;
    assert(r.state == Request::State::Served || r.state == Request::State::Early);
    if (r.state == Request::State::Early)
        return r.quantumLeft > 0 || !self.pause(r, now);
    const bool early = r.quantumLeft > 0;
    if (self.config.quantum == 0 || (early && !self.law->queuesEarly(r, complete)))
        return true;
    if (r.bytes - r.bytesBefore >= HeldPiece)
        r.countHeld(now);
    if (complete && !std::exchange(r.beyond, true))
        return true;
    // A response with no competitors continues, unless more are in service than the window allows.
    self.look(now);
    if (self.engine->totals().queued.items == 0 && !self.wanted() && self.law->within()) {
        r.quantumLeft = std::max<int64_t>(r.quantumLeft, 0) + self.config.quantum;
        r.beyond = false;
        self.book(r, now);
        ++r.quanta;
        ++r.stats->quanta;
        return true;
    }
    if (early) {
        self.queueAgain(r, Request::State::Early, now);
        self.learn(r); // including bytes in flight
        self.pump(now);
        return true;
    }
    self.learn(r);
    if (r.askedMore)
        self.renew(r, now);
    else
        self.queueAgain(r, Request::State::Paused, now);
    return self.goOn(r, now);
}

/// \param state Early or Paused
void RequestScheduler::Impl::queueAgain(Request &r, const Request::State state, const msfrs_time now)
{
    r.waitingSince = now;
    change(r, state, now);
    engine->expect(*r.item, r.remaining, now);
    engine->requeue(*r.item, estimate(false, r.remaining).data(), now, std::max<int64_t>(r.quantumLeft, 0));
}

/// The rest of its turn has arrived before its next one.
/// \returns true: it waits from now on
bool RequestScheduler::Impl::pause(Request &r, const msfrs_time now)
{
    r.waitingSince = now;
    change(r, Request::State::Paused, now);
    if (!r.askedMore)
        return true;
    renew(r, now);
    return !goOn(r, now);
}

void RequestScheduler::askedMore(Request &r, const msfrs_time now)
{
    auto &self = *impl_;
    if (r.state == Request::State::Served || r.state == Request::State::Early) {
        self.expectAnswer(r, now);
        self.book(r, now);
        r.askedMore = !r.first; // a request in a first turn, as after a TLS handshake, is what that turn is for
    } else if (r.state == Request::State::Paused) {
        self.renew(r, now);
        self.pump(now);
    }
}

/// Makes it wait with a fresh item. The new item comes before the old one leaves, so that neither class nor user seems
/// to have been idle.
void RequestScheduler::Impl::renew(Request &r, const msfrs_time now)
{
    const auto old = r.item;
    const bool inService = r.state == Request::State::Served;
    r.totalWait = r.held(now); // if it was paused, a new wait begins
    queueFresh(r, *old->flow, now);
    if (inService)
        engine->done(*old, now);
    else
        engine->remove(*old, now, MSFRS_GONE);
}

/// From now on it waits with a fresh item of its own; no AQM is asked.
void RequestScheduler::Impl::queueFresh(Request &r, msfrs_flow &flow, const msfrs_time now)
{
    r.item = engine->adopt(flow, estimate(true, r.remaining).data(), &r, now, 0, false, r.remaining);
    touch(flow);
    r.waitingSince = now;
    change(r, Request::State::Queued, now);
}

/// \returns whether a request that was just queued may continue at once
bool RequestScheduler::Impl::goOn(Request &r, const msfrs_time now)
{
    if (pumping)
        return false; // called from inside granted(): the pump that called it continues for this one too
    asking = &r;
    answered = false;
    pump(now);
    asking = nullptr;
    return answered;
}

bool RequestScheduler::again(Request &r, const msfrs_time now)
{
    auto &self = *impl_;
    assert(r.state == Request::State::Resting);
    r.askedAt = now;
    ++r.exchanges;
    ++r.stats->exchanges;
    self.queueFresh(r, self.flowOf(r), now);
    return self.goOn(r, now);
}

bool RequestScheduler::contended() const { return impl_->engine->totals().queued.items > 0 || impl_->wanted(); }

} // namespace msfrs
