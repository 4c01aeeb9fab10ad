/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "AccessLogEntry.h"
#include "base/AsyncCallbacks.h"
#include "base/TextException.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "globals.h"
#include "HttpRequest.h"
#include "msfrs/Excess.h"
#include "msfrs/Gateway.h"
#include "msfrs/LinkDirectory.h"
#include "msfrs/Ticket.h"

namespace msfrs::squid
{

namespace
{

/// Bytes. A request for a larger stored response will most likely be answered with 304: its size predicts nothing.
constexpr int64_t Little = 4096;

} // namespace

Ticket::Ticket(HttpRequest * const request, const AccessLogEntryPointer &al, const void * const holder):
    request_(request),
    al_(al),
    holder_(holder),
    flow_(Classify(request, al)),
    reading_(TheGateway()->readings)
{
    if (const auto excess = TheExcessPort())
        excess->flows.note(ClientAddress(*request), flow_);
    const auto scheduler = TheGateway()->scheduler();
    if (!scheduler)
        return;
    const auto &config = scheduler->config();
    flow_.cls = flow_.classIn(config);
    cls_ = TheGateway()->quotas.classOf(flow_.cls, flow_.name());
    NoteRequest(config, ClientAddress(*request), flow_.cls, flow_.name(), Gateway::Now());
    if (al_) {
        al_->msfrs.className = SBuf(config.classes[cls_].name);
        al_->msfrs.overQuota = overQuota(config);
        al_->msfrs.user = flow_.user;
    }
}

/// \returns nil if this transaction is not scheduled
TicketPointer
Ticket::Make(HttpRequest * const request, const AccessLogEntryPointer &al,
             const Comm::ConnectionPointer &client, const void * const holder)
{
    // a client outside of Squid must be waiting
    if (!TheGateway() || !client || request->flags.internal || request->client_addr.isNoAddr())
        return nullptr;
    try {
        return new Ticket(request, al, holder);
    } catch (...) {
        debugs(97, DBG_IMPORTANT, "ERROR: msfrs cannot classify a request and lets it go on: " << CurrentException);
        return nullptr;
    }
}

Ticket::~Ticket()
{
    // Holders finish their tickets. If one has not, its slot must not be lost with it.
    leave();
}

TicketPointer
Ticket::Hold(HttpRequest * const request, const AccessLogEntryPointer &al, const Comm::ConnectionPointer &client,
             const void * const holder, const AsyncCallback<Verdict> &callback)
{
    const auto ticket = Make(request, al, client, holder);
    if (!ticket)
        return nullptr;

    const auto expected = request->msfrsExpected <= Little ? request->msfrsExpected : -1;
    auto why = Refusal::None;
    const auto joined = ticket->join("hold", [&](auto &scheduler, const auto now) {
        why = ticket->session_.hold(scheduler, ticket->cls_, ticket->flow_.name(), now, expected);
    });
    if (!joined)
        return nullptr;

    const auto refused = !ticket->session_.request();
    debugs(97, 3, "class " << ticket->cls_ << " user " << ticket->flow_.user <<
           (refused ? " refused " : ticket->held() ? " waits " : " released ") << request->url);
    ticket->report();
    if (!ticket->held())
        return ticket; // without a wait

    ticket->callback_ = callback;
    const auto gateway = TheGateway();
    if (refused)
        ticket->conclude(Verdict::KindOf(why));
    else
        gateway->noteWait();
    gateway->keepTime();
    return ticket;
}

TicketPointer
Ticket::Inherit(HttpRequest * const request, const AccessLogEntryPointer &al,
                const Comm::ConnectionPointer &client, const void * const holder)
{
    if (request->msfrsTicket) {
        request->msfrsTicket->holder_ = holder;
        return request->msfrsTicket;
    }

    const auto ticket = Make(request, al, client, holder);
    if (!ticket)
        return nullptr;

    const auto joined = ticket->join("adopt", [&](auto &scheduler, const auto now) {
        ticket->session_.adopt(scheduler, ticket->cls_, ticket->flow_.name(), now);
    });
    return joined ? ticket : nullptr;
}

int
Ticket::InitialReceiveBuffer(const Comm::Connection &server)
{
    const auto gateway = TheGateway();
    const auto scheduler = gateway ? gateway->scheduler() : nullptr;
    return scheduler && !ServerReading::NearBy(server) ? gateway->readings.buffers.initial(server, *scheduler) : 0;
}

/// makes us known to the scheduler
/// \param job which may call granted()
/// \returns whether the scheduler succeeded
template <class Job>
bool
Ticket::join(const char * const what, const Job job)
{
    const auto gateway = TheGateway();
    const auto joined = gateway->attempt(what, job);
    if (session_.request()) {
        place_ = gateway->enlist(*this);
        request_->msfrsTicket = this;
    }
    if (!joined)
        session_.release();
    return joined;
}

/// makes the scheduler forget us
void
Ticket::leave()
{
    reading_.endPause();
    if (!session_.request()) {
        session_.release();
        return;
    }
    const auto gateway = TheGateway();
    gateway->attempt("finish", [this](auto &scheduler, const auto now) {
        session_.finish(scheduler, now);
    });
    report();
    if (!session_.request())
        return; // the scheduler has failed
    gateway->forget(place_);
    gateway->attempt("done", [this](auto &scheduler, const auto now) {
        session_.end(scheduler, now);
    });
}

void
Ticket::watch(const Comm::ConnectionPointer &client, const CbcPointer<ConnStateData> &manager)
{
    if (!callback_)
        return;
    // a connection that is peeked at is read by the TLS library
    const auto mode = request_->flags.sslPeek ? ClientWatch::Mode::look : ClientWatch::Mode::keep;
    watch_ = new ClientWatch(client, manager, mode);
    AsyncJob::Start(watch_);
}

void
Ticket::charge(const int64_t bytes, const char * const data)
{
    if (!session_.request() || bytes <= 0)
        return;
    const auto gateway = TheGateway();
    gateway->attempt("charge", [&](auto &scheduler, const auto now) {
        session_.charge(scheduler, bytes, data, now);
    });
    if (gateway->quotas.charge(cls_, flow_.name(), bytes))
        gateway->moveByQuota();
    gateway->keepTime();
}

/// \param question to the session
/// \returns the answer; true if the scheduler fails and releases us
template <class Question>
bool
Ticket::ask(const char * const what, const Question question)
{
    const auto gateway = TheGateway();
    auto may = true;
    gateway->attempt(what, [&](auto &scheduler, const auto now) {
        may = question(scheduler, now);
    });
    if (may || !session_.request())
        return true;
    gateway->noteWait();
    return false;
}

bool
Ticket::mayRead(const Comm::ConnectionPointer &server, const int64_t rest, const Comm::ConnectionPointer &client)
{
    reading_.thaw(server, client);

    if (session_.free())
        return true;

    if (ServerReading::NearBy(*server)) {
        leave();
        return true;
    }

    reading_.setServer(server);
    const auto may = ask("read", [&](auto &scheduler, const auto now) {
        return session_.mayRead(scheduler, rest, rest, now);
    });
    if (!may || send_) // a client whose data is held back is not to blame, nor is the server that waits for it
        reading_.freeze(client);
    return may;
}

void
Ticket::expectAtLeast(const int64_t bytes)
{
    if (!session_.request())
        return;
    TheGateway()->attempt("expectAtLeast", [&](auto &scheduler, const auto now) {
        scheduler.expectAtLeast(*session_.request(), bytes, now);
    });
}

bool
Ticket::maySend(const char * const data, const size_t size)
{
    return !session_.request() || ask("send", [&](auto &scheduler, const auto now) {
        return session_.maySend(scheduler, {data, size}, now);
    });
}

void
Ticket::sendBy(const AsyncCallPointer &call, const Comm::ConnectionPointer &client)
{
    debugs(97, 5, "hold what was said by " << client);
    send_ = call;
    clientWords_.start(client, 1, [self = Pointer(this)] { self->noteClientReadable(); });
    reading_.freeze(client);
}

void
Ticket::finish(const void * const holder)
{
    if (holder_ != holder)
        return;
    const Pointer guard(this); // we may be giving up the last reference
    holder_ = nullptr;
    leave();
    callback_.release();
    ClientWatch::Stop(watch_);
    resume(); // no call should be pending; if one is, it would wait in vain
    send();
    reading_.setServer(nullptr);
    if (request_->msfrsTicket.getRaw() == this)
        request_->msfrsTicket = nullptr;
    request_ = nullptr;
    al_ = nullptr;
}

void
Ticket::renumber(const std::vector<uint32_t> &numbers)
{
    flow_.cls = numbers.at(flow_.cls);
    cls_ = numbers.at(cls_);
}

void
Ticket::reclass()
{
    const auto gateway = TheGateway();
    const auto cls = session_.request() ? gateway->quotas.classOf(flow_.cls, flow_.name()) : cls_;
    if (cls == cls_)
        return;
    debugs(97, 3, "class " << cls << " instead of " << cls_ << " for user " << flow_.user);
    cls_ = cls;
    gateway->attempt("reclass", [&](auto &scheduler, const auto now) {
        scheduler.reclass(*session_.request(), cls, now);
    });
    report();
}

void
Ticket::classifyAgain() noexcept
{
    try {
        if (const auto cls = ClassifyAgain(request_.getRaw(), al_))
            flow_.cls = *cls < TheGateway()->config().classes.size() ? *cls : flow_.cls;
    } catch (...) {
        debugs(97, DBG_IMPORTANT, "ERROR: msfrs cannot classify a request again; it stays in its class: " <<
               CurrentException);
    }
}

/// \returns LogTrace::overQuota
SBuf
Ticket::overQuota(const RequestConfig &config) const
{
    return cls_ == flow_.cls ? SBuf() : SBuf(config.classes.at(flow_.cls).name);
}

void
Ticket::release()
{
    session_.release();
    conclude(shutting_down ? Verdict::Kind::shuttingDown : Verdict::Kind::released);
    resume();
    send();
}

void
Ticket::granted()
{
    conclude(Verdict::Kind::released);
    resume();
    send();
}

void
Ticket::paused(const int64_t rest)
{
    reading_.pause(rest, [self = Pointer(this)] { self->noteArrival(); }, now());
}

std::string
Ticket::host() const
{
    return request_ ? request_->url.host() : "";
}

/// as %master_xaction of logformat
uint64_t
Ticket::id() const
{
    return request_ && request_->masterXaction ? request_->masterXaction->id.value : 0;
}

/// While paused: the kernel has data that may be read ahead, or else the rest of the response, or the stream has ended.
void
Ticket::noteArrival()
{
    if (!resume_)
        return; // our turn was granted at the same time
    if (reading_.readsAhead()) {
        ScheduleCallHere(std::exchange(resume_, nullptr));
        return;
    }
    session_.arrived();
    resume();
}

/// While its data is held back, the client has sent more, or has left.
void
Ticket::noteClientReadable()
{
    if (!send_)
        return; // it was granted at the same time
    if (!clientWords_.ended()) { // more data is unread, and its end would be behind that
        clientWords_.goOn([self = Pointer(this)] { self->noteClientReadable(); });
        return;
    }
    debugs(97, 3, "the client has left; its last words go on");
    send();
}

void
Ticket::expired()
{
    conclude(Verdict::Kind::waitedTooLong);
}

void
Ticket::dropped()
{
    conclude(Verdict::Kind::notAdmitted);
}

/// ends the wait in the queue, if there is one
void
Ticket::conclude(const Verdict::Kind kind)
{
    if (!callback_)
        return;
    ClientWatch::Stop(watch_);
    watch_ = nullptr;
    callback_.answer().kind = kind;
    ScheduleCallHere(callback_.release());
    const Verdict verdict = {kind};
    if (!verdict.refusal())
        return;
    if (al_)
        al_->msfrs.refusal = verdict.refusal();
    if (const auto gateway = TheGateway())
        gateway->refusals.note("of user " + flow_.user.toStdString() + ": " + verdict.sentence(), Gateway::Now());
}

/// ends a pause, if there is one
void
Ticket::resume()
{
    reading_.endPause();
    if (!resume_)
        return;
    const auto call = resume_;
    resume_ = nullptr;
    ScheduleCallHere(call);
}

/// forwards the client's data, if it was held back
void
Ticket::send()
{
    clientWords_.stop();
    if (!send_)
        return;
    const auto call = send_;
    send_ = nullptr;
    if (!resume_) // else the server is not read yet
        reading_.thaw();
    ScheduleCallHere(call);
}

void
Ticket::report() const noexcept
{
    if (!al_ || !session_.request())
        return;
    auto &log = al_->msfrs;
    TheGateway()->attempt("trace", [&](auto &scheduler, const auto now) {
        const auto trace = scheduler.trace(*session_.request(), now);
        if (!trace.className.empty()) // it may have changed at reconfiguration
            log.className = SBuf(trace.className);
        log.overQuota = overQuota(scheduler.config());
        log.firstWait = trace.firstWait;
        log.totalWait = trace.totalWait;
        log.bytes = trace.bytes;
        log.quanta = trace.quanta;
        log.exchanges = trace.exchanges;
        log.exchangeWait = trace.exchangeWait;
        log.window = trace.w;
        log.limit = trace.wplus;
    });
}

} // namespace msfrs::squid
