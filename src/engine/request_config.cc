// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/request_config.h"

#include "plugin/number.h"
#include "window/thresholds.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace msfrs {

namespace {

/// q0 is this part of the time of a quantum, which alone makes a queue on a slow link, and at least LeastQueue.
/// Half leaves 0.5 % more of the link idle, double lengthens queues by a tenth (docs/lab/constants.md).
constexpr double QueueOfQuantum = 0.75;
constexpr double LongestQuantum = 1; ///< s: below 131 kbit/s a quantum of 16 KB counts as no more

void Require(const bool holds, const std::string &what, const double value, const char *const wanted)
{
    if (!holds)
        throw ConfigError(what + " " + Number(value) + " is not allowed: expected " + wanted);
}

} // namespace

RequestConfig Prepared(RequestConfig c)
{
    if (c.bounds.max > 0)
        c.rate = c.bounds.min;
    // Written so that NaN fails.
    const auto positive = [](const double v) { return v > 0 && std::isfinite(v); };
    if (c.bounds.min != 0 || c.bounds.max != 0) {
        Require(positive(c.bounds.min), "least link rate", c.bounds.min, "a rate above 0 bit/s");
        Require(c.bounds.max >= c.bounds.min && std::isfinite(c.bounds.max), "greatest link rate", c.bounds.max,
                "a rate of at least the least");
        Require(c.quantum > 0, "quantum", static_cast<double>(c.quantum),
                "more than 0 bytes where the link's rate is to be found");
        if (c.window.law != WindowLaw::Bytes)
            throw ConfigError("window law paper is not allowed where the link's rate is to be found: expected bytes");
    }
    Require(positive(c.rate), "link rate", c.rate, "a rate above 0 bit/s");
    Require(c.overhead >= 0 && c.overhead <= 1, "link overhead", c.overhead, "a share from 0 to 1");
    Require(c.packetOverhead <= 256, "overhead of a packet", c.packetOverhead, "0 to 256 bytes");
    Require(c.rtt > 0, "round trip time", static_cast<double>(c.rtt), "a time above 0 ns");
    Require(c.window.target > 0 && c.window.target < 1, "window target", c.window.target,
            "a share above 0 and below 1");
    Require(c.window.interval > 0, "window interval", static_cast<double>(c.window.interval), "a time above 0 ns");
    Require(c.window.growth > 1 && std::isfinite(c.window.growth), "window growth", c.window.growth,
            "a factor above 1");
    Require(c.window.reserve >= 0 && std::isfinite(c.window.reserve), "window reserve", c.window.reserve,
            "a share of 0 or more");
    Require(c.window.floor >= 0 && c.window.floor < 1, "window floor", c.window.floor, "a share of 0 or more, below 1");
    Require(c.patience > 0, "patience", static_cast<double>(c.patience), "a time above 0 ns");
    Require(c.quantum >= 0, "quantum", static_cast<double>(c.quantum), "0 (none) or more bytes");
    Require(c.maxWait > 0, "longest wait", static_cast<double>(c.maxWait), "a time above 0 ns");
    Require(c.maxPerUser > 0, "queued requests per user", c.maxPerUser, "1 or more");
    Require(c.maxQueued > 0, "queued requests in all", c.maxQueued, "1 or more");
    if (c.classes.empty())
        throw ConfigError("there is no class: expected at least one, and one of them the default");
    std::set<std::string> names;
    for (size_t n = 0; n < c.classes.size(); ++n) {
        const auto &cls = c.classes[n];
        if (cls.name.empty())
            throw ConfigError("class number " + std::to_string(n + 1) + " has no name");
        Require(positive(cls.weight), "class " + cls.name + " weight", cls.weight, "a number above 0");
        if (!names.insert(cls.name).second)
            throw ConfigError("class " + cls.name + " is declared twice");
    }
    Require(c.defaultClass < c.classes.size(), "default class number", c.defaultClass, "the number of a class");
    return c;
}

double BandwidthDelay(const RequestConfig &c) { return c.rate / 8.0 * static_cast<double>(c.rtt) * 1e-9; }

WindowParams WindowOf(const RequestConfig &c)
{
    auto w = c.window;
    if (!c.byBytes())
        w.floor = 0; // the paper's window has none
    const double quantum = std::min(static_cast<double>(c.quantum) * 8 / c.rate, LongestQuantum) * 1e9;
    w.queue = std::max(LeastQueue, static_cast<msfrs_time>(QueueOfQuantum * quantum));
    return w;
}

} // namespace msfrs
