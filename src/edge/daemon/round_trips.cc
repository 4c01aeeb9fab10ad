// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/round_trips.h"

#include <algorithm>
#include <utility>

namespace msfrs::edge {

namespace {

constexpr size_t Ways = 4; ///< entries that a connection may have; if all are in use, it is not followed
enum Flag : uint8_t { Fin = 1, Syn = 2, Reset = 4, Acknowledges = 16 };
enum Option : uint8_t { End = 0, Nothing = 1, Timestamps = 8 };

uint32_t Get32(const uint8_t *const p)
{
    return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
}

/// Whether sequence number or stamp `a` is beyond `b`; both wrap around.
bool Beyond(const uint32_t a, const uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

void ReadOptions(const uint8_t *at, const uint8_t *const end, TcpSegment &s)
{
    while (at < end && *at != End) {
        if (*at == Nothing) {
            ++at;
            continue;
        }
        if (end - at < 2 || at[1] < 2 || at[1] > end - at)
            return;
        if (*at == Timestamps && at[1] == 10) {
            s.stamped = true;
            s.stamp = Get32(at + 2);
            s.echo = Get32(at + 6);
            return;
        }
        at += at[1];
    }
}

/// Mixes (MurmurHash3's finalizer, A. Appleby).
uint64_t Mix(uint64_t v)
{
    v = (v ^ v >> 33) * 0xff51afd7ed558ccdULL;
    v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return v ^ v >> 33;
}

uint64_t KeyOf(const Address &a) { return Mix(a.low + Mix(a.high)); }

FlowKey Turned(const FlowKey &k)
{
    auto turned = k;
    std::swap(turned.source, turned.destination);
    std::swap(turned.sourcePort, turned.destinationPort);
    return turned;
}

size_t FirstPlace(const FlowKey &k)
{
    const auto ports = uint64_t{k.sourcePort} << 32 | k.destinationPort;
    return Mix(KeyOf(k.source) + Mix(KeyOf(k.destination) + ports)) % (RoundTrips::Most / Ways) * Ways;
}

} // namespace

std::optional<TcpSegment> ReadTcp(const uint8_t *const packet, const size_t captured, const size_t length,
                                  const size_t transport)
{
    if (transport == 0 || captured < transport + 20)
        return {};
    const uint8_t *const tcp = packet + transport;
    const size_t header = 4u * (tcp[12] >> 4), end = transport + header;
    if (header < 20 || end > captured || end > length)
        return {};
    TcpSegment s;
    const auto flags = tcp[13];
    s.syn = flags & Syn;
    s.ack = flags & Acknowledges;
    s.reset = flags & Reset;
    s.from = Get32(tcp + 4);
    s.to = s.from + static_cast<uint32_t>(length - end) + s.syn + ((flags & Fin) != 0);
    s.acknowledged = Get32(tcp + 8);
    ReadOptions(tcp + 20, tcp + header, s);
    return s;
}

void RoundTrips::Flow::send(const uint32_t what, const msfrs_time now)
{
    if (waiting == sent.size()) {
        if (now - sent[first].at <= Longest)
            return;
        first = (first + 1) % sent.size();
        --waiting;
    }
    sent[(first + waiting++) % sent.size()] = {what, now};
}

/// All up to `upTo` was answered. \param exactly only an entry equal to `upTo` gives a sample
std::optional<msfrs_time> RoundTrips::Flow::answered(const uint32_t upTo, const bool exactly, const msfrs_time now)
{
    std::optional<msfrs_time> time;
    for (; waiting > 0 && !Beyond(sent[first].what, upTo); --waiting) {
        if (!exactly || sent[first].what == upTo)
            time = now - sent[first].at;
        first = (first + 1) % sent.size();
    }
    if (!time || *time <= 0 || *time > Longest)
        return {};
    trip = *time;
    return time;
}

/// The server does not use timestamps, so neither side sends them from now on. \returns the RTT sample of the
/// handshake, if there was one attempt
std::optional<msfrs_time> RoundTrips::Flow::unstamped(const msfrs_time now)
{
    stamped = false;
    const bool once = waiting == 1;
    const auto time = answered(sent[first].what, true, now);
    waiting = 0;
    return once ? time : std::nullopt;
}

RoundTrips::Flow *RoundTrips::find(const FlowKey &upward)
{
    const auto first = flows_.begin() + static_cast<std::ptrdiff_t>(FirstPlace(upward));
    const auto end = first + Ways;
    const auto found = std::find_if(first, end, [&](const Flow &f) { return f.used && f.key == upward; });
    return found == end ? nullptr : &*found;
}

/// Takes an entry for a connection that is not followed; null: all of them have recent traffic.
RoundTrips::Flow *RoundTrips::place(const FlowKey &upward, const msfrs_time now)
{
    const auto first = flows_.begin() + static_cast<std::ptrdiff_t>(FirstPlace(upward));
    const auto free = [&](const Flow &f) { return !f.used || now - f.latest > Idle; };
    const auto found = std::find_if(first, first + Ways, free);
    if (found == first + Ways)
        return nullptr;
    *found = Flow();
    found->key = upward;
    found->used = true;
    return &*found;
}

void RoundTrips::up(const FlowKey &key, const TcpSegment &s, const msfrs_time now)
{
    auto flow = find(key);
    if (flow && (s.reset || (s.syn && s.to != flow->sentTo))) { // it has ended, or starts again
        flow->used = false;
        flow = nullptr;
    }
    if (s.reset || (!flow && !(flow = place(key, now))))
        return;
    flow->latest = now;
    if (s.ack && flow->heard && Beyond(s.acknowledged, flow->expected)) { // segments not seen here have arrived
        flow->expected = s.acknowledged;
        flow->highest = Beyond(flow->highest, flow->expected) ? flow->highest : flow->expected;
    }
    const bool fresh = s.to != s.from && (!flow->spoke || Beyond(s.to, flow->sentTo));
    if (s.stamped) {
        const auto apart = std::max(Apart, flow->trip / static_cast<msfrs_time>(flow->sent.size()));
        const bool newer = !flow->stamped || Beyond(s.stamp, flow->lastStamp);
        const auto last = flow->sent[(flow->first + flow->waiting + flow->sent.size() - 1) % flow->sent.size()].at;
        if (newer && (flow->waiting == 0 || now - last >= apart))
            flow->send(s.stamp, now);
        if (newer) // an echo is for the first segment with the timestamp, and no other
            flow->lastStamp = s.stamp;
        flow->stamped = true;
    } else if (fresh && !flow->stamped && flow->waiting == 0) {
        flow->send(s.to, now);
    } else if (s.to != s.from && !fresh && !flow->stamped) {
        flow->waiting = 0; // retransmitted: an answer may be to either
    }
    if (!flow->spoke || Beyond(s.to, flow->sentTo))
        flow->sentTo = s.to;
    flow->spoke = true;
}

std::optional<RoundTrip> RoundTrips::down(const FlowKey &key, const TcpSegment &s, const msfrs_time now)
{
    const auto flow = find(Turned(key));
    if (!flow)
        return {};
    flow->latest = now;
    if (s.reset) {
        flow->used = false;
        return {};
    }
    order(*flow, s);
    if (!s.ack)
        return {};
    std::optional<msfrs_time> time;
    if (!flow->stamped)
        time = flow->answered(s.acknowledged, false, now);
    else if (s.stamped && !Beyond(s.echo, flow->lastStamp)) // otherwise it was never sent
        time = flow->answered(s.echo, true, now);
    else if (s.syn && !s.stamped)
        time = flow->unstamped(now);
    if (!time)
        return {};
    return RoundTrip{KeyOf(key.source), *time};
}

/// Counts segments that arrive while an earlier one is missing. Holes are not recorded: filling the first one fills
/// all.
void RoundTrips::order(Flow &flow, const TcpSegment &s)
{
    if (s.from == s.to)
        return;
    ++packets_;
    if (!flow.heard || s.syn) {
        flow.heard = true;
        flow.expected = flow.highest = s.to;
        return;
    }
    if (Beyond(s.from, flow.expected)) {
        ++outOfOrder_;
    } else if (Beyond(s.to, flow.expected)) {
        flow.expected = Beyond(flow.highest, s.to) ? flow.highest : s.to;
    }
    if (Beyond(s.to, flow.highest))
        flow.highest = s.to;
}

} // namespace msfrs::edge
