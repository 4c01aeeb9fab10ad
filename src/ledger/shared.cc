// SPDX-License-Identifier: GPL-2.0-or-later
#include "ledger/shared.h"

#include "ledger/users.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace msfrs {

using namespace ledger;

// Intervals of reading the other slots, ns. Half and double of these and the following: docs/lab/constants.md.
constexpr msfrs_time LookEvery = 1'000'000;       ///< least: bounds the cost of many calls at once
/// While requests wait here: half of the link's time for a quantum, within these. WaitLeast bounds wake-ups on a fast
/// link, WaitMost stays below Prompt.
constexpr msfrs_time WaitLeast = 5'000'000, WaitMost = 32'000'000;
constexpr msfrs_time LeadEvery = 20'000'000;      ///< while requests wait elsewhere: the leader measures that time
constexpr msfrs_time Prompt = 50'000'000;         ///< ns: the others do not wait for a party that has not looked for so
                                                  ///< long: more than WaitMost, so it is stopped or busy
/// s of link capacity, and quanta: see shared.h. FreshQuanta are the further lead of the reserve. Half makes small
/// objects wait 7 % longer; with double, small requests alone get gold 3.54 instead of 3.84.
constexpr double LeadTime = 0.01;
constexpr int LeadQuanta = 2, FreshQuanta = 4;
constexpr double Memory = 0.05;                   ///< gain of the mean demand at each settlement: 2 s
constexpr double Nobody = std::numeric_limits<double>::infinity();
/// Bytes, and s of link capacity, accepted between two readings: more is not counted, since its field is invalid. The
/// bytes are for a party that does not know C yet.
constexpr double MostGrowth = 1e8, MostSeconds = 10;
constexpr uint32_t LastClass = SlotClasses - 1;
constexpr msfrs_time ComplainEvery = 60'000'000'000; ///< ns between two log lines about overwritten slots

struct SharedLedger::Impl {
    struct Followed {
        uint64_t key = 0;
        uint32_t entry = NoEntry;   ///< of the table; NoEntry: there was none
        uint32_t cls = LastClass;
        double weight = 0;
        uint64_t origin = 0;        ///< the column's bytes less those charged here
        uint64_t elsewhere = 0;     ///< ElsewhereBytes() as of the last exchange
        uint32_t waiting = 0;       ///< elsewhere
        uint64_t items = 0;         ///< requests elsewhere with work
        bool alone = false;         ///< it had no work elsewhere
        bool active = false;        ///< the bit in the table
    };
    /// The last reading of a slot.
    struct Other {
        uint64_t epoch = 0, received = 0, own = 0, packets = 0, outOfOrder = 0;
        std::array<uint64_t, LastClass> served{}; ///< by our classes
    };

    Impl(Segment &s, const PartyParams &p, Log l, const msfrs_time now):
        segment(s), params(p), log(std::move(l)), lookedAt(now)
    {
        inherit(now, params.slot);
        take(params.slot, now);
    }

    uint32_t me() const { return slot->number(); }
    double lead(const int quanta) const { return static_cast<double>(quanta * state.quantum) + rate / 8 * LeadTime; }
    /// Never 0: without active users, bytes in service count as before. The demand itself falls when its requests are
    /// served, which would make a party that has just served small requests look overserved.
    double weight() const { return usual; }
    double inService() const { return static_cast<double>(state.inService); }
    double tag() const { return std::min(base + inService() / weight(), MostReal); }
    msfrs_time waitEvery() const
    {
        const double half = rate > 0 ? static_cast<double>(state.quantum) * 8 / rate / 2 * 1e9 : 0;
        return static_cast<msfrs_time>(
            std::clamp(half, static_cast<double>(WaitLeast), static_cast<double>(WaitMost)));
    }
    /// Bytes that may have arrived between two readings.
    double most() const { return MostGrowth + rate / 8 * MostSeconds; }

    /// Adopts the leader's window, ignoring the slot `mine`.
    void inherit(const msfrs_time now, const uint32_t mine)
    {
        const auto leader = Leader(segment, now, mine);
        read(leader);
        inherited = led.has_value();
    }
    void read(const uint32_t leader)
    {
        const auto figures = leader == Slots ? std::nullopt : ReadFigures(segment.slots[leader]);
        led.reset();
        if (figures)
            led = SharedWindow{figures->limit, figures->rate, figures->utilisation, figures->target,
                               figures->floor};
    }

