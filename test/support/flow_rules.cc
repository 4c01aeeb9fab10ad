// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/flow_rules.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace msfrs::test {

using namespace edge;

namespace {

unsigned Bits(const Family f) { return f == Family::V4 ? 32 : 128; }
Address LastOf(const Family f) { return f == Family::V4 ? Address{0, LastAddress4} : LastAddress; }

Address RandomAddress(const Family f, Random &random)
{
    return f == Family::V4 ? Address{0, random.bits() & LastAddress4} : Address{random.bits(), random.bits()};
}

/// The bits of an address after its first `length` ones.
Address HostBits(const Family f, const unsigned length)
{
    const unsigned n = Bits(f) - length;
    if (n >= 64)
        return {n == 128 ? UINT64_MAX : (uint64_t(1) << (n - 64)) - 1, UINT64_MAX};
    return {0, (uint64_t(1) << n) - 1};
}

Range<Address> Prefix(const Family f, const Address &a, const unsigned length)
{
    const Address host = HostBits(f, length);
    return {{a.high & ~host.high, a.low & ~host.low}, {a.high | host.high, a.low | host.low}};
}

Address Within(const Range<Address> &r, Random &random)
{
    if (r.first.high == r.last.high)
        return {r.first.high,
                r.last.low - r.first.low == UINT64_MAX ? random.bits()
                                                       : r.first.low + random.below(r.last.low - r.first.low + 1)};
    const uint64_t span = r.last.high - r.first.high;
    const Address a{span == UINT64_MAX ? random.bits() : r.first.high + random.below(span + 1), random.bits()};
    return std::max(r.first, std::min(a, r.last));
}

uint32_t Within(const Range<uint32_t> &r, Random &random)
{
    return static_cast<uint32_t>(random.between(r.first, r.last));
}

FlowKey PointOf(const Match &m, const Family f, Random &random)
{
    FlowKey k;
    k.family = f;
    const auto of = [&](const Range<Address> &r) {
        return Within(Range<Address>{r.first, std::min(r.last, LastOf(f))}, random);
    };
    k.source = of(m.source);
    k.destination = of(m.destination);
    const auto port = [&](const Range<uint32_t> &r) {
        return std::min(Within(r, random), r.first == NoPort ? NoPort : 65535u);
    };
    k.sourcePort = port(m.sourcePort);
    k.destinationPort = port(m.destinationPort);
    k.protocol = static_cast<uint8_t>(Within(m.protocol, random));
    return k;
}

/// One of several values, each with its probability.
template <class T>
T Draw(const std::vector<std::pair<double, T>> &shares, Random &random)
{
    for (const auto &[share, value] : shares) {
        if (random.chance(share))
            return value;
    }
    return shares.back().second;
}

/// The networks of a site: all but the first few are subnets of earlier ones.
class Networks {
public:
    Networks(const Family f, const size_t n, Random &random): family_(f), random_(random)
    {
        for (size_t i = 0; i < n; ++i) {
            const unsigned least = Bits(f) / 4;
            if (i < 16) {
                nets_.emplace_back(RandomAddress(f, random), least + random.below(least));
            } else {
                const auto &[net, length] = nets_[random.below(nets_.size())];
                const auto longer = std::min<uint64_t>(length + 1 + random.below(Bits(f) / 4), 3 * Bits(f) / 4);
                nets_.emplace_back(Within(Prefix(f, net, length), random), static_cast<unsigned>(longer));
            }
        }
    }

