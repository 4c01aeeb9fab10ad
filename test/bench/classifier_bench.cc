// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Cost of a look-up in the DiffServ edge's classifier: one packet at a time and in bursts, beside linear search and,
/// if it was available at build time, DPDK's librte_acl (with SIMD), with the same rules and packets. Rules are similar
/// to access lists (test/support/flow_rules.h). The targets follow after the table.
#include "edge/classifier.h"
#include "support/flow_rules.h"

#include <benchmark/benchmark.h>

#ifdef HAVE_DPDK
#include "bench/acl.h"
#endif

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace msfrs;
using namespace msfrs::edge;

constexpr size_t Packets = 16384;
constexpr size_t Bursts[] = {32, 256};

/// Rules, packets, and the structures that look them up.
struct Bed {
    Bed(const size_t n, const Family f)
        : rules(test::AccessList(n, f, 1)), keys(test::Traffic(rules, Packets, f, 2)), ours(rules), linear(rules)
#ifdef HAVE_DPDK
          , acl(f == Family::V4 ? std::make_unique<bench::Acl>(rules, keys) : nullptr)
#endif
    {
    }

    std::vector<Match> rules;
    std::vector<FlowKey> keys;
    Classifier ours;
    test::LinearSearch linear;
#ifdef HAVE_DPDK
    std::unique_ptr<bench::Acl> acl;
#endif
};

/// Best time of each benchmark, ns a packet.
class Reporter : public benchmark::ConsoleReporter {
public:
    Reporter(): ConsoleReporter(OO_Tabular) {}

    void ReportRuns(const std::vector<Run> &runs) override
    {
        ConsoleReporter::ReportRuns(runs);
        for (const auto &run : runs) {
            if (run.run_type != Run::RT_Iteration || run.error_occurred)
                continue;
            const double ns = 1e9 / run.counters.at("lookups").value;
            auto &best = best_[run.run_name.function_name];
            best = best > 0 ? std::min(best, ns) : ns;
        }
    }

    double best(const std::string &name) const { return best_.at(name); }

private:
    std::map<std::string, double> best_;
};

/// Number of benchmarks.
size_t &Registered()
{
    static size_t n = 0;
    return n;
}

void Register(const std::string &name, const size_t burst, std::function<void(size_t begin)> lookUp)
{
    ++Registered();
    benchmark::RegisterBenchmark(name.c_str(), [burst, lookUp](benchmark::State &state) {
        size_t at = 0;
        for (auto _ : state) {
            lookUp(at);
            at = (at + burst) % Packets;
        }
        state.counters["lookups"] =
            benchmark::Counter(static_cast<double>(state.iterations() * burst), benchmark::Counter::kIsRate);
    })->MinTime(0.1)->Repetitions(5)->ReportAggregatesOnly(false);
}

std::string Name(const size_t rules, const std::string &what, const size_t burst)
{
    return std::to_string(rules) + " rules, " + what +
        (burst > 1 ? ", bursts of " + std::to_string(burst) : ", one by one");
}

void RegisterAll(const size_t n, const Family f, Bed &bed)
{
    static std::vector<uint32_t> found(Packets);
    const std::string ip = f == Family::V4 ? "" : "IPv6 ";
    Register(Name(n, ip + "ours", 1), 1, [&bed](const size_t at) {
        benchmark::DoNotOptimize(test::Find(bed.ours, bed.keys[at]));
    });
    for (const size_t burst : Bursts) {
        Register(Name(n, ip + "ours", burst), burst,
                 [&bed, burst](const size_t at) { bed.ours.find(&bed.keys[at], burst, found.data()); });
    }
    Register(Name(n, ip + "linear search", 1), 1,
             [&bed](const size_t at) { benchmark::DoNotOptimize(bed.linear.find(bed.keys[at])); });
#ifdef HAVE_DPDK
    if (!bed.acl)
        return;
    for (const auto &method : bed.acl->methods()) {
        for (const size_t burst : Bursts) {
            const auto name = Name(n, std::string("librte_acl ") + method.name, burst);
            Register(name, burst, [&bed, method, burst](const size_t at) {
                bed.acl->find(at, static_cast<uint32_t>(burst), found.data(), method.number);
            });
        }
    }
#endif
}

