// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/request_config.h"
#include "engine/request_state.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <utility>

namespace msfrs {

namespace {

constexpr size_t HistoryLength = 120;
/// ns: how long a standing queue and a utilisation below the target must coincide before the configured rate is doubted.
/// Single intervals fall below the target by chance.
constexpr msfrs_time DoubtAfter = 30'000'000'000;
constexpr msfrs_time ForgetEvery = 10'000'000'000;
constexpr msfrs_time ForgetAfter = 60'000'000'000;
constexpr int64_t Unsaid = 4096; ///< bytes beyond what was said that mean nothing: headers, an FTP server's replies
constexpr int64_t MostExpected = int64_t(1) << 60; ///< bytes: who says more says nothing

/// What somebody says of a size, or unknown.
int64_t Believable(const int64_t bytes) { return bytes >= 0 && bytes <= MostExpected ? bytes : MSFRS_UNKNOWN; }

} // namespace

const char *RefusalText(const Refusal why)
{
    switch (why) {
    case Refusal::None: return "none";
    case Refusal::PerUser: return "too many requests of this user are waiting";
    case Refusal::Total: return "too many requests are waiting";
    case Refusal::Admission: return "the admission control dropped the request";
    }
    return "";
}

PluginPtr RequestScheduler::Impl::load(const PluginChoice &choice, const msfrs_kind kind, const std::string &dir,
                                       const Loaded &running) const
{
    if (choice.loaded)
        return choice.loaded;
    try {
        return LoadPlugin(choice.name, kind, dir);
    } catch (const ConfigError &e) {
        if (!running.plugin || running.name != choice.name || running.dir != dir)
            throw;
        host.log(0, std::string(e.what()) + "; the one that runs stays");
        return running.plugin;
    }
}

std::unique_ptr<Engine> RequestScheduler::Impl::makeEngine(const RequestConfig &c)
{
    Engine::Part sched, aqm;
    sched.plugin = load(c.arbiter, MSFRS_SCHED, c.pluginDir, arbiter);
    sched.params = ParseParams(sched.plugin->ops(), c.arbiter.settings);
    if (c.admission.name != "none") {
        aqm.plugin = load(c.admission, MSFRS_AQM, c.pluginDir, admission);
        aqm.params = ParseParams(aqm.plugin->ops(), c.admission.settings);
    } else if (!c.admission.settings.empty()) {
        throw ConfigError("admission none takes no parameters, found " + PrintSettings(c.admission.settings));
    }
    const Loaded nextArbiter{c.arbiter.name, c.pluginDir, sched.plugin};
    const Loaded nextAdmission{c.admission.name, c.pluginDir, aqm.plugin};
    // The hard limit is hold()'s business: a paused response must never be dropped by a count.
    auto made = std::make_unique<Engine>(std::move(sched), std::move(aqm), Engine::Cost::Measured, 1, 0,
                                         EngineHost{host.log, host.random});
    arbiter = nextArbiter;
    admission = nextAdmission;
    return made;
}

std::unique_ptr<Meter> RequestScheduler::Impl::makeMeter(const RequestConfig &c) const
{
    std::unique_ptr<InterfaceCounter> counter;
    if (!c.interface.empty())
        counter = host.openCounter ? host.openCounter(c.interface)
                                   : OpenSysfsCounter(c.interface, c.packetOverhead > 0);
    return std::make_unique<Meter>(std::move(counter), c.interface, c.overhead, c.packetOverhead, host.log);
}

RequestScheduler::Impl::Estimate RequestScheduler::Impl::estimate(const bool fresh, const int64_t remaining) const
{
    const auto usual = fresh ? static_cast<int64_t>(firstQuantum) : config.quantum;
    return {remaining == MSFRS_UNKNOWN ? usual : std::min(remaining, config.quantum)}; // 0 without quanta: the paper
}

void RequestScheduler::Impl::learn(const Request &r)
{
    if (!r.first)
        return;
    const auto used = static_cast<double>(std::min(r.item->attained, config.quantum));
    firstQuantum += firstQuantum > 0 ? (used - firstQuantum) / 64 : used;
}

/// The request holds a place in the window from here on.
void RequestScheduler::Impl::grant(Request &r, const msfrs_time now)
{
    const bool readsOn = r.state == Request::State::Early;
    const auto wait = readsOn ? 0 : std::max<msfrs_time>(now - r.waitingSince, 0);
    change(r, Request::State::Served);
    if (!readsOn)
        paper.released();
    r.totalWait += wait;
    ++r.quanta;
    ++r.stats->quanta;
    r.first = r.item->attained == 0;
    r.quantumLeft = (readsOn ? std::max<int64_t>(r.quantumLeft, 0) : 0) + config.quantum - pay(r, now);
    r.beyond = false;
    book(r);
    r.askedMore &= readsOn;
    if (r.firstWait < 0) {
        r.firstWait = wait;
        noteWindow(r);
    } else if (r.first) {
        r.exchangeWait += wait;
    }
    if (&r == asking)
        answered = true;    // readMore() answers directly
    else if (!readsOn)
        r.owner->granted(); // may call back; r is not touched any more
}

/// The request has left the engine unserved; its owner answers the client and calls done().
void RequestScheduler::Impl::refuse(Request &r, const msfrs_time now, const msfrs_reason why)
{
    r.item = nullptr;
    r.totalWait += std::max<msfrs_time>(now - r.waitingSince, 0);
    change(r, Request::State::Refused);
    why == MSFRS_DROPPED ? r.owner->dropped() : r.owner->expired(); // may call back; r is not touched any more
}

/// The admission control has dropped a request that waited; the engine has it no more.
void RequestScheduler::Impl::lose(Request &r, const msfrs_time now)
{
    ++r.stats->admission;
    if (&r != arriving)
        return refuse(r, now, MSFRS_DROPPED);
    r.item = nullptr;
    arriving = nullptr; // hold() says so itself: its owner does not have it yet
}

void RequestScheduler::Impl::pump(const msfrs_time now)
{
    if (pumping)
        return; // granted() called back; the loop below goes on for it
    pumping = true;
    wakeAt = 0;
    bool stuck = false;
    look(now);
    const Engine::Lost lost = [this, now](void *const r) { lose(*static_cast<Request *>(r), now); };
    while (engine->totals().queued.items > 0) {
        const bool open = this->open() && ledger->turn(false);
        stuck = !open && !(openForFresh() && ledger->turn(true));
        if (stuck)
            break;
        const auto item = engine->pick(now, open ? MSFRS_PICK_ANY : MSFRS_PICK_FRESH, wakeAt, lost);
        if (!item) {
            stuck = !open;
            break;
        }
        grant(*static_cast<Request *>(item->host), now);
        tell(now);
    }
    pumping = false;
    blocked = stuck;
    tell(now);
    const bool full = (blocked && waiters() > 0) || wanted();
    if (full != use.full())
        use.setFull(full, now, carried());
}

/// Who waited for the very first grant too long is refused; who was served before goes on regardless of the window.
void RequestScheduler::Impl::expire(const msfrs_time now)
{
    while (!waiting.empty() && now - waiting.front()->waitingSince >= config.maxWait) {
        auto &r = *waiting.front();
        if (r.firstWait >= 0) {
            engine->pickThis(*r.item, now);
            grant(r, now);
            continue;
        }
        engine->remove(*r.item, now, MSFRS_EXPIRED);
        ++r.stats->expired;
        refuse(r, now, MSFRS_EXPIRED);
    }
    while (!paused.empty() && now - paused.front()->waitingSince >= config.maxWait) {
        auto &r = *paused.front();
        engine->pickThis(*r.item, now);
        grant(r, now);
    }
}

void RequestScheduler::Impl::restSilent(const msfrs_time now)
{
    if (now < nextSilence || config.quantum == 0) // without quanta it is the paper: a place is held to the end
        return;
    nextSilence = now + SilenceEvery;
    restSilent(served, now);
    restSilent(early, now);
}

void RequestScheduler::Impl::restSilent(const std::list<Request *> &those, const msfrs_time now)
{
    for (auto next = those.begin(); next != those.end();) {
        auto &r = **next++;
        if (!r.owner->silent(now))
            continue;
        const auto &flow = static_cast<const NamedFlow &>(*r.item->flow);
        r.cls = flow.cls;
        r.user = flow.name();
        r.countHeld(now);
        end(r, now);
        r.item = nullptr;
        change(r, Request::State::Resting);
    }
}

/// A turn ends for good, or the wait for one.
void RequestScheduler::Impl::end(Request &r, const msfrs_time now)
{
    if (r.state == Request::State::Served)
        learn(r);
    if (r.state == Request::State::Served || r.state == Request::State::Early)
        paper.returned();
    if (r.state == Request::State::Served)
        engine->done(*r.item, now);
    else
        engine->remove(*r.item, now, MSFRS_GONE);
}

RequestScheduler::RequestScheduler(const RequestConfig &config, const RequestHost &host, const msfrs_time now):
    impl_(std::make_unique<Impl>(config, host, now)) {}

RequestScheduler::~RequestScheduler()
{
    auto &engine = *impl_->engine;
    for (const auto list : {&impl_->waiting, &impl_->paused, &impl_->served, &impl_->early, &impl_->resting,
                            &impl_->refused}) {
        for (const auto r : *list) {
            if (r->item && !engine.isQueued(*r->item)) // the engine frees what is queued by itself
                engine.done(*r->item, engine.latest());
            delete r;
        }
    }
    impl_->users.clear(*impl_->ledger); // which its host may keep
    impl_->ledger->say({}, engine.latest());
}

Request *RequestScheduler::hold(RequestOwner &owner, const uint32_t cls, const std::string_view user,
                                const msfrs_time now, Refusal &why, const int64_t expected)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    auto &flow = self.engine->flow(*slot.cls, user);
    ++slot.stats->requests;
    why = Refusal::None;
    if (flow.fresh + self.users.waiting(*self.ledger, flow) >= self.config.maxPerUser) {
        ++slot.stats->perUser;
        why = Refusal::PerUser;
        return nullptr;
    }
    if (self.waiting.size() + self.others->queued >= self.config.maxQueued) {
        ++slot.stats->total;
        why = Refusal::Total;
        return nullptr;
    }
    auto request = std::make_unique<Request>(owner, now);
    request->stats = slot.stats;
    request->remaining = Believable(expected);
    Request *victim = nullptr;
    const auto mayDrop = [&victim](const msfrs_item &item) {
        const auto r = static_cast<Request *>(item.host);
        if (r->state == Request::State::Queued && r->firstWait < 0)
            victim = r;
        return r == victim; // a paused response is half delivered, and nobody could be told about a later exchange
    };
    const auto estimate = self.estimate(true, request->remaining);
    if (self.engine->offer(flow, estimate.data(), request.get(), now, request->item, mayDrop, 0,
                           request->remaining) == Engine::Offer::Dropped) {
        ++slot.stats->admission;
        if (victim)
            self.lose(*victim, now);
        why = Refusal::Admission;
        return nullptr;
    }
    self.enter(*request, Request::State::Queued);
    self.touch(flow);
    const auto r = request.release();
    const auto outer = std::exchange(self.arriving, r);
    self.pump(now);
    if (std::exchange(self.arriving, outer) == r)
        return r;
    self.leave(*r);
    delete r;
    why = Refusal::Admission;
    return nullptr;
}

