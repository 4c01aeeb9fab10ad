/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "AccessLogEntry.h"
#include "base/AsyncCallbacks.h"
#include "base/TextException.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "error/Detail.h"
#include "errorpage.h"
#include "fde.h"
#include "globals.h"
#include "http/StatusCode.h"
#include "HttpRequest.h"
#include "msfrs/Ticket.h"
#include "time/gadgets.h"

#include <algorithm>
#include <string_view>

namespace
{

/// what people and logs are told about a verdict
struct Wording {
    const char *word; ///< for access.log; nil: no refusal
    const char *sentence; ///< for the client and cache.log
};

const Wording &
WordingOf(const Msfrs::Verdict::Kind kind)
{
    using Kind = Msfrs::Verdict::Kind;
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

Msfrs::Verdict::Kind
KindOf(const msfrs::Refusal why)
{
    using Kind = Msfrs::Verdict::Kind;
    switch (why) {
    case msfrs::Refusal::PerUser:
        return Kind::queueOfUserFull;
    case msfrs::Refusal::Total:
        return Kind::queueFull;
    case msfrs::Refusal::Admission:
        return Kind::notAdmitted;
    case msfrs::Refusal::None:
        break;
    }
    return Kind::released;
}

std::string_view
View(const SBuf &buf)
{
    return {buf.rawContent(), buf.length()};
}

} // namespace

/* Msfrs::Verdict */

const char *
Msfrs::Verdict::refusal() const
{
    return WordingOf(kind).word;
}

ErrorState *
Msfrs::Verdict::error(HttpRequest * const request, const AccessLogEntryPointer &al) const
{
    if (!refusal())
        return nullptr;
    const auto type = (kind == Kind::shuttingDown) ? ERR_SHUTTING_DOWN : ERR_MSFRS_QUEUE;
    const auto error = new ErrorState(type, Http::scServiceUnavailable, request, al);
    error->detailError(MakeNamedErrorDetail(refusal()));
    if (type == ERR_MSFRS_QUEUE) {
        error->err_msg = xstrdup(WordingOf(kind).sentence);
        if (const auto gateway = TheGateway())
            error->retryAfter = gateway->retryAfter();
    }
    return error;
}

std::ostream &
Msfrs::operator <<(std::ostream &os, const Verdict &verdict)
{
    const auto refusal = verdict.refusal();
    return os << (refusal ? refusal : "released");
}

/* Msfrs::Ticket */

Msfrs::Ticket::Ticket(HttpRequest * const request, const AccessLogEntryPointer &al, const void * const holder):
    request_(request),
    al_(al),
    holder_(holder),
    party_(Classify(request, al))
{
    const auto scheduler = TheGateway()->scheduler();
    if (!scheduler)
        return;
    const auto &config = scheduler->config();
    if (party_.cls >= config.classes.size())
        party_.cls = config.defaultClass; // the scheduler has kept an older configuration
    if (al_) {
        al_->msfrs.className = SBuf(config.classes[party_.cls].name);
        al_->msfrs.user = party_.user;
    }
}

/// \returns nil if this transaction is not scheduled
Msfrs::TicketPointer
Msfrs::Ticket::Make(HttpRequest * const request, const AccessLogEntryPointer &al,
                    const Comm::ConnectionPointer &client, const void * const holder)
{
    // somebody outside of Squid must be waiting
    if (!TheGateway() || !client || request->flags.internal || request->client_addr.isNoAddr())
        return nullptr;
    try {
        return new Ticket(request, al, holder);
    } catch (...) {
        debugs(97, DBG_IMPORTANT, "ERROR: msfrs cannot classify a request and lets it go on: " << CurrentException);
        return nullptr;
    }
}

Msfrs::Ticket::~Ticket()
{
    // Holders finish their tickets. If one has not, its place in the window must not be lost with it.
    leave();
    if (request_ && request_->msfrsTicket == this)
        request_->msfrsTicket = nullptr;
}

Msfrs::TicketPointer
Msfrs::Ticket::Hold(HttpRequest * const request, const AccessLogEntryPointer &al, const Comm::ConnectionPointer &client,
                    const void * const holder, const AsyncCallback<Verdict> &callback)
{
    const auto ticket = Make(request, al, client, holder);
    if (!ticket)
        return nullptr;

    auto why = msfrs::Refusal::None;
    const auto joined = ticket->join("hold", [&](auto &scheduler, const auto now) {
        return scheduler.hold(*ticket, ticket->party_.cls, View(ticket->party_.user), now, why);
    });
    if (!joined)
        return nullptr;

    debugs(97, 3, "class " << ticket->party_.cls << " user " << ticket->party_.user <<
           (!ticket->scheduled_ ? " refused " : ticket->served_ ? " released " : " waits ") << request->url);
    ticket->report();
    if (ticket->served_)
        return ticket; // without a wait

    ticket->held_ = true;
    ticket->callback_ = callback;
    const auto gateway = TheGateway();
    if (ticket->scheduled_)
        gateway->noteWait();
    else
        ticket->conclude(KindOf(why));
    gateway->keepTime();
    return ticket;
}

Msfrs::TicketPointer
Msfrs::Ticket::Inherit(HttpRequest * const request, const AccessLogEntryPointer &al,
                       const Comm::ConnectionPointer &client, const void * const holder)
{
    if (request->msfrsTicket) {
        request->msfrsTicket->holder_ = holder;
        return request->msfrsTicket;
    }

    const auto ticket = Make(request, al, client, holder);
    if (!ticket)
        return nullptr;

    ticket->served_ = true;
    const auto joined = ticket->join("adopt", [&](auto &scheduler, const auto now) {
        return scheduler.adopt(*ticket, ticket->party_.cls, View(ticket->party_.user), now);
    });
    return joined ? ticket : nullptr;
}

/// makes us known to the scheduler
/// \param job returns the scheduled request or nil
/// \returns whether the scheduler did its part
template <class Job>
bool
Msfrs::Ticket::join(const char * const what, const Job job)
{
    const auto gateway = TheGateway();
    const auto joined = gateway->attempt(what, [&](auto &scheduler, const auto now) {
        scheduled_ = job(scheduler, now);
    });
    if (scheduled_) {
        place_ = gateway->enlist(*this);
        request_->msfrsTicket = this;
    }
    return joined;
}

/// makes the scheduler forget us
void
Msfrs::Ticket::leave()
{
    batch_.stop();
    if (!scheduled_)
        return;
    report();
    const auto scheduled = scheduled_;
    if (!scheduled)
        return; // the scheduler failed to report
    scheduled_ = nullptr;
    const auto gateway = TheGateway();
    gateway->forget(place_);
    gateway->attempt("done", [scheduled](auto &scheduler, const auto now) {
        scheduler.done(scheduled, now);
    });
}

void
Msfrs::Ticket::watch(const Comm::ConnectionPointer &client, const CbcPointer<ConnStateData> &manager)
{
    if (!callback_)
        return;
    // peeked at, the client's connection belongs to the TLS library
    const auto mode = request_->flags.sslPeek ? ClientWatch::Mode::look : ClientWatch::Mode::keep;
    watch_ = new ClientWatch(client, manager, mode);
    AsyncJob::Start(watch_);
}

void
Msfrs::Ticket::charge(const int64_t bytes)
{
    if (!scheduled_ || bytes <= 0)
        return;
    untilWidening_ -= bytes;
    batch_.noteRead(bytes);
    const auto gateway = TheGateway();
    gateway->attempt("charge", [&](auto &scheduler, const auto now) {
        scheduler.charge(*scheduled_, bytes, now);
    });
    gateway->keepTime();
}

bool
Msfrs::Ticket::mayRead(const Comm::ConnectionPointer &server, const int64_t rest, const Comm::ConnectionPointer &client)
{
    thaw(server, frozen_[0]);
    thaw(client, frozen_[1]);

    if (!scheduled_ || restArrived_)
        return true;

    if (Gateway::NearBy(*server)) {
        leave();
        return true;
    }

    if (served_) {
        auto more = true, contended = false;
        TheGateway()->attempt("readMore", [&](auto &scheduler, const auto now) {
            if (resumed_) // what came during the pause has had its time on the link
                scheduler.allowMore(*scheduled_, ArrivalWatch::Arrived(*server));
            resumed_ = false;
            more = scheduler.readMore(*scheduled_, now);
            contended = scheduler.contended();
            // not before we have read: Linux before 6.7 takes a window that is shut just now for all there may be
            if (more && untilWidening_ <= 0) {
                untilWidening_ = std::max<int64_t>(scheduler.config().quantum, 1);
                TheGateway()->widenReceiveBuffer(*server, *scheduled_);
            }
        });
        if (more) {
            batch_.prepare(server, rest, contended);
            return true;
        }
        served_ = false;
        batch_.stop();
        debugs(97, 5, "pause " << server);
        if (rest > 0)
            arrivals_.start(server, rest, *this);
    }

    freeze(server, frozen_[0]);
    freeze(client, frozen_[1]);
    return false;
}

/// stops a timeout, as the peer is not to blame for our pause
void
Msfrs::Ticket::freeze(const Comm::ConnectionPointer &conn, Frozen &frozen)
{
    if (!Comm::IsConnOpen(conn))
        return;
    auto &deadline = fd_table[conn->fd].timeout;
    if (deadline <= 0)
        return;
    frozen.conn = conn;
    frozen.left = std::max<time_t>(deadline - squid_curtime, 0);
    deadline = 0; // and the handler stays
}

/// lets a timeout run again, unless somebody has set it anew meanwhile
void
Msfrs::Ticket::thaw(const Comm::ConnectionPointer &conn, Frozen &frozen)
{
    if (!frozen.conn)
        return;
    if (frozen.conn == conn && Comm::IsConnOpen(conn)) {
        auto &deadline = fd_table[conn->fd].timeout;
        if (deadline == 0)
            deadline = squid_curtime + frozen.left;
    }
    frozen.conn = nullptr;
}

void
Msfrs::Ticket::finish(const void * const holder)
{
    if (holder_ != holder)
        return;
    const Pointer guard(this); // we may be giving up the last reference
    holder_ = nullptr;
    leave();
    callback_.release();
    ClientWatch::Stop(watch_);
    resume(); // nobody should wait, but if somebody does, for nothing
    if (request_->msfrsTicket == this)
        request_->msfrsTicket = nullptr;
    request_ = nullptr;
    al_ = nullptr;
}

void
Msfrs::Ticket::release()
{
    batch_.stop();
    scheduled_ = nullptr;
    served_ = true;
    conclude(shutting_down ? Verdict::Kind::shuttingDown : Verdict::Kind::released);
    resume();
}

void
Msfrs::Ticket::granted()
{
    served_ = true;
    untilWidening_ = 1;
    resumed_ = resume_ != nullptr;
    conclude(Verdict::Kind::released);
    resume();
}

void
Msfrs::Ticket::noteRestArrived()
{
    if (!resume_)
        return; // our turn has come at the same time
    restArrived_ = true;
    resume();
}

void
Msfrs::Ticket::expired()
{
    conclude(Verdict::Kind::waitedTooLong);
}

void
Msfrs::Ticket::dropped()
{
    conclude(Verdict::Kind::notAdmitted);
}

/// ends the wait in the queue, if there is one
void
Msfrs::Ticket::conclude(const Verdict::Kind kind)
{
    if (!callback_)
        return;
    ClientWatch::Stop(watch_);
    watch_ = nullptr;
    callback_.answer().kind = kind;
    ScheduleCallHere(callback_.release());
    if (const auto word = WordingOf(kind).word) {
        if (al_)
            al_->msfrs.refusal = word;
        if (const auto gateway = TheGateway())
            gateway->noteRefusal(WordingOf(kind).sentence, party_);
    }
}

/// ends a pause, if there is one
void
Msfrs::Ticket::resume()
{
    arrivals_.stop();
    if (!resume_)
        return;
    const auto call = resume_;
    resume_ = nullptr;
    ScheduleCallHere(call);
}

void
Msfrs::Ticket::report() const noexcept
{
    if (!al_ || !scheduled_)
        return;
    auto &log = al_->msfrs;
    TheGateway()->attempt("trace", [&](auto &scheduler, const auto now) {
        const auto trace = scheduler.trace(*scheduled_, now);
        if (!trace.className.empty()) // it may have changed at reconfiguration
            log.className = SBuf(trace.className);
        log.firstWait = trace.firstWait;
        log.totalWait = trace.totalWait;
        log.bytes = trace.bytes;
        log.quanta = trace.quanta;
        log.window = trace.w;
        log.limit = trace.wplus;
    });
}
