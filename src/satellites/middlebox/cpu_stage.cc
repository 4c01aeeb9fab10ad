// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/cpu_stage.h"

#include <algorithm>
#include <cmath>

namespace msfrs::middlebox {

namespace {

/// The pacer's rate at which 8 bits, which represent a nanosecond of processor time, take 1 / share nanoseconds.
int64_t RateOf(const double share) { return std::llround(8e9 * share); }

} // namespace

int64_t CpuConfig::estimate(const size_t function, const size_t bytes) const
{
    const auto &f = functions[function];
    return std::llround(static_cast<double>(f.passes) * static_cast<double>(f.time.estimate(bytes)) / share);
}

CpuStage::CpuStage(const CpuConfig &config, const std::function<uint64_t()> &random, std::function<int64_t()> cpu,
                   const int64_t now): cpu_(std::move(cpu)), pacer_(RateOf(config.share), 0, now)
{
    for (const auto &f : config.functions) {
        auto options = f.options;
        options.random = random;
        at_.push_back({f.kind->make(options), f.time, f.passes, {}});
    }
}

void CpuStage::process(const size_t function, const FunctionInput &in, const int64_t now)
{
    auto &work = at_[function];
    const auto begin = cpu_();
    for (unsigned pass = 0; pass < work.passes; ++pass)
        work.function->process(in);
    const auto took = std::max<int64_t>(0, cpu_() - begin);
    pacer_.sent(std::min<int64_t>(took, 100'000'000), now);
    ++work.use.packets;
    work.use.bytes += in.packet.length;
    work.use.measured += static_cast<uint64_t>(took);
    work.use.estimated += uint64_t{work.passes} * static_cast<uint64_t>(work.time.estimate(in.packet.length)) / 10;
}

} // namespace msfrs::middlebox
