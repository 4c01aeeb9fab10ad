// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/request_scheduler.h"

#include "engine/engine.h"
#include "engine/request_config.h"
#include "engine/wait_histogram.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <list>
#include <map>

namespace msfrs {

namespace {

constexpr size_t HistoryLength = 120;
constexpr msfrs_time ForgetEvery = 10'000'000'000;
constexpr msfrs_time ForgetAfter = 60'000'000'000;
constexpr int64_t NoEstimate[MSFRS_RESOURCES] = {};

double Seconds(const msfrs_time t) { return static_cast<double>(t) * 1e-9; }

/// Bytes that the link carries in one round trip.
double BandwidthDelay(const RequestConfig &c) { return c.rate / 8.0 * Seconds(c.rtt); }

/// With quanta a place in the window is worth about a quantum, so that W0+ is known better than in the paper, and
/// intervals are short enough for memory to pay. Without quanta the window is the paper's.
WindowParams WindowOf(const RequestConfig &c)
{
    auto w = c.window;
    if (c.quantum > 0) {
        w.memory = 5 * w.interval;
        w.early = 0.9;
        w.initial = std::max(1.0, BandwidthDelay(c) / static_cast<double>(c.quantum));
    }
    return w;
}

struct ClassStats {
    explicit ClassStats(std::string n): name(std::move(n)) {}

    std::string name;
    uint64_t requests = 0, bytes = 0, quanta = 0, perUser = 0, total = 0, admission = 0, expired = 0;
    uint32_t paused = 0;
    WaitHistogram waits;
};

} // namespace

class Request {
public:
    enum class State { Queued, Served, Paused, Refused };

    Request(RequestOwner &o, const msfrs_time now): owner(&o), waitingSince(now) {}

    RequestOwner *owner;
    msfrs_item *item = nullptr;       ///< null only when Refused
    std::shared_ptr<ClassStats> stats;
    State state = State::Queued;
    msfrs_time waitingSince;          ///< of the current wait
    msfrs_time firstWait = -1, totalWait = 0;
    int64_t quantumLeft = 0, bytes = 0;
    uint32_t quanta = 0, w = 0;
    double wplus = 0;
    std::list<Request *>::iterator place; ///< in the list of its state
};

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

struct RequestScheduler::Impl {
    Impl(const RequestConfig &c, const RequestHost &h, const msfrs_time now):
        config((CheckRequestConfig(c), c)), host(h), meter(makeMeter(c)), engine(makeEngine(c)),
        rate(WindowOf(c), ledger.window(), now, meter->total())
    {
        for (const auto &cls : c.classes)
            slots.push_back({engine->addClass(cls.name, cls.weight), std::make_shared<ClassStats>(cls.name)});
    }

    struct Slot {
        msfrs_class *cls;
        std::shared_ptr<ClassStats> stats;
    };

    std::unique_ptr<Engine> makeEngine(const RequestConfig &);
    std::unique_ptr<Meter> makeMeter(const RequestConfig &) const;
    static bool SamePlugins(const RequestConfig &, const RequestConfig &);
    void rebuild(const RequestConfig &, std::unique_ptr<Engine>, msfrs_time now);

    std::list<Request *> &listOf(const Request &r)
    {
        switch (r.state) {
        case Request::State::Queued: return waiting;
        case Request::State::Paused: return paused;
        case Request::State::Served: return served;
        case Request::State::Refused: break;
        }
        return refused;
    }
    void enter(Request &r, const Request::State state)
    {
        r.state = state;
        auto &list = listOf(r);
        r.place = list.insert(list.end(), &r);
    }
    void change(Request &r, const Request::State state)
    {
        auto &from = listOf(r);
        r.stats->paused -= r.state == Request::State::Paused;
        r.state = state;
        r.stats->paused += r.state == Request::State::Paused;
        auto &to = listOf(r);
        to.splice(to.end(), from, r.place); // r.place stays valid
    }
    void leave(Request &r)
    {
        r.stats->paused -= r.state == Request::State::Paused;
        listOf(r).erase(r.place);
    }

    void grant(Request &, msfrs_time now);
    void refuse(Request &, msfrs_time now);
    void pump(msfrs_time now);
    void expire(msfrs_time now);

