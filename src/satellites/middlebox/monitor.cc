// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/monitor.h"

#include <algorithm>
#include <stdexcept>

namespace msfrs::middlebox {

namespace {

/// Both halves of a 128-bit product.
uint64_t Mix(const uint64_t a, const uint64_t b)
{
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

} // namespace

size_t Monitor::Hash::operator()(const FlowKey &k) const
{
    // The seed is in both factors, so that nobody without it can make one of them 0.
    const uint64_t ports = uint64_t(k.sourcePort) << 32 | k.destinationPort;
    const uint64_t kind = uint64_t(k.family) << 8 | k.protocol;
    uint64_t h = Mix(k.source.high ^ seed, k.source.low ^ (seed * 0x9e3779b97f4a7c15));
    h = Mix(k.destination.high ^ h, k.destination.low ^ seed);
    return Mix(ports ^ h, kind ^ seed);
}

Monitor::Monitor(const FunctionOptions &options): most_(options.flows), flows_(0, Hash{options.random()})
{
    if (most_ < FunctionOptions::MinFlows || most_ > FunctionOptions::MaxFlows)
        throw std::invalid_argument("monitor: flows=" + std::to_string(most_) + ": allowed are " +
                                    std::to_string(FunctionOptions::MinFlows) + " to " +
                                    std::to_string(FunctionOptions::MaxFlows));
    flows_.reserve(most_);
    least_.reserve(most_);
}

Span Monitor::process(const FunctionInput &in)
{
    const uint64_t length = in.packet.length;
    ++packets_;
    bytes_ += length;
    if (const auto known = flows_.find(in.key); known != flows_.end()) {
        auto &e = known->second;
        e.flow.bytes += length;
        ++e.flow.packets;
        least_.update(e);
        return in.packet;
    }
    if (flows_.size() < most_) {
        auto &e = flows_.emplace(in.key, Entry{{in.key, length, 1, 0}, taken_++, 0}).first->second;
        least_.push(e);
        return in.packet;
    }
    auto node = flows_.extract(least_.top()->flow.key); // no allocation, and the entry stays in place
    node.key() = in.key;
    auto &entry = flows_.insert(std::move(node)).position->second;
    const auto had = entry.flow.bytes;
    entry.flow = {in.key, had + length, 1, had};
    entry.number = taken_++;
    least_.update(entry);
    ++replaced_;
    return in.packet;
}

std::vector<FunctionCount> Monitor::counts() const
{
    return {{"monitored_packets", packets_},
            {"monitored_bytes", bytes_},
            {"monitored_flows", flows_.size()},
            {"replaced_flows", replaced_}};
}

std::vector<Monitor::Flow> Monitor::largest(const size_t most) const
{
    std::vector<Flow> all;
    for (const auto &[key, entry] : flows_)
        all.push_back(entry.flow);
    const auto n = static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), all.begin() + n, all.end(),
                      [](const Flow &a, const Flow &b) { return a.bytes > b.bytes; });
    all.resize(static_cast<size_t>(n));
    return all;
}

std::unique_ptr<Function> MakeMonitor(const FunctionOptions &options) { return std::make_unique<Monitor>(options); }

} // namespace msfrs::middlebox
