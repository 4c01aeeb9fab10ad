// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Cost of a packet with an AQM: its flow is looked up by name, and it is offered, picked and done through the engine,
/// with fifo behind the AQM, on one core, as in msfrs-edge; one or two packets of every flow are always queued. Packets
/// arrive for flows in a random order, half a round away from the departures, so that with many flows no flow is in the
/// cache by chance. FABA's work is counted as well, in instructions if the machine has a counter, otherwise in steps of
/// the algorithm: it must not grow with the number of flows. Memory of a flow and of a queued packet is what malloc has
/// allocated.
#include "frame.h"
#include "instructions.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using msfrs::bench::InUse;
using msfrs::bench::Load;

constexpr double TargetNs = 150, TargetGrowth = 1.2;

/// An AQM, and its buffer in packets for each flow, if any: RED's average is then between min and max, and FABA's
/// buckets are ten packets high.
struct Row {
    const char *name;
    uint32_t limit;
    bool target;
};

constexpr Row Rows[] = {
    {"none", 0, false}, {"droptail", 4, false}, {"red", 4, true}, {"choke", 4, false}, {"fred", 4, false},
    {"faba", 10, true}, {"codel", 0, false}, {"pie", 0, false},
};

msfrs::bench::Instructions &Counter()
{
    static msfrs::bench::Instructions counter;
    return counter;
}

void Packets(benchmark::State &state, const Row &row)
{
    const auto count = static_cast<size_t>(state.range(0));
    std::mt19937_64 random(1);
    uint64_t draws = 0;
    std::vector<msfrs::Setting> buffer;
    if (row.limit)
        buffer.push_back({"limit", std::to_string(row.limit * count)});
    const char *const aqm = row.name == std::string("none") ? nullptr : row.name;
    msfrs::Engine engine(Load("fifo", MSFRS_SCHED), Load(aqm, MSFRS_AQM, buffer), msfrs::Engine::Cost::Exact, 1, 0,
                         {[](int, const std::string &) {}, [&] {
        ++draws;
        return random();
    }});
    auto &cls = *engine.addClass("all", 1);
    std::vector<std::string> names(count);
    for (size_t n = 0; n < count; ++n)
        names[n] = std::to_string(n);
    const auto empty = InUse();
    for (const auto &name : names)
        engine.flow(cls, name);
    const auto withFlows = InUse();
    std::shuffle(names.begin(), names.end(), random);

    const int64_t size = 1000;
    msfrs_time now = 0;
    size_t next = 0;
    const auto packet = [&] {
        msfrs_item *item;
        engine.offer(*engine.knownFlow(cls, names[next]), &size, nullptr, now, item);
        next = next + 1 < count ? next + 1 : 0;
        if (engine.totals().queued.items > count + count / 2) {
            msfrs_time wakeAt = 0;
            engine.done(*engine.pick(now, MSFRS_PICK_ANY, wakeAt), now);
        }
        now += 12'000;
    };
    for (size_t n = 0; n < 3 * count; ++n)
        packet();
    const auto withPackets = InUse();

    const auto picks = [&] { return engine.aqmGauges(nullptr).size() > 5 ? engine.aqmGauges(nullptr)[5] : 0.0; };
    const double picksBefore = picks();
    const auto offeredBefore = engine.totals().offered.items;
    const auto queued = static_cast<double>(engine.totals().queued.items);
    draws = 0;
    Counter().start();
    while (state.KeepRunning())
        packet();
    const auto instructions = static_cast<double>(Counter().stop());
    const auto packets = static_cast<double>(engine.totals().offered.items - offeredBefore);
    state.counters["instructions"] = instructions / packets;
    state.counters["buckets"] = (picks() - picksBefore) / packets;
    state.counters["draws"] = static_cast<double>(draws) / packets;
    state.counters["B/flow"] = static_cast<double>(withFlows - empty) / static_cast<double>(count);
    state.counters["B/packet"] = static_cast<double>(withPackets - withFlows) / queued;
}

