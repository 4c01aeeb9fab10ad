// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/packet_path.h"

#include "engine/migrate.h"

#include <algorithm>
#include <utility>

namespace msfrs::edge {

namespace {

constexpr size_t Most = Conditioner::Most;
constexpr uint8_t TcpSyn = 2, TcpFin = 1, TcpRst = 4;

/// Whether a TCP segment carries data, and the bytes of its headers.
void ReadSegment(const Arrival &a, Traits &t)
{
    const uint8_t *const tcp = a.data + t.transport;
    if (a.captured < t.transport + 20)
        return;
    const uint32_t headers = static_cast<uint32_t>(t.transport) + 4u * (tcp[12] >> 4);
    if (headers < t.transport + 20 || headers > a.length)
        return;
    t.headers = headers;
    t.ack = headers == a.length && !(tcp[13] & (TcpSyn | TcpFin | TcpRst));
    t.data = headers < a.length;
}

} // namespace

void ReadTraits(const Arrival &a, Traits &t)
{
    t.length = a.length;
    const auto key = ReadKey(a.data, a.captured, &t.transport);
    if (!key)
        return;
    t.readable = true;
    t.key = *key;
    t.origin = a.origin ? *a.origin : *key;
    t.dscp = static_cast<uint8_t>(DscpOf(a.data));
    t.ecn = static_cast<uint8_t>(EcnOf(a.data));
    t.headers = static_cast<uint32_t>(t.transport ? t.transport : t.key.family == Family::V6 ? 40 : 20);
    if (t.key.protocol == Tcp && t.transport)
        ReadSegment(a, t);
}

PacketPath::PacketPath(std::unique_ptr<Schedule> schedule, Conditioner *const conditioner,
                       CommonRate *const common, Verdicts &verdicts, const msfrs_time now):
    schedule_(std::move(schedule)), conditioner_(conditioner), verdicts_(verdicts),
    pacer_(schedule_->config().link.rate, schedule_->config().link.burst, now),
    rate_(common ? std::unique_ptr<RateSource>(std::make_unique<SharedRate>(*common)) : std::make_unique<FixedRate>()),
    counts_(schedule_->config().classes.size()),
    victim_([this](msfrs_item &item) {
        drop(order_.lost(*static_cast<Held *>(item.host), true));
        return true;
    }),
    lost_([this](void *const held) { drop(order_.lost(*static_cast<Held *>(held), false)); })
{
    adopt(now);
}

Held &PacketPath::hold()
{
    if (unused_.empty())
        return held_.emplace_back();
    auto &h = *unused_.back();
    unused_.pop_back();
    h = Held();
    return h;
}

/// \param as the count that it adds to
void PacketPath::drop(Held &h, Volume ClassCounts::*const as)
{
    (counts_[h.cls].*as).add(h.traits.length);
    verdicts_.give(h.id, false, {});
    unused_.push_back(&h);
}

/// \param bytes on the link
void PacketPath::pass(Held &h, const int64_t bytes, const msfrs_time waited)
{
    auto &counts = counts_[h.cls];
    counts.passed.add(h.traits.length);
    counts.waits.add(waited);
    if (observer_)
        observer_(h, bytes);
    verdicts_.give(h.id, true, h.remark ? std::optional(h.mark) : std::nullopt);
    unused_.push_back(&h);
}

/// Whether congestion can be marked at departure, and the connection supports ECN.
bool PacketPath::markable(const Held &h) const
{
    return schedule_->config().markShift && h.traits.ecn != NotCapable;
}

/// Marks the packet for the AQM; does nothing if it is marked already.
void PacketPath::congested(Held &h)
{
    if (std::exchange(h.congested, true))
        return;
    counts_[h.cls].marked.add(h.traits.length);
    h.mark |= MarkCongestion << *schedule_->config().markShift;
    h.remark = true;
}

int64_t PacketPath::onLink(const LinkConfig &link, const Traits &t)
{
    if (t.length <= link.mtu || t.headers >= link.mtu)
        return t.length + link.overhead;
    // Each piece has the headers again.
    const int64_t payload = int64_t{t.length} - t.headers, room = link.mtu - t.headers;
    const int64_t pieces = (payload + room - 1) / room;
    return payload + pieces * (t.headers + link.overhead);
}

void PacketPath::arrive(const Arrival *const arrivals, const size_t n, const msfrs_time now)
{
    const bool rules = schedule_->config().rules != nullptr;
    for (size_t begin = 0; begin < n; begin += Most) {
        const size_t end = std::min(n, begin + Most);
        Held *held[Most];
        Packet packets[Most];
        Verdict verdicts[Most];
        for (size_t i = begin; i < end; ++i) {
            const auto &a = arrivals[i];
            auto &h = hold();
            h.id = a.id;
            h.mark = a.mark;
            ReadTraits(a, h.traits);
            unreadable_ += !h.traits.readable;
            held[i - begin] = &h;
            packets[i - begin] = {a.data, a.captured, a.length};
        }
        if (rules)
            conditioner_->process(packets, end - begin, now, verdicts);
        for (size_t i = 0; i < end - begin; ++i) {
            // A packet that may leave at once does not find later ones in the queue.
            if (pacer_.ready(now))
                service(now);
            if (rules && held[i]->traits.readable)
                applyVerdict(verdicts[i], DscpOf(packets[i].data), *held[i]);
            admit(arrivals[begin + i], *held[i], !rules || verdicts[i].pass, now);
        }
    }
    service(now);
}

void PacketPath::applyVerdict(const Verdict &v, const uint32_t codePoint, Held &h) const
{
    h.traits.perHop = v.cls;
    const auto shift = schedule_->config().markShift;
    if (!shift || codePoint == h.traits.dscp)
        return;
    h.mark = (h.mark & ~(MarkBits << *shift)) | (codePoint | MarkSet) << *shift;
    h.remark = true;
}

/// \param conforms to the rate of its rule
void PacketPath::admit(const Arrival &a, Held &h, const bool conforms, const msfrs_time now)
{
    const int64_t cost = onLink(h);
    const bool free = rate_->seen(a, h.traits, cost, schedule_->config(), now);
    h.traits.owner = rate_->ownerOf(h.traits, schedule_->config(), now);
    h.cls = schedule_->classOf(h.traits);
    h.since = now;
    counts_[h.cls].offered.add(h.traits.length);
    if (!conforms)
        return drop(h, &ClassCounts::policed);
    if (free)
        return pass(h, cost, 0);
    auto &engine = schedule_->engine();
    if (engine.totals().queued.items == 0) {
        if (rate_->stale(now))
            settle(now);
        pacer_.wake(now);
    }
    // A packet that cannot be marked at departure is to be dropped instead.
    const uint32_t flags = markable(h) ? MSFRS_ECN_CAPABLE : 0;
    auto &flow = schedule_->flowOf(h.traits, h.cls);
    rate_->came(flow, cost, now);
    msfrs_item *item = nullptr;
    switch (engine.offer(flow, &cost, &h, now, item, victim_, flags)) {
    case Engine::Offer::Dropped: return drop(h);
    case Engine::Offer::Queued: break;
    case Engine::Offer::Marked: congested(h);
    }
    order_.queued(*item, h, cost);
}

void PacketPath::service(const msfrs_time now)
{
    retry_.reset();
    if (const auto due = rate_->due(); due && now >= *due)
        settle(now);
    pacer_.setRate(rate_->pace(*schedule_));
    const auto &queued = schedule_->engine().totals().queued;
    while (queued.items && pacer_.ready(now)) {
        auto *const item = schedule_->pick(now, lost_, retry_);
        if (!item)
            break;
        release(*item, now);
    }
    rate_->waits(queued.items > 0, now);
}

void PacketPath::release(msfrs_item &item, const msfrs_time now)
{
    auto &h = order_.next(*static_cast<Held *>(item.host));
    auto &flow = static_cast<NamedFlow &>(*item.flow);
    if (order_.overshoots(h, rate_->mostOfABeginning(flow))) {
        if (!markable(h)) { // the turn still counts for its user: the link has carried the packet
            drop(h);
            schedule_->engine().done(item, now);
            return;
        }
        congested(h);
    }
    // A packet without ECN cannot carry the turn's mark.
    if (schedule_->engine().isMarked(item) && h.traits.ecn != NotCapable)
        congested(h);
    const int64_t cost = onLink(h);
    pacer_.sent(cost, now);
    rate_->passed(flow, cost, now - h.since, now);
    pass(h, cost, now - h.since);
    schedule_->engine().done(item, now);
}

std::optional<msfrs_time> PacketPath::next() const
{
    auto next = rate_->due();
    if (schedule_->engine().totals().queued.items > 0)
        next = std::min(next.value_or(INT64_MAX), retry_ ? *retry_ : pacer_.next());
    return next;
}

void PacketPath::join(std::unique_ptr<LinkParty> party, const msfrs_time now)
{
    rate_ = std::move(party);
    rate_->adopt(*schedule_, now);
    settle(now);
}

void PacketPath::leave()
{
    if (!party())
        return;
    rate_->release();
    rate_ = std::make_unique<FixedRate>();
    pacer_.setRate(rate_->pace(*schedule_));
}

void PacketPath::settle(const msfrs_time now)
{
    if (rate_->settle(*schedule_, now))
        pacer_.setRate(rate_->pace(*schedule_));
    else
        leave();
}

/// Takes a new source of the rate for a new schedule, unless the present source accepts it.
void PacketPath::adopt(const msfrs_time now)
{
    if (rate_->adopt(*schedule_, now))
        return;
    const auto &config = schedule_->config();
    if (config.link.found())
        rate_ = std::make_unique<FoundRate>(config.link.bounds, now);
    else
        rate_ = std::make_unique<FixedRate>();
}

void PacketPath::replace(std::unique_ptr<Schedule> next, const msfrs_time now)
{
    const auto &config = next->config();
    MigrationPlan plan;
    plan.sameFlows = schedule_->config().flow.sameNames(config.flow);
    plan.place = [&](const msfrs_item &item) {
        const auto &h = *static_cast<Held *>(item.host);
        const auto cls = next->classOf(h.traits);
        return MigrationPlan::Place{&next->flowOf(h.traits, cls), {onLink(config.link, h.traits)}};
    };
    auto counts = countsFor(config);
    plan.moved = [&](msfrs_item &item) {
        auto &h = *static_cast<Held *>(item.host);
        h.item = &item;
        h.cls = next->classOf(h.traits);
        // Counted by the class in which it waits now, from the beginning.
        counts[h.cls].offered.add(h.traits.length);
    };
    rate_->release();
    Migrate(schedule_->engine(), next->engine(), plan, now);
    schedule_ = std::move(next); // the packets of the old one are still ours
    counts_ = std::move(counts);
    pacer_.configure(config.link.rate, config.link.burst);
    adopt(now);
    service(now);
}

/// Classes of the same name keep their counts. Waiting packets are removed from those of their class; replace() adds
/// them to those of the new one.
std::vector<ClassCounts> PacketPath::countsFor(const Config &next) const
{
    const auto &now = schedule_->config();
    auto old = counts();
    std::vector<ClassCounts> all(next.classes.size());
    for (size_t n = 0; n < old.size(); ++n) {
        old[n].offered.packets -= old[n].queued.packets;
        old[n].offered.bytes -= old[n].queued.bytes;
        old[n].queued = {};
        if (const auto kept = next.classNamed(now.classes[n].name); kept < all.size())
            all[kept] = old[n];
    }
    return all;
}

void PacketPath::flush(const msfrs_time now)
{
    schedule_->pickAll(now, lost_, [this](msfrs_item &item, const msfrs_time at) { release(item, at); });
}

std::vector<ClassCounts> PacketPath::counts() const
{
    auto all = counts_;
    for (size_t n = 0; n < all.size(); ++n) {
        auto &c = all[n];
        c.queued.packets = c.offered.packets - c.policed.packets - c.dropped.packets - c.passed.packets;
        c.queued.bytes = c.offered.bytes - c.policed.bytes - c.dropped.bytes - c.passed.bytes;
    }
    return all;
}

} // namespace msfrs::edge
