// SPDX-License-Identifier: GPL-2.0-or-later
#include "exchange/exchange.h"

#include <algorithm>
#include <cassert>

namespace msfrs {

/// How long a server may be silent after a record. Measured over HTTP/2 in TLS with round trips of 12 to 296 ms: 50 and
/// 200 ms did equally well, so little depends on finding record boundaries.
constexpr msfrs_time AfterRecord = 50'000'000;
/// A retransmission may take a second (RFC 6298): of a SYN, of the rest of an upload.
constexpr msfrs_time Lost = 2 * Exchange::Pause;

constexpr int64_t Upload = 16384; ///< bytes unanswered: more than any request without a body

/// Unsolicited bytes allowed per second, and at once: a line of a chat, a notification, TLS session tickets.
constexpr int64_t Allowance = 1500;

/// Bytes of an upload for each byte that its server may send beside the allowance. Servers acknowledge an upload with
/// WINDOW_UPDATEs; Go's send 70 bytes for each 4 KB. With half of it those would need turns, so uploads would wait
/// for the downlink.
constexpr int64_t Acknowledged = 32;

void Exchange::begin(const msfrs_time now)
{
    state_ = State::Asked;
    since_ = now;
    expectGreeting(now); // the end of a handshake may have been held
}

void Exchange::resume(const msfrs_time now)
{
    since_ = std::max(since_, now);
}

bool Exchange::clientSays(const char *const data, const size_t size, const msfrs_time now)
{
    const bool request = client_.follow(data, size) != TlsRecords::Content::Housekeeping;
    if (firstWord_ == 0)
        firstWord_ = now;
    if (state_ == State::Uploading && now - since_ > Lost)
        state_ = State::Over;
    if (!request)
        return true;
    if (state_ == State::Over) {
        unanswered_ = static_cast<int64_t>(size);
        return false;
    }
    expectGreeting(now);
    unanswered_ += static_cast<int64_t>(size);
    since_ = now;
    state_ = unanswered_ > Upload ? State::Uploading : State::Asked;
    if (state_ == State::Uploading)
        unasked_ = std::max<int64_t>(unasked_ - static_cast<int64_t>(size) / Acknowledged, 0);
    return true;
}

/// The client's bytes are forwarded to the server. After the client's Finished the greeting takes as long as the first
/// answer did, or longer if a queue has grown since, and what a server needs to produce it. Later bytes are an answer.
void Exchange::expectGreeting(const msfrs_time now)
{
    if (!client_.finished() || greetingUntil_ != 0)
        return;
    server_.otherFinished();
    greetingUntil_ = now + (firstAnswer_ ? 2 * (firstAnswer_ - firstWord_) + AfterRecord : Lost);
}

void Exchange::serverSays(const char *const data, const size_t size, const msfrs_time now)
{
    assert(size > 0);
    const auto content = serverContent(data, size, now);
    const bool answer = content == TlsRecords::Content::Request ||
                        (content == TlsRecords::Content::Greeting && !client_.saidMore());
    if (state_ == State::Answered || (state_ == State::Asked && answer)) {
        state_ = State::Answered;
        since_ = now;
        unanswered_ = 0;
    } else if (state_ != State::Asked) { // housekeeping, too: only its size identifies it
        unasked_ = Allowance - allowance(now) + static_cast<int64_t>(size);
        unaskedAt_ = now;
    }
}

TlsRecords::Content Exchange::serverContent(const char *const data, const size_t size, const msfrs_time now)
{
    followed_ = data != nullptr;
    if (!data)
        return TlsRecords::Content::Request;
    if (firstAnswer_ == 0 && firstWord_ != 0)
        firstAnswer_ = now;
    if (greetingUntil_ != 0 && now > greetingUntil_)
        server_.endGreeting();
    return server_.follow(data, size);
}

int64_t Exchange::allowance(const msfrs_time now) const
{
    const auto seconds = static_cast<double>(std::max<msfrs_time>(now - unaskedAt_, 0)) * 1e-9;
    const auto madeUp = static_cast<double>(Allowance) * seconds;
    return Allowance - static_cast<int64_t>(std::max(static_cast<double>(unasked_) - madeUp, 0.0));
}

msfrs_time Exchange::silentAt(const msfrs_time srtt, const msfrs_time patience) const
{
    if (state_ == State::Over || state_ == State::Uploading)
        return 0;
    if (mayBeComplete())
        return since_ + AfterRecord;
    const auto least = state_ == State::Answered ? Pause : srtt > 0 ? patience : std::max(patience, Lost);
    return since_ + std::max(least, 3 * srtt);
}

void Exchange::end()
{
    if (state_ != State::Uploading)
        state_ = State::Over;
    unasked_ = 0;
}

} // namespace msfrs