    void survey(msfrs_time now);
    void take(uint32_t number, msfrs_time now);
    bool rejoin(msfrs_time now);
    void beginAnew(msfrs_time now);
    void beginToWait();
    void measureOthers(msfrs_time now);
    void measureClasses(const Slot &, Other &was, bool goesOn);
    void follow(Followed &, uint64_t bytes, bool active);
    void seek(Followed &) const;
    uint32_t classOf(uint64_t cls) const;
    /// This party's part of the weight of a user with `items` > 0 here.
    static double part(const Followed &f, const uint32_t items)
    {
        return f.weight * items / (items + static_cast<double>(f.items));
    }

    Segment &segment;
    PartyParams params;
    Log log;
    std::unique_ptr<OwnSlot> slot;
    uint64_t living = 0;                    ///< other parties, by bits
    uint64_t complained = 0;                ///< slots already reported as invalid
    bool complainedOfUsers = false;
    msfrs_time complainedOfLoss = -ComplainEvery;
    OtherParties others;
    std::array<Other, Slots> before;
    msfrs_time lookedAt;
    double leastWaiting = Nobody;           ///< least tag of the other waiting parties
    double greatest = 0;                    ///< of all others with responses in service or waiting
    PartyState state;
    double base = 0;                        ///< the tag without bytes in service
    double demand = 0;
    double usual = 1;                       ///< mean demand of late
    bool known = false;                     ///< there has been demand
    struct {
        double all = 0;
        std::array<double, SlotClasses> classes{};
    } next;                                 ///< demand published since the last settlement
    uint64_t furtherServed = 0;             ///< of the classes from LastClass on
    std::vector<uint64_t> classKeys;        ///< of the classes before LastClass
    std::array<ClassElsewhere, LastClass> classes;
    double rate = 0;                        ///< bit/s
    bool metered = false;
    bool meteredBefore = false;             ///< by a worker in an earlier slot, whose count all use
    std::optional<SharedWindow> led;
    bool inherited = false;                 ///< `led` is to be adopted, whichever party leads now
    std::vector<Followed> followed;
    std::vector<User> free;                 ///< free indices of `followed`
};

/// Finds the live parties.
void SharedLedger::Impl::survey(const msfrs_time now)
{
    uint64_t broken = 0;
    living = Living(segment, now, &broken) & ~Bit(me());
    EachBit(broken & ~complained, [this](const uint32_t n) {
        log(0, "the shared ledger has invalid values in slot " + std::to_string(n) + ", which is ignored");
    });
    complained |= broken;
}

void SharedLedger::Impl::take(const uint32_t number, const msfrs_time now)
{
    slot = std::make_unique<OwnSlot>(segment, number, params.kind, now);
    Set((*slot)->config, params.config);
    survey(now);
}

/// Takes a slot after another process has written ours. Keeps the state of the others and the users' bytes here.
/// \returns false if there is none
bool SharedLedger::Impl::rejoin(const msfrs_time now)
{
    const auto lost = me();
    auto number = lost;
    if (params.kind != Kind::Worker)
        number = Slots;
    else if (ReadSlot(segment.slots[lost], now)) // another party lives there
        number = OwnSlot::Free(segment, now).value_or(Slots);
    if (now - complainedOfLoss >= ComplainEvery) {
        complainedOfLoss = now;
        log(0, "another process has written slot " + std::to_string(lost) + " of the shared ledger" +
                   (number < Slots ? "; this one continues in slot " + std::to_string(number) : ""));
    }
    if (number == Slots)
        return false;
    for (auto &f : followed) {
        if (f.entry != NoEntry && number == lost)
            SetActive(segment.users[f.entry], f.key, lost, false);
        f.entry = NoEntry; // exchange() takes another entry
    }
    take(number, now);
    return true;
}

/// Starts over after a time in which the others took this party for dead.
void SharedLedger::Impl::beginAnew(const msfrs_time now)
{
    lookedAt = now - LookEvery;
    survey(now);
    inherit(now, me());
    state.waiting = 0;
    before.fill({});
    for (auto &f : followed) {
        if (f.entry != NoEntry)
            f.elsewhere = ElsewhereBytes(segment.users[f.entry], me());
    }
}

void SharedLedger::Impl::beginToWait()
{
    const double from = leastWaiting < Nobody ? leastWaiting : greatest;
    base = std::max(base, from - (lead(LeadQuanta) + inService()) / weight());
}

