// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Cost of the scheduler with many classes and a long queue: a hold (a request arrives and queues) and a release (a
/// response is charged and completes, the next request is picked and granted), timed separately in batches. The target
/// is 1 microsecond per release with 1,000 classes and 100,000 queued requests.
#include "engine/engine.h"
#include "engine/request_scheduler.h"
#include "engine/request_state.h"
#include "ledger/shared.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Owner : msfrs::RequestOwner {
    std::deque<Owner *> *ready;
    msfrs::Request *request = nullptr;
    void granted() override { ready->push_back(this); }
    void expired() override {}
    msfrs::PathSample path(const msfrs_time now) override
    {
        return {7, 40'000'000, 30'000'000, 0, static_cast<uint64_t>(now / 1'000'000), 0}; // Squid asks the kernel
    }
};

enum class What { Hold, Release };

enum class Time { Stands, Passes, Shared };

/// Four parties, of which three wait and are always ahead, so that ours never has to yield.
struct Parties {
    Parties()
    {
        msfrs::ledger::FormatSegment(segment.get());
        for (uint32_t n = 0; n < 4; ++n)
            all.push_back(std::make_shared<msfrs::SharedLedger>(
                *segment, msfrs::PartyParams{msfrs::ledger::Kind::Worker, n, 0}, [](int, const std::string &) {}, 0));
        all[0]->settle(0); // after all have joined
    }
    /// Heartbeats of the others.
    void beat(const msfrs_time now)
    {
        ahead += 1'000'000'000'000;
        for (size_t n = 1; n < all.size(); ++n)
            all[n]->say({0, 1, 1, ahead, 16384}, now);
    }

    std::unique_ptr<msfrs::ledger::Segment> segment = std::make_unique<msfrs::ledger::Segment>();
    std::vector<std::shared_ptr<msfrs::SharedLedger>> all;
    int64_t ahead = 0; ///< bytes charged to them
};

void Scheduler(benchmark::State &state, const char *const arbiter, const What what,
               const Time time = Time::Stands)
{
    const auto classes = static_cast<uint32_t>(state.range(0));
    const auto queued = static_cast<uint32_t>(state.range(1));
    msfrs::RequestConfig config;
    config.rate = 1e9;
    config.pluginDir = TEST_PLUGIN_DIR;
    config.arbiter.name = arbiter;
    config.maxPerUser = config.maxQueued = 1000000;
    for (uint32_t n = 0; n < classes; ++n)
        config.classes.push_back({"c" + std::to_string(n), 1.0 + n % 4});
    std::unique_ptr<Parties> parties; // outlives the host, which has a ledger of it
    msfrs::RequestHost host;
    host.log = [](int, const std::string &) {};
    host.random = [] { return 4; };
    if (time == Time::Shared) {
        parties = std::make_unique<Parties>();
        host.ledger = parties->all[0];
    }
    msfrs::RequestScheduler scheduler(config, host, 0);

    constexpr uint32_t Users = 4; // of each class
    std::deque<Owner *> ready;
    std::deque<Owner> owners(queued + 2000);
    std::vector<std::string> users;
    for (uint32_t n = 0; n < Users; ++n)
        users.push_back("198.18.0." + std::to_string(n));
    msfrs::Refusal why;
    uint32_t next = 0;
    msfrs_time now = 0;
    const auto hold = [&](Owner &o) {
        o.ready = &ready;
        o.request = scheduler.hold(o, next % classes, users[next / classes % Users], now, why);
        next = next * 1664525u + 1013904223u;
    };
    for (auto &o : owners)
        hold(o);
    constexpr int Batch = 1000;
    using Clock = std::chrono::steady_clock;
    std::vector<Owner *> ended;
    for (auto _ : state) {
        const auto begin = Clock::now();
        for (int n = 0; n < Batch; ++n) {
            Owner &o = *ready.front();
            ready.pop_front();
            if (time != Time::Stands)
                now += 100'000; // 10,000 releases in a second, quanta of 1.3 Gbit/s
            if (parties && n % 40 == 0)
                parties->beat(now);
            scheduler.charge(*o.request, 1000 + (next = next * 1664525u + 1013904223u) % 20000, now);
            scheduler.done(o.request, now);
            ended.push_back(&o);
        }
        const auto middle = Clock::now();
        for (const auto o : ended)
            hold(*o);
        const auto end = Clock::now();
        ended.clear();
        const std::chrono::duration<double> seconds = what == What::Release ? middle - begin : end - middle;
        state.SetIterationTime(seconds.count() / Batch);
    }
}

