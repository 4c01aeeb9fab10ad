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

/// Bytes. A stored response that is larger will most likely be answered with 304, so that its size tells nothing.
constexpr int64_t Little = 4096;

} // namespace

Ticket::Ticket(HttpRequest * const request, const AccessLogEntryPointer &al, const void * const holder):
    request_(request),
    al_(al),
    holder_(holder),
    flow_(Classify(request, al))
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

Ticket::~Ticket()
{
    // Holders finish their tickets. If one has not, its place in the window must not be lost with it.
    leave();
    if (request_ && request_->msfrsTicket == this)
        request_->msfrsTicket = nullptr;
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
    const auto joined = ticket->join("hold", State::waiting, [&](auto &scheduler, const auto now) {
        return scheduler.hold(*ticket, ticket->cls_, ticket->flow_.name(), now, why, expected);
    });
    if (!joined)
        return nullptr;
    if (!ticket->scheduled_)
        ticket->state_ = State::refused;

    debugs(97, 3, "class " << ticket->cls_ << " user " << ticket->flow_.user <<
           (!ticket->scheduled_ ? " refused " : ticket->held() ? " waits " : " released ") << request->url);
    ticket->report();
    if (!ticket->held())
        return ticket; // without a wait

    ticket->callback_ = callback;
    const auto gateway = TheGateway();
    if (ticket->scheduled_)
        gateway->noteWait();
    else
        ticket->conclude(Verdict::KindOf(why));
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

    const auto joined = ticket->join("adopt", State::served, [&](auto &scheduler, const auto now) {
        ticket->exchange_.begin(now);
        return scheduler.adopt(*ticket, ticket->cls_, ticket->flow_.name(), now);
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
/// \param state which granted() may change before we return
/// \param job returns the scheduled request or nil
/// \returns whether the scheduler did its part
template <class Job>
bool
Ticket::join(const char * const what, const State state, const Job job)
{
    state_ = state;
    const auto gateway = TheGateway();
    const auto joined = gateway->attempt(what, [&](auto &scheduler, const auto now) {
        scheduled_ = job(scheduler, now);
    });
    if (scheduled_) {
        place_ = gateway->enlist(*this);
        request_->msfrsTicket = this;
    }
    if (!joined)
        state_ = State::free;
    return joined;
}

/// makes the scheduler forget us
void
Ticket::leave()
{
    reading_.stop();
    state_ = State::free;
    if (!scheduled_)
        return;
    const auto gateway = TheGateway();
    if (const auto ahead = reading_.takeAhead())
        chargeScheduler(ahead);
    report();
    const auto scheduled = scheduled_;
    if (!scheduled)
        return; // the scheduler has failed
    scheduled_ = nullptr;
    gateway->forget(place_);
    gateway->attempt("done", [scheduled](auto &scheduler, const auto now) {
        scheduler.done(scheduled, now);
    });
}

void
Ticket::chargeScheduler(const int64_t bytes)
{
    TheGateway()->attempt("charge", [&](auto &scheduler, const auto now) {
        scheduler.charge(*scheduled_, bytes, now);
    });
}

void
Ticket::watch(const Comm::ConnectionPointer &client, const CbcPointer<ConnStateData> &manager)
{
    if (!callback_)
        return;
    // peeked at, the client's connection belongs to the TLS library
    const auto mode = request_->flags.sslPeek ? ClientWatch::Mode::look : ClientWatch::Mode::keep;
    watch_ = new ClientWatch(client, manager, mode);
    AsyncJob::Start(watch_);
}

void
Ticket::charge(const int64_t bytes, const char * const data)
{
    if (!scheduled_ || bytes <= 0)
        return;
    exchange_.serverSays(data, static_cast<size_t>(bytes), Gateway::Now());
    if (reading_.mayReadAhead()) {
        reading_.cameAhead(Gateway::Now());
    } else {
        reading_.came(bytes);
        chargeScheduler(bytes);
    }
    const auto gateway = TheGateway();
    if (gateway->quotas.charge(cls_, flow_.name(), bytes))
        gateway->moveByQuota();
    gateway->keepTime();
}

bool
Ticket::mayRead(const Comm::ConnectionPointer &server, const int64_t rest, const Comm::ConnectionPointer &client)
{
    reading_.thaw(server, client);

    if (!scheduled_ || state_ == State::arrived || reading_.mayReadAhead())
        return true;

    if (ServerReading::NearBy(*server)) {
        leave();
        return true;
    }

    reading_.setServer(server);
    if (rest >= 0) { // before anybody is asked: it is what the order goes by
        TheGateway()->attempt("expect", [&](auto &scheduler, const auto now) {
            scheduler.expect(*scheduled_, rest, now);
        });
        if (!scheduled_)
            return true; // the scheduler has failed and let us go
    }
    const auto may = goOn(rest);
    if (!may || send_) // a client whose words are held back is not to blame, nor is who waits for them
        reading_.freeze(client);
    return may;
}

void
Ticket::expectAtLeast(const int64_t bytes)
{
    if (!scheduled_)
        return;
    TheGateway()->attempt("expectAtLeast", [&](auto &scheduler, const auto now) {
        scheduler.expectAtLeast(*scheduled_, bytes, now);
    });
}

/// \returns whether it is our turn, or we need none
bool
Ticket::goOn(const int64_t rest)
{
    const auto gateway = TheGateway();
    if (state_ == State::silent || state_ == State::asking) {
        auto owes = false;
        gateway->attempt("owes", [&](auto &scheduler, msfrs_time) {
            owes = scheduler.owes(*scheduled_);
        });
        if (!scheduled_)
            return true; // the scheduler has failed and let us go
        if (!owes && exchange_.mayGoOnUnasked(Gateway::Now()))
            return true;
        return state_ == State::silent && ask();
    }
    if (state_ != State::served)
        return false;

    auto more = true;
    gateway->attempt("readMore", [&](auto &scheduler, const auto now) {
        const auto complete = exchange_.mayBeComplete() && reading_.nothingWaits();
        more = reading_.mayGoOn(gateway->readings, scheduler, *scheduled_, rest, complete, now);
    });
    if (more || state_ != State::served) // the latter: released by a scheduler that failed
        return true;
    state_ = State::paused;
    reading_.pause(gateway->readings, rest, [self = Pointer(this)] { self->noteArrival(); }, Gateway::Now());
    return false;
}

bool
Ticket::maySend(const char * const data, const size_t size)
{
    if (!scheduled_)
        return true;
    const auto answered = exchange_.state() == Exchange::State::Answered;
    if (!exchange_.clientSays(data, size, Gateway::Now()))
        return state_ != State::asking && ask();
    if (answered && asked() && (state_ == State::served || state_ == State::paused))
        TheGateway()->attempt("asked more", [&](auto &scheduler, const auto time) {
            scheduler.askedMore(*scheduled_, time);
        });
    return true;
}

void
Ticket::sendBy(const AsyncCallPointer &call, const Comm::ConnectionPointer &client)
{
    debugs(97, 5, "hold what was said by " << client);
    send_ = call;
    clientWords_.start(client, 1, [self = Pointer(this)] { self->noteClientReadable(); });
    reading_.freeze(client);
}

/// begins a new exchange
/// \returns whether it may go on at once
bool
Ticket::ask()
{
    if (state_ != State::silent)
        return true; // the exchange and the scheduler disagree: nobody is kept waiting for that
    const auto gateway = TheGateway();
    state_ = State::asking;
    auto now = true;
    gateway->attempt("again", [&](auto &scheduler, const auto time) {
        now = scheduler.again(*scheduled_, time);
        if (now)
            exchange_.begin(time);
    });
    if (now && state_ == State::asking) {
        state_ = State::served;
        reading_.beginQuantum();
    } else if (!now) {
        gateway->noteWait();
    }
    report();
    return now;
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
    resume(); // nobody should wait, but if somebody does, for nothing
    send();
    reading_.setServer(nullptr);
    if (request_->msfrsTicket == this)
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
    const auto cls = scheduled_ ? gateway->quotas.classOf(flow_.cls, flow_.name()) : cls_;
    if (cls == cls_)
        return;
    debugs(97, 3, "class " << cls << " instead of " << cls_ << " for user " << flow_.user);
    cls_ = cls;
    gateway->attempt("reclass", [&](auto &scheduler, const auto now) {
        scheduler.reclass(*scheduled_, cls, now);
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

/// \returns what LogTrace wants
SBuf
Ticket::overQuota(const RequestConfig &config) const
{
    return cls_ == flow_.cls ? SBuf() : SBuf(config.classes.at(flow_.cls).name);
}

void
Ticket::release()
{
    reading_.stop();
    scheduled_ = nullptr;
    state_ = State::free;
    conclude(shutting_down ? Verdict::Kind::shuttingDown : Verdict::Kind::released);
    resume();
    send();
}

void
Ticket::granted()
{
    const auto now = Gateway::Now();
    if (state_ == State::paused || state_ == State::arrived)
        exchange_.resume(now);
    else
        exchange_.begin(now);
    if (state_ != State::arrived)
        state_ = State::served;
    reading_.beginQuantum();
    conclude(Verdict::Kind::released);
    resume();
    send();
}

bool
Ticket::silent(const msfrs_time now)
{
    if (state_ == State::arrived) // nothing more will come over the link, be its client ever so slow to take it
        return true;
    if (state_ != State::served || !reading_.silent(exchange_, TheGateway()->config().patience, now))
        return false;
    reading_.stop();
    exchange_.end();
    state_ = State::silent;
    return true;
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

/// While paused: the kernel has data that may be read ahead, or else the rest of the response, or as much of it as will
/// ever come.
void
Ticket::noteArrival()
{
    if (!resume_)
        return; // our turn has come at the same time
    if (reading_.mayReadAhead()) {
        ScheduleCallHere(std::exchange(resume_, nullptr));
        return;
    }
    state_ = State::arrived;
    resume();
}

/// While its words are held back, the client has said more, or has left.
void
Ticket::noteClientReadable()
{
    if (!send_)
        return; // their turn has come at the same time
    if (!clientWords_.ended()) { // more words wait behind those that we hold back, and its leaving would behind them
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
    state_ = State::refused;
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

/// lets go what the client said, if it was held back
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
    if (!al_ || !scheduled_)
        return;
    auto &log = al_->msfrs;
    TheGateway()->attempt("trace", [&](auto &scheduler, const auto now) {
        const auto trace = scheduler.trace(*scheduled_, now);
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
