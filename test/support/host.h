// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The host side of the library for tests: simulated time, a seeded random source, a log that is kept.
#pragma once

#include "engine/engine.h"
#include "engine/request_scheduler.h"

#include <random>
#include <string>
#include <vector>

namespace msfrs::test {

constexpr msfrs_time Us = 1'000, Ms = 1'000'000, Second = 1'000'000'000, Never = 1'000'000'000 * Second;

/// A clock that only the test moves.
class SimClock {
public:
    explicit SimClock(const msfrs_time now = 0): now_(now) {}
    msfrs_time now() const { return now_; }
    /// d may be negative: a clock that is set back
    void advance(const msfrs_time d) { now_ += d; }
    void set(const msfrs_time t) { now_ = t; }

private:
    msfrs_time now_;
};

/// Uniform draws that are the same on every machine (the standard library's distributions are not).
class Random {
public:
    explicit Random(const uint64_t seed): engine_(seed) {}
    uint64_t bits() { return engine_(); }
    /// 0..below-1
    uint64_t below(const uint64_t below) { return engine_() % below; }
    /// low..high
    int64_t between(const int64_t low, const int64_t high)
    {
        return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
    }
    bool chance(const double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }

private:
    std::mt19937_64 engine_;
};

/// The host's side of the library; keeps log messages.
class Host {
public:
    struct Line {
        int level;
        std::string text;
    };

    explicit Host(const uint64_t seed = 1): random_(seed) {}
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;

    EngineHost engine();
    /// Its counters are those of FakeInterface.
    RequestHost requests();
    const std::vector<Line> &log() const { return log_; }
    /// Messages logged at `level`, one per line; repeated lines once, with their count.
    std::string logged(int level) const;
    Random &random() { return random_; }

private:
    std::vector<Line> log_;
    Random random_;
};

} // namespace msfrs::test
