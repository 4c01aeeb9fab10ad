/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "AccessLogEntry.h"
#include "base/AsyncCallbacks.h"
#include "base/TextException.h"
#include "client_side.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "FwdState.h"
#include "globals.h"
#include "http/Stream.h"
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

Ticket::Ticket(HttpRequest * const request, const AccessLogEntryPointer &al, const void * const holder,
               Uplink &uplink, const Comm::ConnectionPointer &server):
    request_(request),
    al_(al),
    holder_(holder),
    uplink_(&uplink),
    server_(server),
    flow_(Classify(request, al)),
    reading_(TheGateway()->readings)
{
    if (const auto excess = TheExcessPort())
        excess->flows.note(ClientAddress(*request), flow_);
    const auto scheduler = uplink.scheduler();
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
             const Comm::ConnectionPointer &client, const void * const holder, Comm::ConnectionPointer server)
{
    // a client outside of Squid must be waiting
    const auto gateway = TheGateway();
    if (!gateway || !client || request->flags.internal || request->client_addr.isNoAddr())
        return nullptr;
    if (!gateway->several()) {
        server = nullptr;
    } else if (!server) {
        const auto pinned = request->pinnedConnection();
        server = pinned ? pinned->pinning.serverConnection : nullptr;
    } else if (!server->isOpen()) {
        server = server->cloneProfile();
        GetMarkingsToServer(request, *server);
    }
    const auto uplink = gateway->uplinkOf(server.getRaw());
    if (!uplink)
        return nullptr;
    client->writesAtOnce = true; // its socket has room nearly always; to wait for that takes three system calls
    try {
        return new Ticket(request, al, holder, *uplink, server);
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
             const void * const holder, const AsyncCallback<Verdict> &callback, const Comm::ConnectionPointer &server)
{
    const auto ticket = Make(request, al, client, holder, server);
    if (!ticket)
        return nullptr;

    ticket->since_ = Gateway::Now();
    const auto why = ticket->queue();
    if (!ticket->held())
        return ticket->session_.request() ? ticket : nullptr; // without a wait

    ticket->callback_ = callback;
    ticket->begin(why);
    TheGateway()->keepTime();
    return ticket;
}

/// Queues the transaction at its link, unless the scheduler fails.
Refusal
Ticket::queue()
{
    const auto expected = request_->msfrsExpected <= Little ? request_->msfrsExpected : -1;
    auto why = Refusal::None;
    join("hold", [&](auto &scheduler, const auto now) {
        why = session_.hold(scheduler, cls_, flow_.name(), now, expected, since_);
    });
    debugs(97, 3, "class " << cls_ << " user " << flow_.user <<
           (why != Refusal::None ? " refused " : held() ? " waits " : " released ") << request_->url << " at link " <<
           uplink_->config().interface);
    report();
    return why;
}

/// after queue(): begins the wait, or ends it
void
Ticket::begin(const Refusal why)
{
    if (session_.request())
        uplink_->noteWait();
    else
        conclude(Verdict::KindOf(why));
}

void
Ticket::reroute()
{
    if (!callback_ || !server_)
        return;
    const auto uplink = TheGateway()->uplinkOf(server_.getRaw());
    if (uplink == uplink_)
        return;
    leave();
    uplink_ = uplink;
    begin(callback_ && uplink ? queue() : Refusal::None);
}

/// Continues at the link of a connection to the server, in service, if it was expected to be another's.
void
Ticket::follow(const Comm::ConnectionPointer &server)
{
    reading_.setServer(server);
    const auto gateway = TheGateway();
    if (!gateway->several() || server == server_)
        return;
    server_ = server;
    const auto uplink = gateway->uplinkOf(server.getRaw());
    if (uplink == uplink_)
        return;
    debugs(97, 3, "not the link that was expected: " << server);
    leave();
    uplink_ = uplink;
    if (uplink)
        adopt();
}

/// makes us known to the scheduler without a wait
bool
Ticket::adopt()
{
    return join("adopt", [this](auto &scheduler, const auto now) {
        session_.adopt(scheduler, cls_, flow_.name(), now);
    });
}

TicketPointer
Ticket::Inherit(HttpRequest * const request, const AccessLogEntryPointer &al,
                const Comm::ConnectionPointer &client, const void * const holder, const Comm::ConnectionPointer &server)
{
    if (request->msfrsTicket) {
        request->msfrsTicket->holder_ = holder;
        return request->msfrsTicket;
    }

    const auto ticket = Make(request, al, client, holder, server);
    return ticket && ticket->adopt() ? ticket : nullptr;
}

int
Ticket::InitialReceiveBuffer(const Comm::Connection &server)
{
    const auto gateway = TheGateway();
    const auto uplink = gateway && !ServerReading::NearBy(server) ? gateway->uplinkOf(&server) : nullptr;
    const auto scheduler = uplink ? uplink->scheduler() : nullptr;
    return scheduler ? gateway->readings.buffers.initial(server, *scheduler) : 0;
}

bool
Ticket::MayReuse(const Comm::Connection &idle, HttpRequest * const request, const Comm::ConnectionPointer &destination)
{
    if (!SeveralLinks() || !destination->local.isAnyAddr())
        return true;
    const auto fresh = destination->cloneProfile();
    GetMarkingsToServer(request, *fresh);
    return TheGateway()->sourceOf(*fresh).matchIPAddr(idle.local) == 0;
}

/// makes us known to the scheduler
/// \param job which may call granted()
/// \returns whether the scheduler succeeded
template <class Job>
bool
Ticket::join(const char * const what, const Job job)
{
    const auto joined = uplink_->attempt(what, job);
    if (session_.request()) {
        place_ = uplink_->enlist(*this);
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
    uplink_->attempt("finish", [this](auto &scheduler, const auto now) {
        session_.finish(scheduler, now);
    });
    report();
    if (!session_.request())
        return; // the scheduler has failed
    uplink_->forget(place_);
    uplink_->attempt("done", [this](auto &scheduler, const auto now) {
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
    uplink_->attempt("charge", [&](auto &scheduler, const auto now) {
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
    auto may = true;
    uplink_->attempt(what, [&](auto &scheduler, const auto now) {
        may = question(scheduler, now);
    });
    if (may || !session_.request())
        return true;
    uplink_->noteWait();
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

    follow(server);
    if (session_.free())
        return true; // of no link that is scheduled
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
    uplink_->attempt("expectAtLeast", [&](auto &scheduler, const auto now) {
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
Ticket::sendBy(const AsyncCallPointer &call, const Comm::ConnectionPointer &client, const bool leaves)
{
    debugs(97, 5, "hold what was said by " << client);
    send_ = call;
    leaves_ = leaves;
    clientWords_.start(client, 1, [self = Pointer(this)] { self->noteClientReadable(); });
    reading_.freeze(client);
}

void
Ticket::keepFrozen(const Comm::ConnectionPointer &client)
{
    if (resume_ || send_)
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
    uplink_->attempt("reclass", [&](auto &scheduler, const auto now) {
        scheduler.reclass(*session_.request(), cls, now);
    });
    report();
}

void
Ticket::classifyAgain() noexcept
{
    try {
        if (const auto cls = ClassifyAgain(request_.getRaw(), al_))
            flow_.cls = *cls < uplink_->config().classes.size() ? *cls : flow_.cls;
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
Ticket::paused(const int64_t rest, const int64_t least)
{
    reading_.pause(rest, least, [self = Pointer(this)] { self->noteArrival(); }, now());
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

/// While its data is held back, the client has sent more, has closed its half, or has left.
void
Ticket::noteClientReadable()
{
    if (!send_)
        return; // it was granted at the same time
    if (!clientWords_.ended()) { // more data is unread, and its end would be behind that
        clientWords_.goOn([self = Pointer(this)] { self->noteClientReadable(); });
        return;
    }
    if (!leaves_ && !clientWords_.broken()) {
        clientWords_.stop(); // the end would be reported again and again
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
Ticket::dropped(const Refusal why)
{
    conclude(Verdict::KindOf(why));
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
    uplink_->attempt("trace", [&](auto &scheduler, const auto now) {
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