    RequestConfig config;
    RequestHost host;
    LocalLedger ledger;
    std::unique_ptr<Meter> meter;
    std::unique_ptr<Engine> engine;
    RateController rate;
    std::vector<Slot> slots;                      ///< by index into config.classes
    std::list<Request *> waiting, paused, served, refused; ///< each in the order in which they entered
    std::deque<WindowReport::Sample> history;
    msfrs_time nextForget = 0;
    msfrs_time wakeAt = 0;                        ///< when the arbiter wants to be asked again; 0: no wish
    Request *asking = nullptr;                    ///< the one whose readMore() pumps
    bool answered = false;                        ///< whether it was granted
    bool pumping = false;
};

std::unique_ptr<Engine> RequestScheduler::Impl::makeEngine(const RequestConfig &c)
{
    Engine::Part sched, aqm;
    sched.plugin = LoadPlugin(c.arbiter.name, MSFRS_SCHED, c.pluginDir);
    sched.params = ParseParams(sched.plugin->ops(), c.arbiter.settings);
    if (c.admission.name != "none") {
        aqm.plugin = LoadPlugin(c.admission.name, MSFRS_AQM, c.pluginDir);
        aqm.params = ParseParams(aqm.plugin->ops(), c.admission.settings);
    } else if (!c.admission.settings.empty()) {
        throw ConfigError("admission none takes no parameters, found " + PrintSettings(c.admission.settings));
    }
    // The hard limit is hold()'s business: a paused response must never be dropped by a count.
    return std::make_unique<Engine>(std::move(sched), std::move(aqm), Engine::Cost::Measured, 1, 0, ledger,
                                    EngineHost{host.log, host.random});
}

std::unique_ptr<Meter> RequestScheduler::Impl::makeMeter(const RequestConfig &c) const
{
    auto counter = c.interface.empty() ? nullptr
                                       : (host.openCounter ? host.openCounter : OpenSysfsCounter)(c.interface);
    return std::make_unique<Meter>(std::move(counter), c.interface, c.overhead, host.log);
}

bool RequestScheduler::Impl::SamePlugins(const RequestConfig &a, const RequestConfig &b)
{
    const auto same = [](const PluginChoice &x, const PluginChoice &y) {
        return x.name == y.name && PrintSettings(x.settings) == PrintSettings(y.settings);
    };
    return same(a.arbiter, b.arbiter) && same(a.admission, b.admission) && a.pluginDir == b.pluginDir;
}

/// Moves all that there is into a new engine: used when the plugins change or a class goes.
void RequestScheduler::Impl::rebuild(const RequestConfig &c, std::unique_ptr<Engine> next, const msfrs_time now)
{
    std::map<std::string, std::pair<double, std::shared_ptr<ClassStats>>> old;
    for (const auto &slot : slots)
        old[slot.cls->name] = {*slot.cls->service, slot.stats};
    std::vector<Slot> fresh;
    std::vector<double> services;
    for (const auto &cls : c.classes) {
        const auto known = old.find(cls.name);
        services.push_back(known == old.end() ? *ledger.virtualTime() : known->second.first);
        fresh.push_back({next->addClass(cls.name, cls.weight),
                         known == old.end() ? std::make_shared<ClassStats>(cls.name) : known->second.second});
    }
    const double virtualTime = *ledger.virtualTime();
    const auto move = [&](Request &r) {
        const auto &flow = static_cast<const NamedFlow &>(*r.item->flow);
        size_t to = c.defaultClass;
        for (size_t n = 0; n < c.classes.size(); ++n) {
            if (c.classes[n].name == flow.cls->name)
                to = n;
        }
        if (r.state == Request::State::Paused) {
            --r.stats->paused;
            ++fresh[to].stats->paused;
        }
        r.stats = fresh[to].stats;
        const bool inService = r.state == Request::State::Served;
        const auto past = r.item;
        r.item = next->adopt(next->flow(*fresh[to].cls, flow.name), NoEstimate, &r, now, past->attained, inService);
        if (inService)
            engine->done(*past, now);
        else
            engine->remove(*past, now, MSFRS_GONE);
    };
    std::vector<Request *> all;
    for (const auto list : {&served, &waiting, &paused})
        all.insert(all.end(), list->begin(), list->end());
    std::sort(all.begin(), all.end(), [](const Request *a, const Request *b) { return a->item->seq < b->item->seq; });
    for (const auto r : all)
        move(*r);
    // To the new plugin every move was an idle class that woke: what that made of the counters is undone, and
    // setWeight() has it look at them again.
    *ledger.virtualTime() = virtualTime;
    for (size_t n = 0; n < fresh.size(); ++n) {
        *fresh[n].cls->service = services[n];
        next->setWeight(*fresh[n].cls, fresh[n].cls->weight);
    }
    engine = std::move(next);
    slots = std::move(fresh);
}

/// The request holds a place in the window from here on.
void RequestScheduler::Impl::grant(Request &r, const msfrs_time now)
{
    const auto wait = std::max<msfrs_time>(now - r.waitingSince, 0);
    change(r, Request::State::Served);
    rate.released();
    r.totalWait += wait;
    r.quantumLeft = config.quantum;
    ++r.quanta;
    ++r.stats->quanta;
    if (r.firstWait < 0) {
        r.firstWait = wait;
        r.w = rate.window().outstanding;
        r.wplus = rate.window().limit;
        r.stats->waits.add(wait, now);
    }
    if (&r == asking)
        answered = true;    // readMore() answers directly
    else
        r.owner->granted(); // may call back; r is not touched any more
}

/// The request has left the engine unserved; its owner answers the client and calls done().
void RequestScheduler::Impl::refuse(Request &r, const msfrs_time now)
{
    r.item = nullptr;
    r.totalWait += std::max<msfrs_time>(now - r.waitingSince, 0);
    change(r, Request::State::Refused);
    r.owner->expired(); // may call back; r is not touched any more
}

void RequestScheduler::Impl::pump(const msfrs_time now)
{
    if (pumping)
        return; // granted() called back; the loop below goes on for it
    pumping = true;
    wakeAt = 0;
    while (engine->totals().queued.items > 0) {
        const bool open = rate.open();
        if (!open && !rate.openForFresh())
            break;
        const auto item = engine->pick(now, open ? MSFRS_PICK_ANY : MSFRS_PICK_FRESH, wakeAt);
        if (!item)
            break;
        grant(*static_cast<Request *>(item->host), now);
    }
    pumping = false;
    const bool full = engine->totals().queued.items > 0 && !rate.open();
    if (full != rate.full())
        rate.setFull(full, now, meter->total());
}

/// Who waited for a first grant too long is refused; who was paused too long goes on regardless of the window.
void RequestScheduler::Impl::expire(const msfrs_time now)
{
    while (!waiting.empty() && now - waiting.front()->waitingSince >= config.maxWait) {
        auto &r = *waiting.front();
        engine->remove(*r.item, now, MSFRS_EXPIRED);
        ++r.stats->expired;
        refuse(r, now);
    }
    while (!paused.empty() && now - paused.front()->waitingSince >= config.maxWait) {
        auto &r = *paused.front();
        engine->pickThis(*r.item, now);
        grant(r, now);
    }
}

RequestScheduler::RequestScheduler(const RequestConfig &config, const RequestHost &host, const msfrs_time now):
    impl_(std::make_unique<Impl>(config, host, now)) {}

RequestScheduler::~RequestScheduler()
{
    // The engine frees what is queued by itself.
    for (const auto r : impl_->served)
        impl_->engine->done(*r->item, 0);
    for (const auto list : {&impl_->waiting, &impl_->paused, &impl_->served, &impl_->refused}) {
        for (const auto r : *list)
            delete r;
    }
}

void RequestScheduler::reconfigure(const RequestConfig &next, const msfrs_time now)
{
    auto &self = *impl_;
    CheckRequestConfig(next);
    bool keepEngine = Impl::SamePlugins(self.config, next);
    for (const auto &slot : self.slots) {
        const auto same = [&](const ClassConfig &c) { return c.name == slot.cls->name; };
        keepEngine = keepEngine && std::any_of(next.classes.begin(), next.classes.end(), same);
    }
    // Everything that may throw comes before anything is changed.
    auto engine = keepEngine ? nullptr : self.makeEngine(next);
    const bool sameMeter = self.config.interface == next.interface && self.config.overhead == next.overhead;
    auto meter = sameMeter ? nullptr : self.makeMeter(next);

    if (engine) {
        self.rebuild(next, std::move(engine), now);
    } else {
        std::vector<Impl::Slot> slots;
        for (const auto &cls : next.classes) {
            const auto known = std::find_if(self.slots.begin(), self.slots.end(),
                                            [&](const Impl::Slot &s) { return s.cls->name == cls.name; });
            if (known == self.slots.end()) {
                slots.push_back({self.engine->addClass(cls.name, cls.weight), std::make_shared<ClassStats>(cls.name)});
            } else {
                if (known->cls->weight != cls.weight)
                    self.engine->setWeight(*known->cls, cls.weight);
                slots.push_back(*known);
            }
        }
        self.slots = std::move(slots);
    }
    if (meter) {
        // The new meter counts from zero: whatever was measured with the old one is closed first.
        self.rate.update(now, self.meter->total(), self.config.rate);
        self.meter = std::move(meter);
        self.rate.rebase(now, self.meter->total());
    }
    self.config = next;
    self.rate.configure(WindowOf(next));
    self.pump(now);
}

Request *RequestScheduler::hold(RequestOwner &owner, const uint32_t cls, const std::string_view user,
                                const msfrs_time now, Refusal &why)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    auto &flow = self.engine->flow(*slot.cls, user);
    ++slot.stats->requests;
    why = Refusal::None;
    if (flow.fresh >= self.config.maxPerUser) {
        ++slot.stats->perUser;
        why = Refusal::PerUser;
        return nullptr;
    }
    if (self.waiting.size() >= self.config.maxQueued) {
        ++slot.stats->total;
        why = Refusal::Total;
        return nullptr;
    }
    auto request = std::make_unique<Request>(owner, now);
    request->stats = slot.stats;
    Request *victim = nullptr;
    const auto mayDrop = [&victim](const msfrs_item &item) {
        const auto r = static_cast<Request *>(item.host);
        if (r->state == Request::State::Queued)
            victim = r;
        return r == victim; // a paused response is half delivered: it stays
    };
    if (self.engine->offer(flow, NoEstimate, request.get(), now, request->item, mayDrop) == Engine::Offer::Dropped) {
        ++slot.stats->admission;
        if (victim) {
            ++victim->stats->admission;
            self.refuse(*victim, now);
        }
        why = Refusal::Admission;
        return nullptr;
    }
    self.enter(*request, Request::State::Queued);
    const auto r = request.release();
    self.pump(now);
    return r;
}

