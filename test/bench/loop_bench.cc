// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Cost of a scheduling loop of ATFQ: Gilmore and Gomory's order alone, and the pick that begins a loop (it gathers the
/// packets with the least active time from all flows and orders them). Packets are those of the paper's evaluation:
/// four applications, five sizes. Times are medians over the loops, so that other load on the machine matters little.
/// Memory of a flow and of a queued packet is what malloc has allocated.
#include "frame.h"
#include "satellites/sched/gilmore_gomory.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <string>

namespace {

using msfrs::bench::InUse;

using Clock = std::chrono::steady_clock;
constexpr double TargetNs = 5000; ///< to order a loop of 20

/// CPU time and time on the link of 400 Mbit/s, in ticks, of a packet of the paper's flow n; and its bytes.
struct Packet {
    int64_t cpu, link, bytes;
};

Packet PaperPacket(const uint64_t n)
{
    constexpr double PerByte[] = {150, 8, 28.6, 69.87}, Fixed[] = {845'000, 121'000, 62'000, 109'700}; // table II
    const auto bytes = static_cast<int64_t>(200 * (1 + n % 5));
    const auto application = n / 5 % 4;
    const auto cpu = static_cast<int64_t>(PerByte[application] * static_cast<double>(bytes) + Fixed[application]);
    return {cpu, 200 * bytes, bytes};
}

/// Median of one duration per iteration.
class Median {
public:
    explicit Median(benchmark::State &state): state_(state) { all_.reserve(state.max_iterations); }
    void add(const std::chrono::duration<double> d)
    {
        all_.push_back(d.count());
        state_.SetIterationTime(d.count());
    }
    /// Also sets the counter `median`.
    double ns()
    {
        std::nth_element(all_.begin(), all_.begin() + static_cast<ptrdiff_t>(all_.size() / 2), all_.end());
        return state_.counters["median"] = all_[all_.size() / 2] * 1e9;
    }

private:
    benchmark::State &state_;
    std::vector<double> all_;
};

void Order(benchmark::State &state)
{
    const auto x = static_cast<size_t>(state.range(0));
    std::mt19937_64 random(1);
    std::vector<std::vector<msfrs::Job>> loops(64);
    for (auto &jobs : loops) {
        for (size_t n = 0; n < x; ++n) {
            const auto p = PaperPacket(random());
            jobs.push_back({p.cpu, p.link});
        }
    }
    msfrs::GilmoreGomory gilmoreGomory;
    std::vector<uint32_t> order;
    int64_t before = 0;
    size_t loop = 0;
    Median median(state);
    for (auto _ : state) {
        const auto &jobs = loops[loop++ % loops.size()];
        const auto begin = Clock::now();
        gilmoreGomory.order(jobs, before, order);
        median.add(Clock::now() - begin);
        before = jobs[order.back()].b;
    }
    state.counters["ns/packet"] = median.ns() / static_cast<double>(x);
}

/// Each flow has three packets queued; flows[n] has the needs of the paper's flow n % 20.
void Loop(benchmark::State &state, const char *const scheduler, const uint32_t x)
{
    const auto count = static_cast<size_t>(state.range(0));
    std::mt19937_64 random(1);
    std::vector<msfrs::Setting> settings{{"rate", "400000000"}};
    if (x > 1)
        settings.push_back({"packets", std::to_string(x)});
    msfrs::Engine engine(msfrs::bench::Load(scheduler, MSFRS_SCHED, settings), {}, msfrs::Engine::Cost::Exact, 2, 0,
                         {[](int, const std::string &) {}, [&] { return random(); }});
    auto &cls = *engine.addClass("all", 1);
    std::vector<std::pair<msfrs_flow *, Packet>> flows;
    const auto empty = InUse();
    for (size_t n = 0; n < count; ++n)
        flows.push_back({&engine.flow(cls, std::to_string(n)), PaperPacket(n)});
    const auto withFlows = InUse();
    const auto arrive = [&](std::pair<msfrs_flow *, Packet> &f) {
        const int64_t est[MSFRS_RESOURCES] = {f.second.bytes, f.second.cpu};
        msfrs_item *item;
        engine.offer(*f.first, est, &f, 0, item);
    };
    for (int depth = 0; depth < 3; ++depth) {
        for (auto &f : flows)
            arrive(f);
    }
    const auto withPackets = InUse();

    Median median(state);
    double all = 0;
    std::vector<msfrs_item *> loop(x);
    for (auto _ : state) {
        const auto begin = Clock::now();
        msfrs_time wake;
        loop[0] = engine.pick(0, MSFRS_PICK_ANY, wake);
        const auto planned = Clock::now();
        for (uint32_t n = 1; n < x; ++n)
            loop[n] = engine.pick(0, MSFRS_PICK_ANY, wake);
        const auto end = Clock::now();
        for (auto *const item : loop) {
            auto &f = *static_cast<std::pair<msfrs_flow *, Packet> *>(item->host);
            engine.done(*item, 0);
            arrive(f);
        }
        median.add(planned - begin);
        all += std::chrono::duration<double>(end - planned).count();
    }
    // The picks of a planned loop take only the engine's time.
    median.ns();
    if (x > 1)
        state.counters["ns/later pick"] = all * 1e9 / (static_cast<double>(state.iterations()) * (x - 1));
    state.counters["B/flow"] = static_cast<double>(withFlows - empty) / static_cast<double>(count);
    state.counters["B/packet"] = static_cast<double>(withPackets - withFlows) / static_cast<double>(3 * count);
}

/// Keeps the medians for the summary.
class Reporter : public benchmark::ConsoleReporter {
public:
    Reporter(): ConsoleReporter(OO_Tabular) {}