/// Adds service and demand of another party in the classes that it shares with us.
void SharedLedger::Impl::measureClasses(const Slot &there, Other &was, const bool goesOn)
{
    for (size_t n = 0; n < std::min<size_t>(classKeys.size(), LastClass); ++n) {
        auto found = there.classes + n; // the position with the same configuration
        if (found->key.load(Relaxed) != classKeys[n])
            found = std::find_if(there.classes, there.classes + LastClass,
                                 [&](const auto &cls) { return cls.key.load(Relaxed) == classKeys[n]; });
        if (found == there.classes + LastClass)
            continue;
        const auto served = found->served.load(Relaxed);
        const auto growth = static_cast<double>(served - std::exchange(was.served[n], served));
        if (goesOn && growth <= most())
            classes[n].bytes += growth;
        const double wanted = Real(found->demand.load(Relaxed));
        if (wanted > 0 && wanted < MostReal)
            classes[n].demand += wanted;
    }
}

/// Adds the measurements of the others since the last time.
void SharedLedger::Impl::measureOthers(const msfrs_time now)
{
    others.queues.clear();
    meteredBefore = false;
    for (size_t n = 0; n < classes.size(); ++n) {
        const double own = Real((*slot)->classes[n].demand.load(Relaxed));
        classes[n] = {0, own, own};
    }
    EachBit(living, [&](const uint32_t n) {
        const auto reading = ReadSlot(segment.slots[n], now);
        const auto figures = ReadFigures(segment.slots[n]);
        if (!reading || !figures)
            return;
        meteredBefore |= n < me() && figures->metered && reading->kind == Kind::Worker;
        auto &was = before[n];
        const auto grown = [&](const uint64_t from, const uint64_t to) {
            const auto growth = static_cast<double>(to - from);
            return was.epoch == reading->epoch && growth <= most() ? growth : 0;
        };
        // All parties of this machine share the count of an interface.
        if (reading->kind == Kind::Gateway || (!metered && !figures->metered))
            others.received += grown(was.received, figures->received);
        others.own += grown(was.own, figures->own);
        measureClasses(segment.slots[n], was, was.epoch == reading->epoch);
        const auto &path = figures->path;
        others.queues.push_back(path.queue);
        others.packets += static_cast<uint64_t>(grown(was.packets, path.packets));
        others.outOfOrder += static_cast<uint64_t>(grown(was.outOfOrder, path.outOfOrder));
        was = {reading->epoch, figures->received, figures->own, path.packets, path.outOfOrder, was.served};
    });
}

uint32_t SharedLedger::Impl::classOf(const uint64_t cls) const
{
    const auto found = std::find(classKeys.begin(), classKeys.end(), cls);
    return static_cast<uint32_t>(std::min<std::ptrdiff_t>(found - classKeys.begin(), LastClass));
}

/// Finds an entry for the user, or another one.
void SharedLedger::Impl::follow(Followed &f, const uint64_t bytes, const bool active)
{
    f.entry = TakeUser(segment, f.key, me(), active, living | Bit(me()));
    f.active = active;
    if (f.entry == NoEntry) {
        if (!complainedOfUsers) {
            log(0, "more users than the shared ledger has room for (" + std::to_string(Users) +
                       ") have requests; the weights of the others hold for each worker alone");
        }
        complainedOfUsers = true;
        return;
    }
    auto &user = segment.users[f.entry];
    if (me() < Columns)
        f.origin = ColumnBytes(user.columns[me()].load(Relaxed)) - bytes;
    f.elsewhere = ElsewhereBytes(user, me());
    seek(f);
}

/// Counts the user's requests at other parties.
void SharedLedger::Impl::seek(Followed &f) const
{
    auto &user = segment.users[f.entry];
    f.waiting = 0;
    f.items = 0;
    EachBit(user.active.load(Relaxed) & living, [&](const uint32_t n) {
        const auto column = n < Columns ? user.columns[n].load(Relaxed) : 0;
        f.waiting += static_cast<uint32_t>(ColumnWaiting(column));
        f.items += std::max<uint64_t>(ColumnItems(column), 1);
    });
}

SharedLedger::SharedLedger(Segment &segment, const PartyParams &params, Log log, const msfrs_time now):
    impl_(std::make_unique<Impl>(segment, params, std::move(log), now))
{
}

SharedLedger::~SharedLedger() = default;

