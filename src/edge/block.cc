// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/block.h"

#include <algorithm>

namespace msfrs::edge {

namespace {

constexpr size_t MostPairs = 65536; ///< entries of a table: 128 KB

/// Merges two dimensions, unless the table would have too many entries or vectors.
bool Pair(const VectorSet &a, const VectorSet &b, const unsigned rules, VectorSet &vectors, Pairing &pairing)
{
    if (a.size() * b.size() > MostPairs)
        return false;
    VectorSet both(rules);
    std::vector<VectorId> table;
    table.reserve(a.size() * b.size());
    for (size_t i = 0; i < a.size(); ++i) {
        const Vector left = a.copy(i);
        for (size_t j = 0; j < b.size(); ++j) {
            Vector v = b.copy(j);
            for (unsigned w = 0; w < BlockWords; ++w)
                v[w] &= left[w];
            const auto id = both.add(v);
            if (!id)
                return false;
            table.push_back(*id);
        }
    }
    vectors = std::move(both);
    pairing.table = std::move(table);
    pairing.stride = static_cast<uint32_t>(b.size());
    return true;
}

template <class T>
std::vector<Range<T>> Ranges(const std::vector<Match> &all, const std::vector<uint32_t> &numbers,
                             const Range<T> Match::*const field)
{
    std::vector<Range<T>> ranges;
    for (const auto n : numbers)
        ranges.push_back(all[n].*field);
    return ranges;
}

/// The 32 bits of an IPv4 address; a rule for both families ends with the last of them.
std::vector<Range<uint32_t>> Narrow(const std::vector<Range<Address>> &wide)
{
    std::vector<Range<uint32_t>> ranges;
    for (const auto &r : wide) {
        const bool whole = r.last.high || r.last.low > LastAddress4;
        ranges.push_back({static_cast<uint32_t>(r.first.low),
                          whole ? LastAddress4 : static_cast<uint32_t>(r.last.low)});
    }
    return ranges;
}

} // namespace

Block::Block(const std::vector<Match> &all, std::vector<uint32_t> numbers, const Family f)
    : rules(std::move(numbers))
{
    const auto n = static_cast<unsigned>(rules.size());
    for (const auto field : {&Match::source, &Match::destination}) {
        const auto ranges = Ranges(all, rules, field);
        auto &axis = axes.emplace_back(n);
        if (f == Family::V4)
            addresses4.emplace_back(Cut(Narrow(ranges), LastAddress4, axis), 32);
        else
            addresses6.emplace_back(Cut(ranges, LastAddress, axis));
    }
    VectorSet sourcePorts(n), destinationPorts(n), protocols(n);
    ports.emplace_back(Cut(Ranges(all, rules, &Match::sourcePort), NoPort, sourcePorts), 16);
    ports.emplace_back(Cut(Ranges(all, rules, &Match::destinationPort), NoPort, destinationPorts), 16);
    const auto cut = Cut(Ranges(all, rules, &Match::protocol), 255u, protocols);
    for (size_t i = 0; i < cut.starts.size(); ++i)
        std::fill(protocol.begin() + cut.starts[i], protocol.end(), cut.vectors[i]);
    pairServices(sourcePorts, destinationPorts, protocols);
    for (auto &axis : axes)
        axis.seal();
}

void Block::pairServices(VectorSet &sourcePorts, VectorSet &destinationPorts, VectorSet &protocols)
{
    const auto n = static_cast<unsigned>(rules.size());
    VectorSet portVectors(n), services(n);
    if (!Pair(destinationPorts, protocols, n, portVectors, port)) {
        axes.push_back(std::move(sourcePorts));
        axes.push_back(std::move(destinationPorts));
        axes.push_back(std::move(protocols));
    } else if (!Pair(sourcePorts, portVectors, n, services, service)) {
        axes.push_back(std::move(sourcePorts));
        axes.push_back(std::move(portVectors));
    } else {
        axes.push_back(std::move(services));
    }
}

void Block::locateAddresses(const FlowKey *const *const keys, const unsigned n, Vectors &v) const
{
    if (!addresses4.empty()) {
        const auto &source = addresses4[0], &destination = addresses4[1];
        for (unsigned i = 0; i < n; ++i) {
            v.of[0][i] = source.find32(static_cast<uint32_t>(keys[i]->source.low));
            v.of[1][i] = destination.find32(static_cast<uint32_t>(keys[i]->destination.low));
        }
        return;
    }
    constexpr Address FlowKey::*Fields[] = {&FlowKey::source, &FlowKey::destination};
    for (size_t a = 0; a < addresses6.size(); ++a) {
        Address all[GroupSize];
        for (unsigned i = 0; i < n; ++i)
            all[i] = keys[i]->*Fields[a];
        addresses6[a].find(all, n, v.of[a]);
    }
}

void Block::locateServices(const FlowKey *const *const keys, const unsigned n, Vectors &v) const
{
    const auto &source = ports[0], &destination = ports[1];
    for (unsigned i = 0; i < n; ++i) {
        const auto &k = *keys[i];
        const auto from = source.find16(k.sourcePort), to = destination.find16(k.destinationPort);
        const auto p = protocol[k.protocol];
        if (axes.size() == 3) {
            v.of[2][i] = service.find(from, port.find(to, p));
        } else {
            v.of[2][i] = from;
            v.of[3][i] = axes.size() == 4 ? port.find(to, p) : to;
            v.of[4][i] = p;
        }
    }
}

void Block::intersect(const Vectors &v, const unsigned n, uint32_t *const found) const
{
    for (unsigned i = 0; i < n; ++i) {
        found[i] = NoMatch;
        for (unsigned q = 0; 2 * q < axes[0].lines() && found[i] == NoMatch; ++q) { // a word of the summary: two lines
            uint64_t left = axes[0].summaries()[v.of[0][i]].words[q];
            for (size_t a = 1; a < axes.size(); ++a)
                left &= axes[a].summaries()[v.of[a][i]].words[q];
            while (left) { // four bits of the summary: a word
                const auto place = static_cast<unsigned>(__builtin_ctzll(left)) / 4;
                const unsigned w = 2 * LineWords * q + place;
                uint64_t bits = axes[0].word(v.of[0][i], w);
                for (size_t a = 1; a < axes.size(); ++a)
                    bits &= axes[a].word(v.of[a][i], w);
                if (bits) {
                    found[i] = rules[64 * w + static_cast<unsigned>(__builtin_ctzll(bits))];
                    break;
                }
                left &= ~(uint64_t(0xf) << 4 * place);
            }
        }
    }
}

size_t Block::bytes() const
{
    size_t sum = sizeof(*this) + rules.capacity() * sizeof(uint32_t) +
        (port.table.capacity() + service.table.capacity()) * sizeof(VectorId);
    for (const auto &axis : axes)
        sum += axis.bytes();
    for (const auto *const tables : {&addresses4, &ports}) {
        for (const auto &table : *tables)
            sum += sizeof(table) + table.bytes();
    }
    for (const auto &starts : addresses6)
        sum += sizeof(starts) + starts.bytes();
    return sum;
}

} // namespace msfrs::edge