Request *RequestScheduler::adopt(RequestOwner &owner, const uint32_t cls, const std::string_view user,
                                 const msfrs_time now)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    const auto r = new Request(owner, now);
    r->stats = slot.stats;
    r->item = self.engine->adopt(self.engine->flow(*slot.cls, user), NoEstimate, r, now, 0, true);
    r->firstWait = 0;
    r->quantumLeft = self.config.quantum;
    r->quanta = 1;
    ++slot.stats->requests;
    ++slot.stats->quanta;
    self.enter(*r, Request::State::Served);
    self.rate.released();
    r->w = self.rate.window().outstanding;
    r->wplus = self.rate.window().limit;
    return r;
}

void RequestScheduler::charge(Request &r, const int64_t bytes, const msfrs_time now)
{
    auto &self = *impl_;
    assert(bytes >= 0);
    self.meter->payload(bytes);
    r.bytes += bytes;
    r.stats->bytes += static_cast<uint64_t>(bytes);
    if (r.state == Request::State::Served) {
        self.engine->charge(*r.item, 0, bytes, now);
        r.quantumLeft -= bytes;
    } else if (r.item) {
        self.engine->chargeFlow(*r.item->flow, bytes, now);
    }
}

bool RequestScheduler::readMore(Request &r, const msfrs_time now)
{
    auto &self = *impl_;
    assert(r.state == Request::State::Served);
    if (self.config.quantum == 0 || r.quantumLeft > 0)
        return true;
    if (self.engine->totals().queued.items == 0) {
        r.quantumLeft = self.config.quantum;
        ++r.quanta;
        ++r.stats->quanta;
        return true;
    }
    self.rate.returned();
    r.waitingSince = now;
    self.change(r, Request::State::Paused);
    self.engine->requeue(*r.item, NoEstimate, now);
    if (self.pumping)
        return false; // asked from inside granted(): the pump that called it goes on for this one too
    self.asking = &r;
    self.answered = false;
    self.pump(now);
    self.asking = nullptr;
    return self.answered;
}

