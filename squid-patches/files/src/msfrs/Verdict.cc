/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "AccessLogEntry.h"
#include "error/Detail.h"
#include "errorpage.h"
#include "http/StatusCode.h"
#include "HttpRequest.h"
#include "msfrs/Uplink.h"
#include "msfrs/Verdict.h"

#include <algorithm>
#include <ostream>

namespace msfrs::squid
{

namespace
{

/// how a verdict is reported to clients and in logs
struct Wording {
    const char *word; ///< for access.log; nil: no refusal
    const char *sentence; ///< for the client and cache.log
};

const Wording &
WordingOf(const Verdict::Kind kind)
{
    using Kind = Verdict::Kind;
    static const Wording released = {nullptr, ""};
    static const Wording queueOfUserFull = {
        "MSFRS_USER_QUEUE_FULL", "Too many requests of yours are already waiting for their turn."
    };
    static const Wording queueFull = {
        "MSFRS_QUEUE_FULL", "Too many requests of all users are waiting for their turn."
    };
    static const Wording notAdmitted = {
        "MSFRS_NOT_ADMITTED", "The connection to the Internet is too busy to take another request."
    };
    static const Wording waitedTooLong = {
        "MSFRS_WAITED_TOO_LONG", "The request has waited for its turn as long as requests may wait here."
    };
    static const Wording shuttingDown = {"MSFRS_SHUTTING_DOWN", "This gateway is shutting down."};

    switch (kind) {
    case Kind::queueOfUserFull:
        return queueOfUserFull;
    case Kind::queueFull:
        return queueFull;
    case Kind::notAdmitted:
        return notAdmitted;
    case Kind::waitedTooLong:
        return waitedTooLong;
    case Kind::shuttingDown:
        return shuttingDown;
    case Kind::released:
        break;
    }
    return released;
}

constexpr msfrs_time Second = 1'000'000'000;

} // namespace

Verdict::Kind
Verdict::KindOf(const Refusal why)
{
    switch (why) {
    case Refusal::PerUser:
        return Kind::queueOfUserFull;
    case Refusal::Total:
        return Kind::queueFull;
    case Refusal::Admission:
        return Kind::notAdmitted;
    case Refusal::None:
        break;
    }
    return Kind::released;
}

const char *
Verdict::refusal() const
{
    return WordingOf(kind).word;
}

const char *
Verdict::sentence() const
{
    return WordingOf(kind).sentence;
}

ErrorState *
Verdict::error(HttpRequest * const request, const AccessLogEntryPointer &al) const
{
    if (!refusal())
        return nullptr;
    const auto type = (kind == Kind::shuttingDown) ? ERR_SHUTTING_DOWN : ERR_MSFRS_QUEUE;
    const auto error = new ErrorState(type, Http::scServiceUnavailable, request, al);
    error->detailError(MakeNamedErrorDetail(refusal()));
    if (type == ERR_MSFRS_QUEUE) {
        error->err_msg = xstrdup(sentence());
        if (const auto gateway = TheGateway()) { // by then, all requests that wait now have been served or refused
            const auto maxWait = gateway->uplinks().front()->config().maxWait; // that of all
            error->retryAfter = std::max<msfrs_time>((maxWait + Second - 1) / Second, 1);
        }
    }
    return error;
}

std::ostream &
operator <<(std::ostream &os, const Verdict &verdict)
{
    const auto refusal = verdict.refusal();
    return os << (refusal ? refusal : "released");
}

} // namespace msfrs::squid