    /// \param any, host fractions of the rules with any address, or with a single one
    Range<Address> draw(const double any, const double host)
    {
        if (random_.chance(any))
            return Prefix(family_, {}, 0);
        const auto &[net, length] = nets_[random_.below(nets_.size())];
        const auto in = Within(Prefix(family_, net, length), random_);
        if (random_.chance(host))
            return Prefix(family_, in, Bits(family_));
        return Prefix(family_, in, random_.chance(0.7) ? length : length + (Bits(family_) - length) / 2);
    }

private:
    Family family_;
    Random &random_;
    std::vector<std::pair<Address, unsigned>> nets_;
};

using Ports = Range<uint32_t>;
constexpr Ports AnyPort{0, NoPort};

auto Tuple(const Match &m)
{
    return std::make_tuple(m.source.first, m.source.last, m.destination.first, m.destination.last, m.sourcePort.first,
                           m.sourcePort.last, m.destinationPort.first, m.destinationPort.last, m.protocol.first,
                           m.protocol.last);
}

/// Width of an address range in doublings; for a whole dimension the greatest.
unsigned Width(const Range<Address> &r)
{
    const uint64_t high = r.last.high - r.first.high, low = r.last.low - r.first.low;
    unsigned n = 0;
    for (uint64_t x = high ? high : low; x; x >>= 1)
        ++n;
    return high ? n + 64 : n;
}

} // namespace

std::vector<Match> AccessList(const size_t rules, const Family f, const uint64_t seed)
{
    Random random(seed);
    Networks from(f, 64 + rules / 8, random), to(f, 64 + rules / 16, random);
    std::vector<Ports> services, ranges;
    for (const uint32_t p : {80, 443, 53, 25, 22, 21, 110, 143, 161, 123, 389, 445, 1433, 1521, 3306, 3389, 5060, 8080})
        services.push_back({p, p});
    while (services.size() < 60) {
        const auto p = static_cast<uint32_t>(random.below(10000));
        services.push_back({p, p});
    }
    while (ranges.size() < 20) {
        const auto p = static_cast<uint32_t>(random.between(1024, 60000));
        ranges.push_back({p, p + static_cast<uint32_t>(random.between(1, 5000))});
    }
    const Ports high{1024, 65535}, low{0, 1023};

    std::vector<Match> all;
    const auto less = [](const Match &a, const Match &b) { return Tuple(a) < Tuple(b); };
    std::set<Match, decltype(less)> there(less);
    while (all.size() < rules) {
        Match m;
        m.family = f;
        m.source = from.draw(0.25, 0.3);
        m.destination = to.draw(0.1, 0.5);
        const auto protocol = Draw<uint32_t>({{0.7, 6}, {0.7, 17}, {0.4, 1}, {0.2, 50}, {1, 256}}, random);
        if (protocol < 256)
            m.protocol = {protocol, protocol};
        if (protocol == 6 || protocol == 17) {
            m.sourcePort =
                Draw<Ports>({{0.85, AnyPort}, {0.5, high}, {0.7, services[random.below(20)]}, {1, ranges[0]}}, random);
            m.destinationPort = Draw<Ports>({{0.25, AnyPort}, {0.75, services[random.below(services.size())]},
                                             {0.4, high}, {0.1, low}, {1, ranges[random.below(ranges.size())]}},
                                            random);
        }
        if (there.insert(m).second)
            all.push_back(m);
    }
    std::stable_sort(all.begin(), all.end(), [](const Match &a, const Match &b) {
        return Width(a.source) + Width(a.destination) < Width(b.source) + Width(b.destination);
    });
    return all;
}

std::vector<FlowKey> Traffic(const std::vector<Match> &rules, const size_t packets, const Family f, const uint64_t seed)
{
    Random random(seed);
    std::vector<size_t> order(rules.size());
    for (size_t r = 0; r < order.size(); ++r)
        std::swap(order[r] = r, order[random.below(r + 1)]);
    std::vector<FlowKey> all;
    while (all.size() < packets) {
        if (rules.empty() || random.chance(0.1)) {
            all.push_back(PointOf(Match(), f, random));
            continue;
        }
        // The square of a uniform draw: half of the traffic matches a quarter of the rules.
        const double u = static_cast<double>(random.below(1u << 20)) / (1u << 20);
        all.push_back(PointOf(rules[order[static_cast<size_t>(u * u * static_cast<double>(rules.size()))]], f, random));
    }
    return all;
}