void RequestScheduler::done(Request *const r, const msfrs_time now)
{
    auto &self = *impl_;
    const std::unique_ptr<Request> end(r);
    if (r == self.asking) { // ended by another's granted(), in the middle of its own question
        self.asking = nullptr;
        self.answered = false;
    }
    self.leave(*r);
    if (r->state == Request::State::Refused)
        return;
    if (r->state == Request::State::Served) {
        self.rate.returned();
        self.engine->done(*r->item, now);
    } else {
        self.engine->remove(*r->item, now, MSFRS_GONE);
    }
    self.pump(now);
}

void RequestScheduler::changeOwner(Request &r, RequestOwner &owner) { r.owner = &owner; }

void RequestScheduler::chargeExcess(const uint32_t cls, const std::string_view user, const int64_t bytes,
                                    const msfrs_time now)
{
    auto &self = *impl_;
    auto &slot = self.slots.at(cls);
    self.meter->payload(bytes);
    slot.stats->bytes += static_cast<uint64_t>(bytes);
    self.engine->chargeFlow(self.engine->flow(*slot.cls, user), bytes, now);
}

msfrs_time RequestScheduler::tick(const msfrs_time now)
{
    auto &self = *impl_;
    if (self.rate.due(now)) {
        if (self.rate.update(now, self.meter->total(), self.config.rate)) {
            const auto &window = self.rate.window();
            self.history.push_back({Seconds(now), static_cast<double>(window.outstanding), window.limit,
                                    self.rate.utilisation(), self.rate.fullShare()});
            if (self.history.size() > HistoryLength)
                self.history.pop_front();
        }
    }
    if (now >= self.nextForget) {
        self.engine->forgetIdleFlows(now - ForgetAfter, now - 10 * ForgetAfter);
        self.nextForget = now + ForgetEvery;
    }
    self.expire(now);
    self.pump(now);

    msfrs_time next = self.rate.nextUpdate();
    if (self.wakeAt > now)
        next = std::min(next, self.wakeAt);
    for (const auto list : {&self.waiting, &self.paused}) {
        if (!list->empty())
            next = std::min(next, list->front()->waitingSince + self.config.maxWait);
    }
    return std::max(next, now + 1);
}

