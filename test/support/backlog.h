// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Users who keep a link busy, and a measure of how it is shared.
#pragma once

#include "support/link_sim.h"
#include "support/plugins.h"

#include <cmath>
#include <string>
#include <vector>

namespace msfrs::test {

/// The paper's scheme, or the defaults; three classes 4:2:1 on 2 Mbit/s.
inline RequestConfig TrialConfig(const bool paper)
{
    RequestConfig config;
    config.rate = 2e6;
    config.overhead = 0; // the simulated link adds no headers
    config.pluginDir = PluginDir();
    config.classes = {{"gold", 4}, {"silver", 2}, {"bronze", 1}};
    config.defaultClass = 2;
    config.maxWait = Never;
    config.maxPerUser = 1000;
    if (paper) {
        config.quantum = 0;
        config.window.reserve = 0;
        config.window.target = 0.98;
        config.window.interval = 5 * Second;
        config.arbiter = {"msf", {{"users", "fifo"}, {"wake", "paper"}}};
    }
    return config;
}

/// Users of one class, each of whom keeps `depth` requests open while on.
class Backlog {
public:
    Backlog(LinkSim &sim, const uint32_t cls, const int users, const int depth, const uint64_t seed,
            const int64_t largest = 200'000):
        sim_(sim), cls_(cls), users_(users), depth_(depth), largest_(largest), random_(seed * 1000 + cls) {}

    void start()
    {
        on_ = true;
        for (int d = 0; d < depth_; ++d) {
            for (int u = 0; u < users_; ++u)
                request(u);
        }
    }
    /// Open requests are served to their end.
    void stop() { on_ = false; }
    std::string user(const int n) const { return "u" + std::to_string(n); }

private:
    void request(const int u)
    {
        // Mostly small, a few large: uniform in the exponent.
        const double exponent = static_cast<double>(random_.below(1'000'000)) * 1e-6;
        const auto size = static_cast<int64_t>(200 * std::pow(static_cast<double>(largest_) / 200, exponent));
        sim_.arrive(cls_, user(u), size, [this, u](const Transfer &) {
            if (on_)
                request(u);
        });
    }

    LinkSim &sim_;
    uint32_t cls_;
    int users_, depth_;
    int64_t largest_;
    Random random_;
    bool on_ = false;
};

/// Greatest difference between two normalised services: max minus min over time of D_a / a's share - D_b / b's share,
/// which is the greatest difference over any interval.
class Spread {
public:
    Spread(const double shareA, const double shareB): a_(shareA), b_(shareB) {}
    void a(const int64_t bytes) { add(static_cast<double>(bytes) / a_); }
    void b(const int64_t bytes) { add(-static_cast<double>(bytes) / b_); }
    double greatest() const { return high_ - low_; }
    void reset() { now_ = high_ = low_ = 0; }

private:
    void add(const double d)
    {
        now_ += d;
        high_ = std::max(high_, now_);
        low_ = std::min(low_, now_);
    }
    double a_, b_, now_ = 0, high_ = 0, low_ = 0;
};

} // namespace msfrs::test
