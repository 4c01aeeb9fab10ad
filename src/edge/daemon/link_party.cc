// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/link_party.h"

#include "edge/daemon/user_order.h"
#include "ledger/quota_table.h"
#include "ledger/shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace msfrs::edge {

using ledger::Slots;

namespace {

/// What half and double do: docs/lab/constants.md. Greater Headroom and Least: a rival has its share sooner, and more
/// of the link is idle beside one that does not grow.
constexpr double Headroom = 1.25, Least = 0.02; ///< times a rival's rate, and of the capacity, so that it can grow
constexpr double Memory = 0.5;                  ///< s: time constant of mean rates, five settlements
constexpr msfrs_time Wanting = 500'000'000;     ///< ns for which a user or a party wants more after it has waited
constexpr msfrs_time Patience = 5'000'000;      ///< ns that a packet may wait without its user wanting more
constexpr msfrs_time Kept = 1'000'000'000;      ///< ns without a packet after which a user is no longer followed
constexpr double MostLoss = 0.2;                ///< part of the arrivals compensated for; see Loss in link_party.h
constexpr double LongRoundTrip = 0.3;           ///< s, as RequestConfig::rtt: over such a path a connection may fill
                                                ///< its user's share
constexpr double Rest = 0.25;                   ///< fraction of a slot that is ignored; see Slots in link_party.h
constexpr double FewPlaces = 3;                 ///< slots in all, below which a fraction of one is carried over
constexpr double Payload = 1448.0 / 1514;       ///< of a full segment's frame: the bytes that a proxy reads and charges
constexpr double LeastRate = 8000;              ///< bit/s: above 0, which would be no limit
constexpr double FullPacket = 1514 * 8;         ///< bits of an Ethernet frame
constexpr msfrs_time Never = std::numeric_limits<msfrs_time>::min() / 2;
constexpr int64_t Quantum = 16384;              ///< bytes that a slot stands for: RequestConfig::quantum
constexpr double MostBytes = 1e9;               ///< of a party between two looks; more is invalid

/// Bytes of frames in the ledger's unit, which is that of responses.
uint64_t AsRead(const uint64_t bytes) { return static_cast<uint64_t>(static_cast<double>(bytes) * Payload); }

ledger::IpBits BitsOf(const Address &a, const Family family)
{
    return family == Family::V6 ? ledger::IpBits{a.high, a.low} : ledger::IpBits4(static_cast<uint32_t>(a.low));
}

uint32_t FreeSlot(const ledger::Segment &segment, const msfrs_time now)
{
    const auto free = ledger::OwnSlot::Free(segment, now);
    if (!free)
        throw ConfigError("all " + std::to_string(Slots) + " slots of the ledger are in use");
    return *free;
}

} // namespace

double EdgeRate(const double capacity, const std::vector<Rival> &rivals, const double demand, const double light)
{
    const double ours = std::min(capacity, light * Headroom);
    std::vector<ledger::Want> wants;
    for (const auto &r : rivals) {
        const double most = r.waits ? capacity : std::min(capacity, r.rate * Headroom + capacity * Least);
        wants.push_back({r.demand, most});
    }
    wants.push_back({demand, capacity});
    return ours + ledger::Shares(wants, capacity - ours).back();
}

void LinkParty::Mean::add(const double bytes, const double seconds)
{
    const double part = 1 - std::exp(-seconds / Memory);
    if (seconds > 0)
        rate += (bytes * 8 / seconds - rate) * part;
}

LinkParty::LinkParty(ledger::Segment &segment, Log log, const msfrs_time now):
    segment_(segment), slot_(FreeSlot(segment, now)),
    ledger_(segment, {ledger::Kind::Edge, slot_, 0}, std::move(log), now), settled_(now)
{
    for (auto &other : others_)
        other.waited = Never;
}

bool LinkParty::adopt(const Schedule &schedule, msfrs_time)
{
    heaviest_ = 0;
    for (const auto cls : schedule.engine().classes()) {
        ledger_.served(cls->index, cls->name, AsRead(classes_[ledger::ClassKey(cls->name)]));
        heaviest_ = std::max(heaviest_, cls->weight);
    }
    return true;
}

