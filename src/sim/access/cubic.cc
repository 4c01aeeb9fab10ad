// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/access/cubic.h"

#include <algorithm>
#include <cmath>

namespace msfrs::sim::access {

constexpr double C = 0.4, Beta = 0.7;            // RFC 9438, section 4
constexpr double RenoGain = 3 * (1 - Beta) / (1 + Beta);
constexpr msfrs_time Ms = 1'000'000;
constexpr double LeastForHystart = 16;           // segments
constexpr int RoundSamples = 8;

void Cubic::acknowledged(const double segments, const msfrs_time rtt, const bool round, const msfrs_time now)
{
    if (rtt > 0)
        rtt_ = rtt_ > 0 ? std::min(rtt_, rtt) : rtt;
    if (slowStart()) {
        if (round) {
            roundLeast_ = 0;
            roundSamples_ = 0;
        }
        if (rtt > 0 && roundSamples_ < RoundSamples) {
            roundLeast_ = roundSamples_++ ? std::min(roundLeast_, rtt) : rtt;
        } else if (roundSamples_ == RoundSamples && window_ >= LeastForHystart &&
                   roundLeast_ >= rtt_ + std::clamp(rtt_ / 8, 4 * Ms, 16 * Ms)) {
            threshold_ = window_;
        }
        window_ = std::min(window_ + segments, std::max(threshold_, window_));
        return;
    }
    if (epoch_ < 0)
        begin(now);
    const double t = static_cast<double>(now - epoch_ + rtt_) * 1e-9;
    const double target = std::clamp(origin_ + C * std::pow(t - k_, 3), window_, 1.5 * window_);
    friendly_ += RenoGain * segments / window_;
    const double growth = std::max((target - window_) / window_, 0.01 / window_) * segments;
    window_ = std::max(window_ + growth, std::min(friendly_, window_ + segments));
}

void Cubic::begin(const msfrs_time now)
{
    epoch_ = now;
    friendly_ = window_;
    origin_ = std::max(most_, window_);
    k_ = std::cbrt((origin_ - window_) / C);
}

void Cubic::lost()
{
    most_ = window_ < most_ ? window_ * (1 + Beta) / 2 : window_; // fast convergence
    threshold_ = std::max(window_ * Beta, 2.0);
    epoch_ = -1;
}

void Cubic::timedOut(const bool again)
{
    if (!again)
        lost();
    window_ = 1;
    epoch_ = -1;
}

void Cubic::restart(const int timeouts)
{
    threshold_ = std::max(threshold_, 0.75 * window_);
    const double least = std::min(Initial, window_);
    window_ = std::max(std::ldexp(window_, -std::min(timeouts, 30)), least);
    epoch_ = -1;
}

} // namespace msfrs::sim::access