msfrs_time RequestScheduler::wakeAt() const { return impl_->wakeAt; }

int RequestScheduler::receiveBuffer() const
{
    const auto &c = impl_->config;
    if (c.quantum == 0)
        return 0;
    // What the link carries in one round trip, and room for the quantum in service.
    const double product = BandwidthDelay(c);
    return static_cast<int>(std::min(std::max(product, static_cast<double>(c.quantum)), 16.0 * 1024 * 1024));
}

std::vector<ClassReport> RequestScheduler::classes() const
{
    const auto &self = *impl_;
    std::vector<ClassReport> all;
    const auto now = static_cast<msfrs_time>(self.history.empty() ? 0 : self.history.back().at * 1e9);
    for (const auto &slot : self.slots) {
        const auto &s = *slot.stats;
        ClassReport r;
        r.name = slot.cls->name;
        r.weight = slot.cls->weight;
        r.users = slot.cls->users;
        r.queued = slot.cls->backlog - s.paused;
        r.paused = s.paused;
        r.inFlight = slot.cls->in_service;
        r.requests = s.requests;
        r.bytes = s.bytes;
        r.quanta = s.quanta;
        r.refusedPerUser = s.perUser;
        r.refusedTotal = s.total;
        r.refusedAdmission = s.admission;
        r.expired = s.expired;
        r.service = *slot.cls->service;
        r.waitP50 = s.waits.quantile(0.50, now);
        r.waitP95 = s.waits.quantile(0.95, now);
        r.waitP99 = s.waits.quantile(0.99, now);
        r.waitCount = s.waits.count();
        r.waitSum = s.waits.sum();
        all.push_back(std::move(r));
    }
    return all;
}

std::vector<UserReport> RequestScheduler::topUsers(const size_t most) const
{
    std::vector<UserReport> all;
    for (const auto &slot : impl_->slots) {
        impl_->engine->eachFlow(*slot.cls, [&](const NamedFlow &f) {
            all.push_back({f.name, slot.cls->name, f.bytes, f.backlog, f.in_service});
        });
    }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), end, all.end(),
                      [](const UserReport &a, const UserReport &b) { return a.bytes > b.bytes; });
    all.erase(end, all.end());
    return all;
}

WindowReport RequestScheduler::window() const
{
    const auto &self = *impl_;
    WindowReport r;
    r.outstanding = self.rate.window().outstanding;
    r.limit = self.rate.window().limit;
    r.utilisation = self.rate.utilisation();
    r.metered = self.meter->metered();
    r.history.assign(self.history.begin(), self.history.end());
    return r;
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

RequestScheduler::Trace RequestScheduler::trace(const Request &r, const msfrs_time now) const
{
    Trace t;
    t.className = r.stats->name;
    t.firstWait = r.firstWait;
    const bool waits = r.state == Request::State::Queued || r.state == Request::State::Paused;
    t.totalWait = r.totalWait + (waits ? std::max<msfrs_time>(now - r.waitingSince, 0) : 0);
    t.quanta = r.quanta;
    t.w = r.w;
    t.wplus = r.wplus;
    t.bytes = r.bytes;
    return t;
}

} // namespace msfrs