void LinkParty::release()
{
    for (const auto &user : users_) {
        ledger_.leave(user.number);
        user.flow->party = 0;
    }
    users_.clear();
}

ledger::Owner LinkParty::ownerOf(const Traits &t, const Config &config, const msfrs_time now)
{
    if (!t.readable || !config.flow.isInside(t.key.destination, t.key.family))
        return {};
    if (const auto told = ledger::OwnerOf(segment_.directory, BitsOf(t.key.destination, t.key.family), now))
        return ledger::ServedAs(segment_.quotas, *told);
    // The name that Squid gives users known by their address alone.
    const auto bits = config.flow.prefix6;
    auto name = AddressText(FlowRule{FlowBy::Destination, bits, {}}.nameOf(t.key).view());
    if (t.key.family == Family::V6 && bits < 128)
        name += "/" + std::to_string(bits);
    const auto user = ledger::UserKey(config.classes[config.defaultClass].name, name);
    return ledger::ServedAs(segment_.quotas, {0, user});
}

void LinkParty::came(NamedFlow &flow, const int64_t bytes, const msfrs_time now)
{
    received_ += static_cast<uint64_t>(bytes);
    const auto key = Schedule::userOf(flow);
    if (key == 0)
        return;
    if (flow.party == 0) {
        const double weight = flow.cls->weight * flow.weight;
        const auto number = ledger_.enterKeys(ledger::ClassKey(flow.cls->name), key, weight, 0, 0);
        users_.push_back({&flow, number, weight, 0, 0, now, Never});
        flow.party = static_cast<uint32_t>(users_.size());
    }
    auto &user = *find(flow);
    user.bytes += static_cast<uint64_t>(bytes);
    user.latest = now;
    flow.idleSince = now; // its engine keeps it while it is followed
}

void LinkParty::passed(NamedFlow &flow, const int64_t bytes, const msfrs_time waited, const msfrs_time now)
{
    forwarded_ += static_cast<uint64_t>(bytes);
    const auto user = find(flow);
    if (!user)
        return;
    // Packets dropped here are charged to their user, not to the others of the class.
    classes_[ledger::ClassKey(flow.cls->name)] += static_cast<uint64_t>(bytes);
    if (waited >= patience())
        user->wanted = now;
}

int64_t LinkParty::mostOfABeginning(const NamedFlow &flow) const
{
    const double part = flow.party && seen_ > 0 ? std::min(1.0, users_[flow.party - 1].weight / seen_) : 1;
    return std::max(UserOrder::Early, static_cast<int64_t>(static_cast<double>(rate_) / 8 * part * LongRoundTrip));
}

/// Includes a packet in transmission and one of another user ahead: those are no queue of the user's own.
msfrs_time LinkParty::patience() const
{
    return Patience + (rate_ > 0 ? static_cast<msfrs_time>(2 * FullPacket * 1e9 / static_cast<double>(rate_)) : 0);
}

/// Publishes the users' service here, and charges that elsewhere.
void LinkParty::exchange(Engine &engine, const msfrs_time now, const double seconds)
{
    double light = 0;
    seen_ = 0;
    for (size_t n = 0; n < users_.size();) {
        auto &user = users_[n];
        auto &flow = *user.flow;
        if (flow.backlog > 0 && now - flow.head->enqueued >= patience())
            user.wanted = now;
        const bool wants = now - user.wanted < Wanting;
        const auto elsewhere = ledger_.exchange(user.number, AsRead(user.bytes), 0, wants ? 1 : 0);
        if (elsewhere > 0 && (wants || flow.backlog > 0))
            engine.chargeElsewhere(flow, static_cast<int64_t>(static_cast<double>(elsewhere) / Payload), now);
        const auto charged = static_cast<int64_t>(AsRead(user.bytes) - AsRead(user.before));
        ledger::CountBytes(segment_.quotas, Schedule::userOf(flow), charged);
        const auto grown = user.bytes - user.before;
        user.before = user.bytes;
        light += wants ? 0 : static_cast<double>(grown);
        if (flow.backlog + flow.in_service > 0 || now - user.latest < Kept) {
            seen_ += user.weight;
            ++n;
            continue;
        }
        ledger_.leave(user.number);
        flow.party = 0;
        users_[n] = users_.back();
        users_.pop_back();
        if (n < users_.size())
            users_[n].flow->party = static_cast<uint32_t>(n + 1);
    }
    light_.add(light, seconds);
}

