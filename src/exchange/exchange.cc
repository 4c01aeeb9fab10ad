// SPDX-License-Identifier: GPL-2.0-or-later
#include "exchange/exchange.h"

#include <algorithm>
#include <cassert>

namespace msfrs {

namespace {

constexpr msfrs_time Ms = 1'000'000;

/// How long a server may say nothing. Measured over HTTP/2 in TLS with round trips of 12 to 296 ms: 50 and 200 ms
/// after a record did equally well, so little hangs on finding where records end.
constexpr msfrs_time AfterRecord = 50 * Ms;
constexpr msfrs_time Within = 200 * Ms;       ///< or two round trips
constexpr msfrs_time Connecting = 1100 * Ms;  ///< a SYN that is lost comes again after a second

constexpr int64_t Upload = 16384;             ///< bytes unanswered: more than any request without a body
constexpr msfrs_time UploadPause = 500 * Ms;  ///< after which an upload is over

/// So much may be said unasked each second, and at once: a line of a chat, a notification, TLS session tickets.
constexpr int64_t Allowance = 1500;

} // namespace

void Exchange::begin(const msfrs_time now)
{
    state_ = State::Asked;
    since_ = now;
}

void Exchange::resume(const msfrs_time now)
{
    since_ = std::max(since_, now);
}

bool Exchange::clientSays(const char *const data, const size_t size, const msfrs_time now)
{
    const bool request = client_.follow(data, size) == TlsRecords::Content::Request;
    if (state_ == State::Uploading && now - since_ > UploadPause)
        state_ = State::Over;
    if (!request)
        return true;
    if (state_ == State::Over) {
        unanswered_ = static_cast<int64_t>(size);
        return false;
    }
    unanswered_ += static_cast<int64_t>(size);
    since_ = now;
    state_ = unanswered_ > Upload ? State::Uploading : State::Asked;
    return true;
}

void Exchange::serverSays(const char *const data, const size_t size, const msfrs_time now)
{
    assert(size > 0);
    followed_ = data != nullptr;
    const bool answer = !data || server_.follow(data, size) == TlsRecords::Content::Request;
    if (state_ == State::Asked || state_ == State::Answered) {
        state_ = State::Answered;
        since_ = now;
        unanswered_ = 0;
    } else if (answer) {
        unasked_ = Allowance - allowance(now) + static_cast<int64_t>(size);
        unaskedAt_ = now;
    }
}

int64_t Exchange::allowance(const msfrs_time now) const
{
    const auto seconds = static_cast<double>(std::max<msfrs_time>(now - unaskedAt_, 0)) * 1e-9;
    const auto madeUp = static_cast<double>(Allowance) * seconds;
    return Allowance - static_cast<int64_t>(std::max(static_cast<double>(unasked_) - madeUp, 0.0));
}

msfrs_time Exchange::silentAt(const msfrs_time srtt, const msfrs_time patience) const
{
    switch (state_) {
    case State::Over:
    case State::Uploading:
        break;
    case State::Asked:
        return since_ + std::max(patience, srtt > 0 ? 3 * srtt : Connecting);
    case State::Answered:
        return since_ + (mayBeComplete() ? AfterRecord : std::max(Within, 2 * srtt));
    }
    return 0;
}

void Exchange::end()
{
    if (state_ != State::Uploading)
        state_ = State::Over;
    unasked_ = 0;
}

} // namespace msfrs