/// Keeps the best run of each for the summary.
class Reporter : public benchmark::ConsoleReporter {
public:
    Reporter(): ConsoleReporter(OO_Tabular) {}

    void ReportRuns(const std::vector<Run> &runs) override
    {
        ConsoleReporter::ReportRuns(runs);
        for (const auto &run : runs) {
            if (!msfrs::bench::Measured(run))
                continue;
            auto &best = best_[run.run_name.function_name][std::stoul(run.run_name.args)];
            if (best.ns > 0 && best.ns <= run.GetAdjustedCPUTime())
                continue;
            const auto counter = [&](const char *const name) { return run.counters.find(name)->second.value; };
            best = {run.GetAdjustedCPUTime(), counter("instructions"), counter("buckets"), counter("draws"),
                    counter("B/flow"), counter("B/packet")};
        }
    }

    void summary() const
    {
        std::printf("\nEnqueue + dequeue with an AQM and fifo, 100,000 active flows, one core, CPU time, best of the "
                    "runs; target: red and faba under %.0f ns:\n", TargetNs);
        for (const auto &row : Rows) {
            const auto *const best = find(row.name, 100'000);
            if (!best)
                continue;
            std::printf("  %-9s %5.0f ns, %4.0f bytes a flow, %4.0f a queued packet", row.name, best->ns, best->flow,
                        best->packet);
            if (row.target)
                std::printf(": %s", best->ns < TargetNs ? "reached" : "NOT reached");
            const auto *const none = find("none", 100'000);
            if (row.target && best->ns >= TargetNs && none)
                std::printf("; %.0f ns of it are the engine and fifo without an AQM", none->ns);
            std::puts("");
        }
        const auto faba = best_.find("faba");
        if (faba != best_.end())
            flatness(faba->second);
    }

private:
    struct Best {
        double ns = 0, instructions = 0, buckets = 0, draws = 0, flow = 0, packet = 0;
    };
    using Runs = std::map<size_t, Best>; ///< by flows

    const Best *find(const std::string &name, const size_t flows) const
    {
        const auto runs = best_.find(name);
        if (runs == best_.end() || !runs->second.count(flows))
            return nullptr;
        return &runs->second.at(flows);
    }

    void flatness(const Runs &runs) const
    {
        const bool counted = Counter().counts();
        std::printf("\nFABA's own work for a packet; target: from 100 to 1,000,000 flows within %.1f times\n",
                    TargetGrowth);
        if (!counted) {
            std::printf("  Instructions are not counted here (perf_event_open: %s). Instead, the algorithm's steps: "
                        "buckets visited\n  to hand out tokens, and random numbers drawn for that and for the coin.\n",
                        Counter().why().c_str());
        }
        double least = 0, most = 0;
        for (const auto &[flows, best] : runs) {
            const auto *const none = find("none", flows);
            const double own = counted ? best.instructions - (none ? none->instructions : 0)
                                       : best.buckets + best.draws;
            least = least > 0 ? std::min(least, own) : own;
            most = std::max(most, own);
            std::printf("  %7zu flows: %6.2f %s (%.3f buckets, %.3f random numbers; %.0f ns in all)\n", flows, own,
                        counted ? "instructions" : "steps", best.buckets, best.draws, best.ns);
        }
        std::printf("  greatest over least: %.2f: %s\n", most / least,
                    most <= TargetGrowth * least ? "reached" : "NOT reached");
    }

    std::map<std::string, Runs> best_;
};

} // namespace

int main(int argc, char **argv)
{
    return msfrs::bench::Run<Reporter>(argc, argv, [] {
        for (const auto &row : Rows) {
            const std::string name = row.name;
            const auto bench = benchmark::RegisterBenchmark(row.name, [&row](benchmark::State &s) { Packets(s, row); });
            for (const int64_t flows : {100, 1000, 10'000, 100'000, 1'000'000}) {
                if (flows == 100'000 || name == "faba" || name == "none")
                    bench->Arg(flows);
            }
            bench->Iterations(1'000'000)->Repetitions(3)->ReportAggregatesOnly(false);
        }
    });
}