namespace {

/// Few distinct values, so that ranges overlap in every way.
Address OddAddress(const Family f, Random &random)
{
    const Address last = LastOf(f);
    switch (random.below(5)) {
    case 0: return {};
    case 1: return last;
    case 2: return RandomAddress(f, random);
    default: {
        Address a{f == Family::V4 ? 0 : random.below(2) * (uint64_t(1) << 63), random.below(4) << 14};
        a.low += random.below(3) + random.below(3) * 256;
        return random.chance(0.2) && f == Family::V6 ? Address{a.high, UINT64_MAX - a.low} : a;
    }
    }
}

uint32_t OddNumber(const uint32_t last, Random &random)
{
    switch (random.below(4)) {
    case 0: return random.chance(0.5) ? 0 : last;
    case 1: return static_cast<uint32_t>(random.below(last + 1));
    default: return std::min(static_cast<uint32_t>(random.below(4) * 255 + random.below(4)), last);
    }
}

template <class T>
Range<T> Ordered(const T &a, const T &b)
{
    return a < b ? Range<T>{a, b} : Range<T>{b, a};
}

template <class T>
T AtAnEnd(const Range<T> &r, Random &random)
{
    return random.chance(0.5) ? r.first : r.last;
}

Address Beside(const Address &a, const Family f, Random &random)
{
    switch (random.below(4)) {
    case 0: return f == Family::V4 ? Address{0, (a.low + 1) & LastAddress4} : a.next();
    case 1: return f == Family::V4 ? Address{0, (a.low - 1) & LastAddress4} : Address{a.high - (a.low == 0), a.low - 1};
    default: return a;
    }
}

uint32_t Beside(const uint32_t n, const uint32_t last, Random &random)
{
    return std::min(n + static_cast<uint32_t>(random.below(3)) - (n > 0), last);
}

} // namespace

std::vector<Match> OddRules(const size_t rules, Random &random)
{
    std::vector<Match> all;
    const auto number = [&](const uint32_t last) {
        return random.chance(0.4) ? Range<uint32_t>{0, last}
                                  : Ordered(OddNumber(last, random), OddNumber(last, random));
    };
    while (all.size() < rules) {
        Match m;
        if (!random.chance(0.1)) {
            const auto f = random.chance(0.5) ? Family::V4 : Family::V6;
            m.family = f;
            if (!random.chance(0.2))
                m.source = Ordered(OddAddress(f, random), OddAddress(f, random));
            if (!random.chance(0.2))
                m.destination = Ordered(OddAddress(f, random), OddAddress(f, random));
        }
        m.sourcePort = number(NoPort);
        m.destinationPort = number(NoPort);
        m.protocol = number(255);
        all.push_back(m);
    }
    return all;
}

std::vector<FlowKey> OddTraffic(const std::vector<Match> &rules, const size_t packets, Random &random)
{
    std::vector<FlowKey> all;
    const auto rule = [&]() -> const Match & { return rules[random.below(rules.size())]; };
    while (all.size() < packets) {
        FlowKey k;
        k.family = random.chance(0.5) ? Family::V4 : Family::V6;
        const auto address = [&](const Range<Address> Match::*const field) {
            const auto &m = rule();
            if (random.chance(0.1) || (m.family && *m.family != k.family))
                return OddAddress(k.family, random);
            return Beside(std::min(AtAnEnd(m.*field, random), LastOf(k.family)), k.family, random);
        };
        k.source = address(&Match::source);
        k.destination = address(&Match::destination);
        k.sourcePort = Beside(AtAnEnd(rule().sourcePort, random), NoPort, random);
        k.destinationPort = Beside(AtAnEnd(rule().destinationPort, random), NoPort, random);
        k.protocol = static_cast<uint8_t>(Beside(AtAnEnd(rule().protocol, random), 255, random));
        all.push_back(k);
    }
    return all;
}

} // namespace msfrs::test