Request *RequestScheduler::adopt(RequestOwner &owner, const uint32_t cls, const std::string_view user,
                                 const msfrs_time now)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    const auto r = new Request(owner, now);
    r->stats = slot.stats;
    r->item = self.engine->adopt(self.engine->flow(*slot.cls, user), self.estimate(true, MSFRS_UNKNOWN).data(), r, now,
                                 0, true);
    r->firstWait = 0;
    r->quantumLeft = self.config.quantum;
    r->quanta = 1;
    ++slot.stats->requests;
    ++slot.stats->quanta;
    self.enter(*r, Request::State::Served);
    self.book(*r);
    self.touch(*r->item->flow);
    self.paper.released();
    self.tell(now);
    self.noteWindow(*r);
    return r;
}

void RequestScheduler::expect(Request &r, const int64_t remaining, const msfrs_time now)
{
    const auto known = Believable(remaining);
    const auto all = r.bytes + known;
    if (remaining > known || all - Unsaid > r.stated)
        r.stated = -1;
    else if (known != MSFRS_UNKNOWN)
        r.stated = std::min(r.stated, all);
    r.remaining = r.stated < 0 ? MSFRS_UNKNOWN : known;
    if (!r.item)
        return;
    impl_->engine->expect(*r.item, r.remaining, now);
    impl_->book(r);
}