void LinkParty::lookAround(const msfrs_time now, const double seconds)
{
    rivals_.clear();
    for (uint32_t n = 0; n < Slots; ++n) {
        const auto reading = n == slot_ ? std::nullopt : ledger::ReadSlot(segment_.slots[n], now);
        const auto figures = reading ? ledger::ReadFigures(segment_.slots[n]) : std::nullopt;
        auto &other = others_[n];
        if (!figures)
            continue;
        const auto grown = static_cast<double>(figures->own - other.own);
        if (other.epoch == reading->epoch && grown <= MostBytes)
            other.rate.add(grown, seconds);
        else if (other.epoch != reading->epoch)
            other = {reading->epoch, 0, {}, Never};
        other.own = figures->own;
        if (reading->waiting > 0)
            other.waited = now;
        rivals_.push_back({reading->demand, other.rate.rate, now - other.waited < Wanting});
    }
}

void LinkParty::takeShare()
{
    const auto window = ledger_.follow();
    if (!window) {
        rate_ = 0;
        return;
    }
    double demand = ledger::Real(segment_.slots[slot_].demand.load());
    double light = light_.rate;
    if (demand == 0) {
        demand = seen_ > 0 ? seen_ : heaviest_;
        light = 0;
    }
    const double kept = came_.rate > 0 ? std::clamp(1 - lost_.rate / came_.rate, 1 - MostLoss, 1.0) : 1;
    const bool held = std::any_of(rivals_.begin(), rivals_.end(), [](const Rival &r) { return r.waits; });
    const double share = EdgeRate((held ? Held : Capacity) * window->rate, rivals_, demand, light);
    rate_ = static_cast<int64_t>(std::max(LeastRate, share * kept));
}

uint32_t LinkParty::places()
{
    const auto window = ledger_.follow();
    if (!window) {
        part_ = 0;
        return 0;
    }
    const double rate = std::min({came_.rate, passed_.rate / (1 - MostLoss), window->rate});
    const double wanted = window->limit * rate / window->rate;
    if (window->limit >= FewPlaces) {
        part_ = 0;
        return static_cast<uint32_t>(std::max(0.0, std::ceil(wanted - Rest)));
    }
    part_ += wanted;
    const double whole = std::floor(part_);
    part_ -= whole;
    return static_cast<uint32_t>(whole);
}

bool LinkParty::settle(Schedule &schedule, const msfrs_time now)
{
    auto &engine = schedule.engine();
    const double seconds = static_cast<double>(now - settled_) * 1e-9;
    settled_ = now;
    exchange(engine, now, seconds);
    const auto &queued = engine.totals().queued;
    const auto came = static_cast<double>(received_ - std::exchange(receivedBefore_, received_));
    const auto passed = static_cast<double>(forwarded_ - std::exchange(forwardedBefore_, forwarded_));
    came_.add(came, seconds);
    passed_.add(passed, seconds);
    lost_.add(came - passed - static_cast<double>(queued.cost - std::exchange(queuedBefore_, queued.cost)), seconds);
    lookAround(now, seconds);
    adopt(schedule, now);
    const auto waiting = static_cast<uint64_t>(std::count_if(
        users_.begin(), users_.end(), [now](const User &user) { return now - user.wanted < Wanting; }));
    ledger_.look(now);
    const auto held = places();
    ledger_.say({held, waiting, queued.items, static_cast<int64_t>(forwarded_), Quantum, held * Quantum}, now);
    ledger_.measured(ledger_.follow().value_or(SharedWindow{}),
                     {static_cast<double>(received_), static_cast<double>(forwarded_), false});
    if (!ledger_.settle(now))
        return false;
    takeShare();
    return true;
}

} // namespace msfrs::edge
