// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/request_state.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <iterator>
#include <utility>

namespace msfrs {

/// Intervals in reports: two minutes at the default of 1 s. Bounds the report; the oldest is dropped.
constexpr size_t HistoryLength = 120;
/// ns: how long a standing queue and a utilisation below the target must coincide before the configured rate is
/// doubted. Single intervals fall below the target by chance; half or double changes only when the warning comes.
constexpr msfrs_time DoubtAfter = 30'000'000'000;
constexpr msfrs_time ForgetEvery = 10'000'000'000; ///< ns between two searches for idle flows; a minute changes nothing
/// ns of idle time after which a flow is freed if the arbiter need not remember it; after ten times as long in any
/// case, since memory must not grow with every address ever seen.
constexpr msfrs_time ForgetAfter = 60'000'000'000;

std::unique_ptr<Engine> RequestScheduler::Impl::makeEngine(const RequestConfig &c)
{
    const auto load = [&](const PluginChoice &choice, const msfrs_kind kind, const PluginChoice &now,
                          const PluginPtr &runs) {
        auto plugin = choice.loaded;
        try {
            if (!plugin)
                plugin = LoadPlugin(choice.name, kind, c.pluginDir);
        } catch (const ConfigError &e) {
            if (!runs || now.name != choice.name || config.pluginDir != c.pluginDir)
                throw;
            host.log(0, std::string(e.what()) + "; the one that runs stays"); // its file may be gone
            plugin = runs;
        }
        return Engine::Part{plugin, ParseParams(plugin->ops(), choice.settings)};
    };
    auto sched = load(c.arbiter, MSFRS_SCHED, config.arbiter, arbiter);
    const bool judges = c.admission.name != "none";
    if (!judges && !c.admission.settings.empty())
        throw ConfigError("admission none takes no parameters, found " + PrintSettings(c.admission.settings));
    auto aqm = judges ? load(c.admission, MSFRS_AQM, config.admission, admission) : Engine::Part();
    // hold() enforces the hard limit: a paused response must never be dropped for it.
    auto made =
        std::make_unique<Engine>(sched, aqm, Engine::Cost::Measured, 1, 0, EngineHost{host.log, host.random});
    arbiter = sched.plugin;
    admission = aqm.plugin;
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
    return {remaining == MSFRS_UNKNOWN ? usual : std::min(remaining, config.quantum)}; // 0 without quanta (the paper)
}

void RequestScheduler::Impl::learn(const Request &r)
{
    if (!r.first || r.item->attained == 0) // servers that do not answer say nothing about answers
        return;
    const auto used = static_cast<double>(std::min(r.item->attained, config.quantum));
    firstQuantum += firstQuantum > 0 ? (used - firstQuantum) / 64 : used; // a mean of about 64 turns
}

/// From here on the request holds a slot in the window.
void RequestScheduler::Impl::grant(Request &r, const msfrs_time now)
{
    const bool readsOn = r.state == Request::State::Early;
    const auto wait = readsOn ? 0 : std::max<msfrs_time>(now - r.waitingSince, 0);
    if (!readsOn) {
        r.arrivals.begin(now, roundTrip(r.base));
        if (r.item->attained == 0)
            expectAnswer(r, now);
    }
    change(r, Request::State::Served, now);
    r.totalWait += wait;
    ++r.quanta;
    ++r.stats->quanta;
    r.first = r.item->attained == 0;
    r.quantumLeft = (readsOn ? std::max<int64_t>(r.quantumLeft, 0) : 0) + config.quantum - pay(r, now);
    r.beyond = false;
    book(r, now);
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
        r.owner->granted(); // may call back; do not use r any more
}

/// The request has left the engine unserved; its owner answers the client and calls done().
void RequestScheduler::Impl::refuse(Request &r, const msfrs_time now, const Refusal why)
{
    r.item = nullptr;
    r.totalWait += std::max<msfrs_time>(now - r.waitingSince, 0);
    change(r, Request::State::Refused, now);
    why == Refusal::None ? r.owner->expired() : r.owner->dropped(why); // may call back; do not use r any more
}

/// The admission control has dropped a waiting request; the engine no longer has it.
void RequestScheduler::Impl::lose(Request &r, const msfrs_time now)
{
    ++r.stats->refusedAdmission;
    if (&r != arriving)
        return refuse(r, now, Refusal::Admission);
    r.item = nullptr;
    arriving = nullptr; // hold() reports it: the owner does not have the request yet
}

void RequestScheduler::Impl::pump(const msfrs_time now)
{
    if (pumping)
        return; // called by granted(): the loop below continues for it
    pumping = true;
    wakeAt = 0;
    bool stuck = false;
    look(now);
    const Engine::Lost lost = [this, now](void *const r) { lose(*static_cast<Request *>(r), now); };
    while (engine->totals().queued.items > 0) {
        const bool open = law->open() && ledger->turn(false);
        stuck = !open && !(law->openForFresh() && ledger->turn(true));
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

/// Of requests that have waited too long, refuses those never granted, and grants the others regardless of the window.
void RequestScheduler::Impl::expire(const msfrs_time now)
{
    for (const auto list : {&waiting, &paused}) {
        while (!list->empty() && now - list->front()->waitingSince >= config.maxWait) {
            auto &r = *list->front();
            if (r.firstWait < 0) {
                engine->remove(*r.item, now, MSFRS_EXPIRED);
                ++r.stats->expired;
                refuse(r, now, Refusal::None);
            } else {
                engine->pickThis(*r.item, now);
                grant(r, now);
            }
        }
    }
}

void RequestScheduler::Impl::restSilent(const msfrs_time now)
{
    if (now < nextSilence)
        return;
    nextSilence = config.quantum > 0 ? now + LookEvery : 0;
    if (nextSilence == 0)
        return; // without quanta a slot is held to the end, as in the paper
    for (const auto list : {&served, &early}) {
        for (auto next = list->begin(); next != list->end();) {
            auto &r = **next++;
            if (!r.owner->silent(now)) {
                book(r, now); // its answer may be overdue
                continue;
            }
            const auto &flow = static_cast<const NamedFlow &>(*r.item->flow);
            r.cls = flow.cls;
            r.user = flow.name();
            r.countHeld(now);
            end(r, now);
            r.item = nullptr;
            change(r, Request::State::Resting, now);
        }
    }
}

/// Ends a turn for good, or the wait for one.
void RequestScheduler::Impl::end(Request &r, const msfrs_time now)
{
    if (r.state == Request::State::Served) {
        learn(r);
        if (r.item->attained == 0)
            engine->forfeit(*r.item); // it had a turn that others could have used
        engine->done(*r.item, now);
    } else {
        engine->remove(*r.item, now, MSFRS_GONE);
    }
}

RequestScheduler::RequestScheduler(const RequestConfig &config, const RequestHost &host, const msfrs_time now):
    impl_(std::make_unique<Impl>(config, host, now)) {}

RequestScheduler::~RequestScheduler()
{
    auto &engine = *impl_->engine;
    for (const auto list : {&impl_->waiting, &impl_->paused, &impl_->served, &impl_->early, &impl_->resting,
                            &impl_->refused}) {
        for (const auto r : *list) {
            if (r->item && !engine.isQueued(*r->item)) // the engine itself frees queued items
                engine.done(*r->item, engine.latest());
            delete r;
        }
    }
    impl_->leaveUsers(); // the host may keep the ledger
    impl_->ledger->say({}, engine.latest());
}

Request *RequestScheduler::hold(RequestOwner &owner, const uint32_t cls, const std::string_view user,
                                const msfrs_time now, Refusal &why, const int64_t expected, const msfrs_time since)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    auto &flow = self.engine->flow(*slot.cls, user);
    ++slot.stats->requests;
    why = Refusal::None;
    const auto refused = [&why](uint64_t &count, const Refusal reason) {
        ++count;
        why = reason;
        return nullptr;
    };
    if (flow.fresh + self.waitingElsewhere(flow) >= self.config.maxPerUser)
        return refused(slot.stats->refusedPerUser, Refusal::PerUser);
    if (self.waiting.size() + self.others->queued >= self.config.maxQueued && !self.makeRoom(flow, now))
        return refused(slot.stats->refusedTotal, Refusal::Total);
    auto request = std::make_unique<Request>(owner, since > 0 ? since : now);
    request->stats = slot.stats;
    request->remaining = Impl::Believable(expected);
    Request *victim = nullptr;
    const auto mayDrop = [&victim](const msfrs_item &item) {
        const auto r = static_cast<Request *>(item.host);
        if (r->state == Request::State::Queued && r->firstWait < 0)
            victim = r;
        return r == victim; // a paused response is half delivered, and a later exchange cannot be refused
    };
    const auto estimate = self.estimate(true, request->remaining);
    if (self.engine->offer(flow, estimate.data(), request.get(), now, request->item, mayDrop, 0,
                           request->remaining) == Engine::Offer::Dropped) {
        refused(slot.stats->refusedAdmission, Refusal::Admission);
        if (victim)
            self.lose(*victim, now);
        return nullptr;
    }
    self.enter(*request, Request::State::Queued);
    auto next = request->place; // the list is in order of waitingSince
    while (next != self.waiting.begin() && (*std::prev(next))->waitingSince > request->waitingSince)
        --next;
    self.waiting.splice(next, self.waiting, request->place);
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
    r->arrivals.begin(now, self.roundTrip(0));
    self.expectAnswer(*r, now);
    self.book(*r, now);
    self.touch(*r->item->flow);
    self.tell(now);
    self.noteWindow(*r);
    return r;
}

void RequestScheduler::done(Request *const r, const msfrs_time now)
{
    auto &self = *impl_;
    const std::unique_ptr<Request> end(r);
    if (r == self.asking) { // ended by another's granted(), during its own readMore() or again()
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

void RequestScheduler::chargeExcess(const uint32_t cls, const std::string_view user, const int64_t bytes,
                                    const msfrs_time now)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    assert(bytes >= 0);
    countExcess(bytes);
    slot.stats->excess += static_cast<uint64_t>(bytes);
    // Packets to addresses that do not exist must not fill the memory.
    const bool room = self.engine->flows() < MostUsers || self.engine->knownFlow(*slot.cls, user);
    auto &flow = self.engine->flow(*slot.cls, room ? user : OtherUsers);
    self.touch(flow); // first: what a flow has when it enters is not reported
    self.engine->chargeFlow(flow, bytes, now);
    self.chargedBytes += flow.backlog + flow.in_service > 0 ? bytes : 0;
}

void RequestScheduler::countExcess(const int64_t bytes) { impl_->meter->packets(bytes); }

/// A standing queue implies a full link: if U is below its target meanwhile, the rate or the byte count is wrong.
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
    std::snprintf(
        text, sizeof(text),
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
            self.law->adapt(seen, now);
            self.history.push_back({Seconds(now), self.outstanding(), self.law->limit(),
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
    // If the ledger is due soon after, check the servers then: on a slow link wake-ups are most of a worker's work.
    if (!self.served.empty() && self.nextSilence > 0)
        also(look > self.nextSilence && look - self.nextSilence < LookEvery / 2 ? look : self.nextSilence);
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
