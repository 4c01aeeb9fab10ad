// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/trace.h"

#include "plugin/loader.h"
#include "sim/access/workload.h"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace msfrs::sim::access {

namespace {

constexpr double PacketBits = 1504 * 8;
constexpr msfrs_time FileStep = 50 * Ms, LteStep = 100 * Ms, LeoStep = Second / 2, LeoSlot = 15 * Second;

RateTrace Steps(const double rate, const msfrs_time end)
{
    RateTrace trace;
    for (msfrs_time t = 0; t < end; t += 20 * Second)
        trace.push_back({t, trace.size() % 2 ? rate / 4 : rate});
    return trace;
}

RateTrace Wave(const double rate, const msfrs_time end)
{
    RateTrace trace;
    for (msfrs_time t = 0; t < end; t += 100 * Ms) // a cosine on a logarithmic scale, as rates are perceived
        trace.push_back({t, rate * std::pow(3, (std::cos(2 * M_PI * Seconds(t) / 60) - 1) / 2)});
    return trace;
}

RateTrace Lte(const double rate, const msfrs_time end, Draws &draws)
{
    constexpr double Slow = 1.02, Quick = 0.25; // together 1.05, of which 10 % and mean are 0.15 apart
    const double kept = std::pow(0.5, Seconds(LteStep) / 3);
    RateTrace trace;
    double slow = draws.normal();
    for (msfrs_time t = 0; t < end; t += LteStep) {
        const double level = Slow * slow + Quick * draws.normal() - (Slow * Slow + Quick * Quick) / 2;
        trace.push_back({t, rate * std::min(std::exp(level), 4.0)});
        slow = kept * slow + std::sqrt(1 - kept * kept) * draws.normal();
    }
    return trace;
}

RateTrace Leo(const double rate, const msfrs_time end, Draws &draws)
{
    constexpr double Deviation = 0.4, Within = 0.1;
    RateTrace trace;
    for (msfrs_time slot = 0; slot < end; slot += LeoSlot) {
        const double level = rate * std::exp(Deviation * draws.normal() - Deviation * Deviation / 2);
        const double share = draws.uniform();
        const auto outage = share < 0.5 ? 50 * Ms + static_cast<msfrs_time>(share * 2 * 200 * Ms) : 0;
        if (outage > 0)
            trace.push_back({slot, 0});
        for (msfrs_time t = 0; t < LeoSlot; t += LeoStep)
            trace.push_back({slot + std::max(t, outage), level * (1 + Within * (2 * draws.uniform() - 1))});
    }
    return trace;
}

RateTrace Recorded(const std::string &path, const msfrs_time end)
{
    std::ifstream file(path);
    std::vector<double> packets;
    double last = -1, ms = 0;
    size_t line = 1;
    for (; file >> ms; ++line) {
        if (!(ms >= 0) || ms < last || ms > 1e9)
            throw ConfigError(path + ":" + std::to_string(line) + " is not allowed: expected times in ms, none less "
                              "than the one before");
        packets.resize(std::max(packets.size(), static_cast<size_t>(ms * Ms / FileStep) + 1));
        ++packets.back();
        last = ms;
    }
    if (packets.empty())
        throw ConfigError(path + " is not a trace: expected steps, wave, lte, leo or a file in Mahimahi's format");
    if (!file.eof())
        throw ConfigError(path + ":" + std::to_string(line) + ": expected a number of ms");
    RateTrace trace;
    for (msfrs_time t = 0; t < end; t += FileStep)
        trace.push_back({t, packets[trace.size() % packets.size()] * PacketBits / Seconds(FileStep)});
    return trace;
}

} // namespace

RateTrace MakeTrace(const std::string &name, const double rate, const double seconds, const uint64_t seed)
{
    const auto end = static_cast<msfrs_time>(seconds * 1e9);
    Draws draws(seed, "trace " + name);
    if (name == "steps")
        return Steps(rate, end);
    if (name == "wave")
        return Wave(rate, end);
    if (name == "lte")
        return Lte(rate, end, draws);
    if (name == "leo")
        return Leo(rate, end, draws);
    return Recorded(name, end);
}

double MeanRate(const RateTrace &trace, const double from, const double until)
{
    double bits = 0;
    for (size_t n = 0; n < trace.size(); ++n) {
        const double begin = std::max(from, Seconds(trace[n].at));
        const double end = std::min(until, n + 1 < trace.size() ? Seconds(trace[n + 1].at) : until);
        bits += trace[n].rate * std::max(end - begin, 0.0);
    }
    return bits / (until - from);
}

} // namespace msfrs::sim::access