/// Whether all three give the same results; otherwise the times mean nothing.
bool Agree(const Bed &bed)
{
    std::vector<uint32_t> found(Packets);
    bed.ours.find(bed.keys.data(), Packets, found.data());
    for (size_t i = 0; i < Packets; i += 4) {
        if (found[i] != bed.linear.find(bed.keys[i]))
            return false;
    }
#ifdef HAVE_DPDK
    std::vector<uint32_t> theirs(Packets);
    if (bed.acl) {
        bed.acl->find(0, Packets, theirs.data(), bed.acl->methods().back().number);
        for (size_t i = 0; i < Packets; ++i) {
            if (found[i] != theirs[i] - 1) // 0, no match, becomes NoMatch
                return false;
        }
    }
#endif
    return true;
}

void Say(const bool reached) { std::printf(": %s\n", reached ? "reached" : "NOT reached"); }

void Summary(const Reporter &r, const size_t n, const double target, const Bed &bed)
{
    std::printf("\n%zu rules of IPv4, best of the runs; memory %.1f MB, %zu bytes a rule:\n", n,
                static_cast<double>(bed.ours.bytes()) * 1e-6, bed.ours.bytes() / n);
    const double alone = r.best(Name(n, "ours", 1)), linear = r.best(Name(n, "linear search", 1));
    std::printf("  one by one %.0f ns a lookup, target %.0f ns", alone, target);
    Say(alone < target);
    for (const size_t burst : Bursts) {
        const double ours = r.best(Name(n, "ours", burst));
        std::printf("  bursts of %zu %.0f ns\n", burst, ours);
#ifdef HAVE_DPDK
        std::string best;
        for (const auto &method : bed.acl->methods()) {
            const auto name = Name(n, std::string("librte_acl ") + method.name, burst);
            if (best.empty() || r.best(name) < r.best(best))
                best = name;
        }
        std::printf("    DPDK's %.0f ns (%s), %.1f MB; ours is %.2f times as fast, without SIMD\n", r.best(best),
                    best.c_str() + best.find("librte"), static_cast<double>(bed.acl->bytes()) * 1e-6,
                    r.best(best) / ours);
#endif
    }
    const double times = linear / r.best(Name(n, "ours", Bursts[0]));
    std::printf("  linear search %.0f ns: %.0f times as long as in bursts of %zu, %.0f times as long as one by one",
                linear, times, Bursts[0], linear / alone);
    if (n < 4096) {
        std::puts("");
        return;
    }
    std::printf("; target 100");
    Say(linear / alone >= 100);
    if (linear / alone < 100)
        std::printf("    (in bursts it is%s: one by one, every lookup waits for memory alone)\n",
                    times >= 100 ? "" : " not, either");
}

} // namespace

int main(int argc, char **argv)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    const std::pair<size_t, double> targets[] = {{512, 150}, {4096, 400}};
    std::map<size_t, std::unique_ptr<Bed>> beds, beds6;
    for (const auto &[n, target] : targets) {
        beds[n] = std::make_unique<Bed>(n, Family::V4);
        beds6[n] = std::make_unique<Bed>(n, Family::V6);
        if (!Agree(*beds[n]) || !Agree(*beds6[n])) {
            std::fprintf(stderr, "classifier_bench: the lookups differ\n");
            return 1;
        }
        RegisterAll(n, Family::V4, *beds[n]);
        RegisterAll(n, Family::V6, *beds6[n]);
    }
    Reporter reporter;
    if (benchmark::RunSpecifiedBenchmarks(&reporter) != Registered()) {
        std::puts("\nThe targets are compared when all benchmarks run.");
        return 0;
    }
    for (const auto &[n, target] : targets) {
        Summary(reporter, n, target, *beds[n]);
        std::printf("  IPv6: one by one %.0f ns, bursts of %zu %.0f ns, %.1f MB; no target is set\n",
                    reporter.best(Name(n, "IPv6 ours", 1)), Bursts[0], reporter.best(Name(n, "IPv6 ours", Bursts[0])),
                    static_cast<double>(beds6[n]->ours.bytes()) * 1e-6);
    }
#ifndef HAVE_DPDK
    std::puts("\nlibrte_acl was left out: DPDK was not there when this was configured "
              "(Debian: apt install libdpdk-dev)");
#endif
    return 0;
}