void SharedLedger::configured(const uint64_t config)
{
    impl_->params.config = config;
    if (impl_->slot->held())
        Set((*impl_->slot)->config, config);
}

const OtherParties &SharedLedger::look(const msfrs_time now)
{
    auto &self = *impl_;
    if (now >= self.lookedAt && now < self.lookedAt + LookEvery)
        return self.others;
    if (now >= self.lookedAt + DeadAfter)
        self.beginAnew(now);
    self.lookedAt = now;
    auto &others = self.others;
    others.places = others.workers = 0;
    others.waiting = others.queued = 0;
    self.leastWaiting = Nobody;
    self.greatest = 0;
    double demand = 0;
    EachBit(self.living, [&](const uint32_t n) {
        const auto r = ReadSlot(self.segment.slots[n], now);
        if (!r)
            return;
        others.places += r->places;
        demand += r->demand;
        others.queued += r->queued;
        if (r->kind == Kind::Gateway) { // has no tag: it is entered with its fair share
            others.waiting += r->waiting;
            return;
        }
        if (r->kind == Kind::Edge)
            return;
        ++others.workers;
        if (r->places + r->waiting > 0)
            self.greatest = std::max(self.greatest, r->tag);
        if (r->waiting > 0 && r->heartbeat > now - Prompt) {
            others.waiting += r->waiting;
            self.leastWaiting = std::min(self.leastWaiting, r->tag);
        }
    });
    others.part = self.weight() / (self.weight() + demand);
    return others;
}

bool SharedLedger::turn(const bool fresh) const
{
    const auto &self = *impl_;
    if (self.leastWaiting == Nobody)
        return true;
    const int quanta = fresh ? LeadQuanta + FreshQuanta : LeadQuanta;
    return self.tag() <= self.leastWaiting + self.lead(quanta) / self.weight();
}

void SharedLedger::say(const PartyState &state, const msfrs_time now)
{
    auto &self = *impl_;
    auto &slot = *self.slot;
    if (!slot.beat(now))
        return; // settle() handles it
    const auto grown = state.served - self.state.served;
    if (grown > 0)
        self.base += static_cast<double>(grown) / self.weight();
    const bool begins = state.waiting > 0 && self.state.waiting == 0;
    self.state = state;
    if (begins)
        self.beginToWait();
    Set(slot->places, state.places);
    Set(slot->waiting, state.waiting);
    Set(slot->queued, state.queued);
    SetReal(slot->tag, self.tag());
}

msfrs_time SharedLedger::lookAt() const
{
    const auto &self = *impl_;
    if (self.living == 0)
        return 0;
    if (self.state.waiting > 0)
        return self.lookedAt + self.waitEvery();
    return self.others.waiting > 0 && !self.led ? self.lookedAt + LeadEvery : 0;
}

Ledger::User SharedLedger::enter(const std::string_view cls, const std::string_view user, const double weight,
                                 const uint64_t bytes, const uint32_t items)
{
    return enterKeys(ClassKey(cls), UserKey(cls, user), weight, bytes, items);
}

Ledger::User SharedLedger::enterKeys(const uint64_t cls, const uint64_t user, const double weight,
                                     const uint64_t bytes, const uint32_t items)
{
    auto &self = *impl_;
    Impl::Followed f;
    f.key = user;
    f.cls = self.classOf(cls);
    f.weight = weight;
    self.follow(f, bytes, items > 0);
    if (items > 0) // settle() recomputes it
        self.demand += Impl::part(f, items);
    if (self.free.empty()) {
        self.followed.push_back(f);
        return static_cast<User>(self.followed.size() - 1);
    }
    const auto place = self.free.back();
    self.free.pop_back();
    self.followed[place] = f;
    return place;
}

int64_t SharedLedger::exchange(const User place, const uint64_t bytes, const uint32_t waiting,
                               const uint32_t items)
{
    const bool active = items > 0;
    auto &self = *impl_;
    auto &f = self.followed[place];
    if (!self.slot->held())
        return 0;
    uint64_t grown = 0;
    if (f.entry == NoEntry || self.segment.users[f.entry].key.load(Relaxed) != f.key)
        self.follow(f, bytes, active);
    if (f.entry != NoEntry) {
        auto &user = self.segment.users[f.entry];
        if (active != f.active && SetActive(user, f.key, self.me(), active))
            f.active = active;
        if (self.me() < Columns)
            Set(user.columns[self.me()], Column(f.origin + bytes, waiting, items));
        const auto elsewhere = ElsewhereBytes(user, self.me());
        grown = (elsewhere - f.elsewhere) & MostBytes;
        f.elsewhere = elsewhere;
        self.seek(f);
    }
    if (static_cast<double>(grown) > self.most())
        grown = 0;
    if (active) {
        // Bytes from parties where the user had no work were excess, which its requests have to make up for.
        if (f.items == 0 && f.alone)
            self.base += static_cast<double>(grown) / self.weight();
        const double part = Impl::part(f, items);
        self.next.all += part;
        self.next.classes[f.cls] += part;
    }
    f.alone = f.items == 0;
    return static_cast<int64_t>(grown);
}