    void ReportRuns(const std::vector<Run> &runs) override
    {
        ConsoleReporter::ReportRuns(runs);
        for (const auto &run : runs) {
            const auto median = run.counters.find("median");
            if (median != run.counters.end())
                medians_[run.run_name.function_name + "/" + run.run_name.args] = median->second.value;
        }
    }

    void summary() const
    {
        std::puts("\nATFQ-20, one core; target: a loop of 20 packets is ordered in under 5000 ns. Medians:");
        line("order/20", "Gilmore and Gomory's order of 20 packets", "");
        line("atfq-20/20", "the pick that gathers and orders 20, of 20 flows", "");
        line("atfq-20/1000", "the same of 1,000 flows", "");
        line("atfq-20/100000", "the same of 100,000 flows",
             ": it is the gathering that takes longer, as the flows' state is no more in the cache");
    }

private:
    void line(const std::string &name, const char *const what, const char *const reason) const
    {
        const auto found = medians_.find(name);
        if (found == medians_.end())
            return;
        const bool reached = found->second < TargetNs;
        std::printf("  %-52s %6.0f ns: %s%s\n", what, found->second, reached ? "reached" : "NOT reached",
                    reached ? "" : reason);
    }

    std::map<std::string, double> medians_;
};

} // namespace

int main(int argc, char **argv)
{
    return msfrs::bench::Run<Reporter>(argc, argv, [] {
        benchmark::RegisterBenchmark("order", Order)->Arg(5)->Arg(20)->Arg(100)->Arg(1000)->UseManualTime()
            ->Iterations(20'000);
        for (const auto &[name, scheduler, x] :
             {std::tuple{"atfq-20", "atfq", 20u}, {"atfq-5", "atfq", 5u}, {"drfq", "drfq", 1u}}) {
            const auto bench = benchmark::RegisterBenchmark(name, [=](benchmark::State &s) { Loop(s, scheduler, x); });
            bench->Arg(20)->Arg(1000)->Arg(100'000)->UseManualTime()->Iterations(20'000);
        }
    });
}