void RequestScheduler::expectAtLeast(Request &r, const int64_t remaining, const msfrs_time now)
{
    const auto known = Believable(remaining);
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
    if (self.byBytes() && r.item && bytes > 0)
        self.countLag(r, bytes);
    r.stats->bytes += static_cast<uint64_t>(bytes);
    r.stats->unfinished += static_cast<double>(bytes) * Seconds(std::max<msfrs_time>(now - r.askedAt, 0));
    if (r.state == Request::State::Served || r.state == Request::State::Early) {
        if (r.state == Request::State::Served)
            self.engine->charge(*r.item, 0, bytes, now);
        else
            self.engine->chargeQueued(*r.item, bytes, now);
        r.quantumLeft -= bytes;
        self.book(r);
        if (self.byBytes() && self.blocked && self.openForFresh())
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
    if (self.config.quantum == 0 || (early && !self.isTimeToQueue(r, complete)))
        return true;
    if (r.bytes - r.bytesBefore >= HeldPiece)
        r.countHeld(now);
    if (complete && !std::exchange(r.beyond, true))
        return true;
    // Who is alone in waiting for its next quantum goes on, unless there are more in service than there should be.
    self.look(now);
    if (self.engine->totals().queued.items == 0 && !self.wanted() && self.within()) {
        r.quantumLeft = std::max<int64_t>(r.quantumLeft, 0) + self.config.quantum;
        r.beyond = false;
        self.book(r);
        ++r.quanta;
        ++r.stats->quanta;
        return true;
    }
    if (early) {
        self.queueAgain(r, Request::State::Early, now);
        self.learn(r); // with what is in flight
        self.pump(now);
        return true;
    }
    self.learn(r);
    self.paper.returned();
    if (r.askedMore)
        self.renew(r, now);
    else
        self.queueAgain(r, Request::State::Paused, now);
    return self.goOn(r, now);
}

/// A response queues for its next turn when what is left of this one is in flight. So no round trip of silence is
/// between the two, and who has no other response is there when others are picked.
bool RequestScheduler::Impl::isTimeToQueue(const Request &r, const bool complete) const
{
    return byBytes() && !complete && r.quantumLeft <= r.window &&
           (r.remaining == MSFRS_UNKNOWN || r.remaining > r.quantumLeft);
}

/// \param state Early or Paused
void RequestScheduler::Impl::queueAgain(Request &r, const Request::State state, const msfrs_time now)
{
    r.waitingSince = now;
    change(r, state);
    engine->expect(*r.item, r.remaining, now);
    engine->requeue(*r.item, estimate(false, r.remaining).data(), now, std::max<int64_t>(r.quantumLeft, 0));
}

/// What was left of its turn has come before its next one.
/// \returns true: it waits from now on
bool RequestScheduler::Impl::pause(Request &r, const msfrs_time now)
{
    paper.returned();
    r.waitingSince = now;
    change(r, Request::State::Paused);
    if (!r.askedMore)
        return true;
    renew(r, now);
    return !goOn(r, now);
}

void RequestScheduler::askedMore(Request &r, const msfrs_time now)
{
    auto &self = *impl_;
    if (r.state == Request::State::Served || r.state == Request::State::Early) {
        r.askedMore = !r.first; // what is asked in a first turn, as after a TLS handshake, is what that turn is for
    } else if (r.state == Request::State::Paused) {
        self.renew(r, now);
        self.pump(now);
    }
}

/// It waits with an item that had no service yet. The new one comes before the old one goes, so that neither class nor
/// user seems to have been away.
void RequestScheduler::Impl::renew(Request &r, const msfrs_time now)
{
    const auto old = r.item;
    const bool inService = r.state == Request::State::Served;
    r.totalWait = r.held(now); // if it was paused: it waits anew from now on
    queueFresh(r, *old->flow, now);
    if (inService)
        engine->done(*old, now);
    else
        engine->remove(*old, now, MSFRS_GONE);
}

/// It waits from now on with an item of its own that had no service yet, and no AQM is asked.
void RequestScheduler::Impl::queueFresh(Request &r, msfrs_flow &flow, const msfrs_time now)
{
    r.item = engine->adopt(flow, estimate(true, r.remaining).data(), &r, now, 0, false, r.remaining);
    touch(flow);
    r.waitingSince = now;
    change(r, Request::State::Queued);
}

/// \returns whether a request that has just been queued may go on at once
bool RequestScheduler::Impl::goOn(Request &r, const msfrs_time now)
{
    if (pumping)
        return false; // asked from inside granted(): the pump that called it goes on for this one too
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

void RequestScheduler::done(Request *const r, const msfrs_time now)
{
    auto &self = *impl_;
    const std::unique_ptr<Request> end(r);
    if (r == self.asking) { // ended by another's granted(), in the middle of its own question
        self.asking = nullptr;
        self.answered = false;
    }
    if (r->state != Request::State::Resting)
        r->tellHeld(r->stats->held, now);
    self.leave(*r);
    if (!r->item)
        return;
    self.end(*r, now);
    self.pump(now);
}

void RequestScheduler::changeOwner(Request &r, RequestOwner &owner) { r.owner = &owner; }

void RequestScheduler::chargeExcess(const uint32_t cls, const std::string_view user, const int64_t bytes,
                                    const msfrs_time now)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    assert(bytes >= 0);
    countExcess(bytes);
    slot.stats->excess += static_cast<uint64_t>(bytes);
    // Whoever sends packets to addresses that do not exist must not fill the memory.
    const bool room = self.engine->flows() < MostUsers || self.engine->knownFlow(*slot.cls, user);
    auto &flow = self.engine->flow(*slot.cls, room ? user : OtherUsers);
    self.touch(flow); // before: what it has when it enters is not told
    self.engine->chargeFlow(flow, bytes, now);
    self.chargedBytes += flow.backlog + flow.in_service > 0 ? bytes : 0;
}

void RequestScheduler::countExcess(const int64_t bytes) { impl_->meter->packets(bytes); }

/// A standing queue implies a full link: if U is below its target meanwhile, the rate or the count of bytes is wrong.
void RequestScheduler::Impl::doubtRate(const QueueSeen &seen, const msfrs_time now)
{
    const auto &params = windowParams;
    const bool full = use.fullShare() > 0.5 && seen.enough() && seen.queue > params.queue;
    if (capacity || ledger->follow() || !meter->metered() || !full || use.usedWhileFull() >= params.target) {
        believedAt = now;
        return;
    }
    if (doubted || now - believedAt < DoubtAfter)
        return;
    doubted = true;
    char text[300];
    std::snprintf(text, sizeof(text),
                  "a queue of %.0f ms stands at the provider, and the link is at %.1f %% of its rate: it may carry less "
                  "than its rate, or its interface may not count all of each packet (packet overhead)",
                  1000 * Seconds(seen.queue), 100 * use.usedWhileFull());
    host.log(0, text);
}

void RequestScheduler::resetWindow(const msfrs_time now)
{
    const auto total = impl_->carried();
    impl_->use.setFull(impl_->use.full(), now, total);
    impl_->paper.reset(impl_->use, now, total);
    impl_->queueTarget = QueueTarget(impl_->windowParams.queue);
    impl_->pump(now);
}

msfrs_time RequestScheduler::tick(const msfrs_time now)
{
    auto &self = *impl_;
    self.settle(now);
    self.findRate(now);
    if (self.use.due(now)) {
        const auto total = self.carried();
        const auto seen = self.pathSeen(now);
        if (seen.base > 0)
            self.usualBase = seen.base;
        if (self.endInterval(now, total, self.ownShare(now))) {
            if (self.byBytes()) {
                self.updateQueueTarget(seen);
                self.doubtRate(seen, now);
            }
            self.history.push_back({Seconds(now), self.outstanding(), self.limit(),
                                    self.use.utilisation(), self.use.fullShare(), self.own});
            if (self.history.size() > HistoryLength)
                self.history.pop_front();
        }
    }
    if (now >= self.nextForget) {
        self.engine->forgetIdleFlows(now - ForgetAfter, now - 10 * ForgetAfter);
        self.nextForget = now + ForgetEvery;
    }
    self.restSilent(now);
    self.expire(now);
    self.pump(now);

    msfrs_time next = self.use.nextUpdate();
    if (self.host.ledger)
        next = std::min(next, self.nextSettle);
    if (self.capacity)
        next = std::min(next, self.capacity->nextUpdate());
    if (const auto wake = wakeAt(); wake > now)
        next = std::min(next, wake);
    for (const auto list : {&self.waiting, &self.paused}) {
        if (!list->empty())
            next = std::min(next, list->front()->waitingSince + self.config.maxWait);
    }
    return std::max(next, now + 1);
}

msfrs_time RequestScheduler::wakeAt() const
{
    const auto &self = *impl_;
    auto wake = self.wakeAt;
    const auto also = [&wake](const msfrs_time when) { wake = wake && when ? std::min(wake, when) : wake + when; };
    const auto look = self.ledger->lookAt();
    also(look);
    // Where the ledger is looked at soon after, servers are asked then: of a worker's work on a slow link, waking up is
    // the most.
    if (!self.served.empty() && self.config.quantum > 0)
        also(look > self.nextSilence && look - self.nextSilence < SilenceEvery / 2 ? look : self.nextSilence);
    return wake;
}

uint32_t RequestScheduler::classIndex(const std::string_view name) const
{
    for (uint32_t n = 0; n < impl_->slots.size(); ++n) {
        if (name == impl_->slots[n].cls->name)
            return n;
    }
    return UINT32_MAX;
}

const RequestConfig &RequestScheduler::config() const { return impl_->config; }

} // namespace msfrs
