// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Cost of a packet: its flow is looked up by name, and it is offered, picked and done (enqueue + dequeue) through the
/// engine on one core, as in msfrs-edge; a few packets of every flow are always queued. Packets arrive for flows in a
/// random order that is independent of the order of service, so that with many flows neither end finds its flow in the
/// cache. Memory of a flow and of a queued packet is what malloc has allocated. After the table follow the targets, and
/// the growth of the time with the number of flows.
#include "frame.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using msfrs::bench::InUse;
using msfrs::bench::Load;

constexpr size_t Depth = 2;   ///< packets queued for each flow at the start
constexpr size_t Orders = 3;  ///< orders of arrival, used in turn

/// A scheduler and an AQM (or none) with their settings, and the target cost of a packet with 100,000 flows.
struct Row {
    const char *name, *sched, *aqm;
    double target;      ///< ns; 0: none is set
    bool grows;         ///< as log N: print the growth
    const char *reason; ///< why it is missed, if that is known
};

constexpr char Memory[] = "of so many flows neither the table of their names nor their packets are in the cache, and "
                          "each line that is read says where the next is";
constexpr char Heaps[] = "besides the packet's own cache lines its flow moves in two heaps, which fit the second-level "
                         "cache up to some 10,000 flows; beyond that the time grows faster than log N";

constexpr Row Rows[] = {
    {"fifo", "fifo", nullptr, 150, false, Memory},
    {"drr", "drr", nullptr, 150, false, Memory},
    {"fq", "fq", nullptr, 0, false, ""},
    {"fq codel", "fq", "codel", 0, false, ""},
    {"sfq", "sfq", nullptr, 0, false, ""},
    {"msfq", "msfq", nullptr, 600, true, Heaps},
    {"msf", "msf", nullptr, 0, true, ""},
};

void Packets(benchmark::State &state, const Row &row)
{
    const auto count = static_cast<size_t>(state.range(0));
    std::mt19937_64 random(1);
    msfrs::Engine engine(Load(row.sched, MSFRS_SCHED), Load(row.aqm, MSFRS_AQM), msfrs::Engine::Cost::Exact, 1, 0,
                         {[](int, const std::string &) {}, [&] { return random(); }});
    auto &cls = *engine.addClass("all", 1);
    std::vector<std::string> names(count);
    std::vector<std::string> orders; // several, so that a flow in service has not just had an arrival
    std::vector<int64_t> sizes(4096);
    for (auto &size : sizes)
        size = 64 + static_cast<int64_t>(random() % 1437);

    for (size_t n = 0; n < count; ++n)
        names[n] = std::to_string(n);
    const auto empty = InUse();
    for (size_t n = 0; n < count; ++n)
        engine.flow(cls, names[n]);
    const auto withFlows = InUse();
    size_t next = 0;
    msfrs_time now = 0;
    for (size_t n = 0; n < Orders; ++n) {
        std::shuffle(names.begin(), names.end(), random);
        orders.insert(orders.end(), names.begin(), names.end());
    }
    const auto arrive = [&] {
        msfrs_item *item;
        engine.offer(*engine.knownFlow(cls, orders[next]), &sizes[next % sizes.size()], nullptr, now, item);
        next = next + 1 < orders.size() ? next + 1 : 0;
    };
    const auto beforePackets = InUse();
    for (size_t n = 0; n < Depth * count; ++n)
        arrive();
    const auto withPackets = InUse();

    while (state.KeepRunning()) {
        arrive();
        msfrs_time wakeAt = 0;
        msfrs_item *const item = engine.pick(now, MSFRS_PICK_ANY, wakeAt);
        engine.done(*item, now);
        now += 12'000;
    }
    const auto per = [](const size_t bytes, const uint64_t n) {
        return static_cast<double>(bytes) / static_cast<double>(n);
    };
    state.counters["B/flow"] = per(withFlows - empty, count);
    state.counters["B/packet"] = per(withPackets - beforePackets, engine.totals().queued.items);
}

/// Keeps the times for the summary.
class Reporter : public benchmark::ConsoleReporter {
public:
    Reporter(): ConsoleReporter(OO_None) {}

    void ReportRuns(const std::vector<Run> &runs) override
    {
        ConsoleReporter::ReportRuns(runs);
        for (const auto &run : runs) {
            if (msfrs::bench::Measured(run)) {
                auto &best = times_[run.run_name.function_name][std::stoul(run.run_name.args)];
                const double ns = run.GetAdjustedCPUTime();
                best = best > 0 ? std::min(best, ns) : ns;
            }
        }
    }

    void summary() const
    {
        std::puts("\nEnqueue + dequeue, one core, CPU time, best of the runs:");
        for (const auto &row : Rows) {
            const auto found = times_.find(row.name);
            if (found == times_.end())
                continue;
            const auto &[flows, ns] = *found->second.rbegin();
            std::printf("  %-14s %7zu flows: %4.0f ns", row.name, flows, ns);
            if (row.target > 0)
                std::printf(", target %.0f ns: %s", row.target, ns < row.target ? "reached" : "NOT reached");
            std::printf("%s%s\n", row.target > 0 && ns >= row.target && *row.reason ? ": " : "",
                        row.target > 0 && ns >= row.target ? row.reason : "");
            if (row.grows)
                growth(found->second);
        }
    }

private:
    using Times = std::map<size_t, double>; ///< ns by flows

    static void growth(const Times &times)
    {
        const auto &[least, first] = *times.begin();
        for (const auto &[flows, ns] : times) {
            const double logs = std::log2(static_cast<double>(flows)) / std::log2(static_cast<double>(least));
            std::printf("      %7zu flows: %4.0f ns, %.2f times that of %zu; log N: %.2f times\n",
                        flows, ns, ns / first, least, logs);
        }
    }

    std::map<std::string, Times> times_;
};

} // namespace

int main(int argc, char **argv)
{
    return msfrs::bench::Run<Reporter>(argc, argv, [] {
        for (const auto &row : Rows) {
            const auto bench = benchmark::RegisterBenchmark(row.name, [&row](benchmark::State &s) { Packets(s, row); });
            for (const int64_t flows : {100, 1000, 10'000, 100'000}) {
                bench->Arg(flows);
            }
            bench->Iterations(1'000'000)->Repetitions(5)->ReportAggregatesOnly(false);
        }
    });
}