/// A tenth of a second on a full link of 20 Mbit/s: the cost of estimating its rate, compared with a known one.
void TenthOfASecond(benchmark::State &state, const bool found)
{
    msfrs::RequestConfig config;
    config.rate = 20e6;
    if (found)
        config.bounds = {1e6, 100e6};
    config.pluginDir = TEST_PLUGIN_DIR;
    config.classes = {{"c", 1}};
    msfrs::RequestHost host;
    host.log = [](int, const std::string &) {};
    host.random = [] { return 4; };
    msfrs::RequestScheduler scheduler(config, host, 0);
    std::deque<Owner *> ready;
    std::deque<Owner> owners(200);
    msfrs::Refusal why;
    msfrs_time now = 0;
    for (auto &o : owners) {
        o.ready = &ready;
        o.request = scheduler.hold(o, 0, "198.18.0.1", now, why);
    }
    for (auto _ : state) {
        for (int n = 0; n < 100; ++n) { // packets
            scheduler.charge(*ready.front()->request, 2500, now += 1'000'000);
            if (n % 25 == 24)
                benchmark::DoNotOptimize(scheduler.tick(now));
        }
    }
}

void Memory(benchmark::State &state)
{
    const auto msf = msfrs::LoadPlugin("msf", MSFRS_SCHED, TEST_PLUGIN_DIR);
    msfrs::Engine engine({msf, msfrs::ParseParams(msf->ops(), {})}, {}, msfrs::Engine::Cost::Measured, 1, 0,
                         {[](int, const std::string &) {}, [] { return uint64_t(4); }});
    for (auto _ : state)
        benchmark::DoNotOptimize(engine.itemSize());
    state.counters["bytes_per_queued_item"] = static_cast<double>(engine.itemSize());
    // The request itself, and its node in a std::list: two pointers in addition.
    state.counters["bytes_per_queued_request"] =
        static_cast<double>(engine.itemSize() + sizeof(msfrs::Request) + 3 * sizeof(void *));
}

} // namespace

#define BOTH(arbiter) \
    BENCHMARK_CAPTURE(Scheduler, arbiter##_release, #arbiter, What::Release)->Args({3, 100})->Args({100, 10000}) \
        ->Args({1000, 100000})->UseManualTime()->Unit(benchmark::kNanosecond)->Iterations(300); \
    BENCHMARK_CAPTURE(Scheduler, arbiter##_hold, #arbiter, What::Hold)->Args({1000, 100000}) \
        ->UseManualTime()->Unit(benchmark::kNanosecond)->Iterations(300)
BOTH(msf);
#define RELEASE(name, time) \
    BENCHMARK_CAPTURE(Scheduler, msf_release_##name, "msf", What::Release, time)->Args({3, 100})->Args({100, 10000}) \
        ->Args({1000, 100000})->UseManualTime()->Unit(benchmark::kNanosecond)->Iterations(300)
RELEASE(alone, Time::Passes); // for comparison with the next: one of four parties of a segment
RELEASE(shared, Time::Shared);
BOTH(fifo);
BENCHMARK_CAPTURE(TenthOfASecond, of_a_known_rate, false)->Unit(benchmark::kNanosecond);
BENCHMARK_CAPTURE(TenthOfASecond, of_a_rate_that_is_found, true)->Unit(benchmark::kNanosecond);
BENCHMARK(Memory)->Iterations(1);

BENCHMARK_MAIN();