uint32_t SharedLedger::waitingElsewhere(const User place) const { return impl_->followed[place].waiting; }

bool SharedLedger::busyElsewhere(const User place) const { return impl_->followed[place].items > 0; }

void SharedLedger::leave(const User place)
{
    auto &self = *impl_;
    auto &f = self.followed[place];
    if (f.entry != NoEntry && self.slot->held()) {
        auto &user = self.segment.users[f.entry];
        if (SetActive(user, f.key, self.me(), false) && self.me() < Columns)
            Set(user.columns[self.me()], user.columns[self.me()].load(Relaxed) & ~Column(0, MostCount, MostCount));
    }
    f.entry = NoEntry;
    self.free.push_back(place);
}

void SharedLedger::served(const uint32_t n, const std::string_view cls, const uint64_t bytes)
{
    auto &self = *impl_;
    auto &slot = *self.slot;
    if (!slot.held())
        return;
    if (n == 0)
        self.furtherServed = 0;
    if (n >= LastClass) {
        self.furtherServed += bytes;
        Set(slot->classes[LastClass].key, OtherClasses);
        Set(slot->classes[LastClass].served, self.furtherServed);
        return;
    }
    self.classKeys.resize(std::max<size_t>(self.classKeys.size(), n + 1));
    self.classKeys[n] = ClassKey(cls);
    Set(slot->classes[n].key, self.classKeys[n]);
    Set(slot->classes[n].served, bytes);
}

ClassElsewhere SharedLedger::elsewhere(const uint32_t n) const
{
    return n < LastClass ? impl_->classes[n] : ClassElsewhere();
}

bool SharedLedger::measures() const { return !impl_->meteredBefore; }

void SharedLedger::measured(const SharedWindow &window, const Measured &measures)
{
    auto &self = *impl_;
    auto &slot = *self.slot;
    self.rate = window.rate;
    self.metered = measures.metered;
    if (!slot.held())
        return;
    SetReal(slot->limit, window.limit);
    SetReal(slot->rate, window.rate);
    SetReal(slot->utilisation, window.utilisation);
    Set(slot->target, static_cast<uint64_t>(window.queue));
    Set(slot->floor, window.floor);
    Set(slot->received, static_cast<uint64_t>(measures.received));
    Set(slot->own, static_cast<uint64_t>(measures.own));
    Set(slot->metered, measures.metered);
    const auto &path = measures.path;
    Set(slot->trips, path.queue.trips);
    Set(slot->queue, static_cast<uint64_t>(path.queue.queue));
    Set(slot->base, static_cast<uint64_t>(path.queue.base));
    Set(slot->packets, path.packets);
    Set(slot->outOfOrder, path.outOfOrder);
}

bool SharedLedger::settle(const msfrs_time now)
{
    auto &self = *impl_;
    if (now >= self.lookedAt + DeadAfter)
        self.beginAnew(now);
    if (!self.slot->beat(now) && !self.rejoin(now))
        return false;
    auto &slot = *self.slot;
    self.survey(now);
    self.demand = self.next.all;
    if (self.demand > 0)
        self.usual += (self.demand - self.usual) * (self.known ? Memory : 1);
    self.known |= self.demand > 0;
    SetReal(slot->demand, self.demand);
    for (uint32_t n = 0; n < SlotClasses; ++n)
        SetReal(slot->classes[n].demand, self.next.classes[n]);
    self.next = {};
    self.measureOthers(now);
    if (self.inherited) {
        self.inherited = false;
        return true;
    }
    const auto leader = Leader(self.segment, now);
    self.read(leader == self.me() ? Slots : leader);
    return true;
}

std::optional<SharedWindow> SharedLedger::follow() const { return impl_->led; }

} // namespace msfrs
