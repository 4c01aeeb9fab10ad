// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// msfrs-sim-access: the field trial's cells in seconds. Prints a row for each run, then the means over the seeds. With
/// show=trace it prints the course of C, for the trial's own link.
#include "plugin/number.h"
#include "sim/access/recorded.h"
#include "sim/access/run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>

using namespace msfrs;
using namespace msfrs::sim;
using namespace msfrs::sim::access;

namespace {

struct Unit {
    const char *name;
    double factor;
};
using Units = std::vector<Unit>;
const Units Plain = {{"", 1}}, Rates = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}},
            Durations = {{"ms", 1e6}, {"s", 1e9}}, Sizes = {{"bytes", 1}, {"KB", 1024}, {"MB", 1048576}},
            Shares = {{"%", 0.01}};

/// The parameters of a run, and the output wanted.
struct Wanted {
    /// Servers of the web take time, and some never answer, unless the command line says otherwise.
    Wanted()
    {
        run.workload.firstByte = 60 * Ms;
        run.workload.silent = 0.01;
    }

    RunParams run;
    std::vector<std::string> arms = {"msfrs"};
    uint32_t seeds = 1;
    bool course = false, traceAlone = false;
    double jumping = 0;
    msfrs_time jump = 0, jumpEvery = 2 * Second;
    std::string recorded;
    std::vector<std::string> classes = {"gold", "silver", "bronze"};
    std::vector<double> users = {4, 4, 4}, weights = {4, 2, 1};
};

double Value(const std::string &name, const std::string &text, const Units &units, const double low, const double high)
{
    char *end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    std::string known;
    for (const auto &unit : units) {
        const double value = number * unit.factor;
        if (end != text.c_str() && std::string(end) == unit.name && value >= low && value <= high)
            return value;
        known += std::string(known.empty() ? "" : " or ") + unit.name;
    }
    const auto &first = units.front();
    throw ConfigError(name + "=" + text + " is not allowed: expected a number from " + Number(low / first.factor) +
                      " to " + Number(high / first.factor) + " " + first.name +
                      (units.size() > 1 ? ", with the unit " + known : ""));
}

std::vector<std::string> Split(const std::string &text, const char separator)
{
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);)
        parts.push_back(part);
    return parts;
}

std::vector<double> Values(const std::string &name, const std::string &text, const double low, const double high)
{
    std::vector<double> values;
    for (const auto &part : Split(text, ','))
        values.push_back(Value(name, part, Plain, low, high));
    if (values.empty())
        throw ConfigError(name + "= is empty: expected numbers separated by commas");
    return values;
}

/// "msf ahead=16 KB" without its blanks, as in squid.conf
PluginChoice Plugin(const std::string &text)
{
    PluginChoice choice{"", {}};
    for (const auto &word : Split(text, ' ')) {
        const auto middle = word.find('=');
        if (choice.name.empty())
            choice.name = word;
        else
            choice.settings.push_back({word.substr(0, middle),
                                       middle == std::string::npos ? "" : word.substr(middle + 1)});
    }
    return choice;
}

struct Option {
    const char *name, *help;
    std::function<void(Wanted &, const std::string &name, const std::string &text)> set;
};

template <class Member>
Option Numeric(const char *const name, const char *const help, const Units &units, const double low,
               const double high, Member member)
{
    return {name, help, [=](Wanted &w, const std::string &n, const std::string &text) {
                auto &to = member(w);
                to = static_cast<std::decay_t<decltype(to)>>(Value(n, text, units, low, high));
            }};
}

bool YesOrNo(const std::string &name, const std::string &text)
{
    if (text != "yes" && text != "no")
        throw ConfigError(name + "=" + text + " is not allowed: expected yes or no");
    return text == "yes";
}

void SetWorkload(Wanted &w, const std::string &name, const std::string &text)
{
    using Kind = WorkloadParams::Kind;
    auto &load = w.run.workload;
    load.active.clear();
    load.parts = 1;
    if (text == "backlogged" || text == "phases") {
        load.kind = Kind::Backlogged;
        if (text == "phases") { // all classes, without the first, without two, all
            load.parts = 4;
            load.active = {0b1001, 0b1011, 0b1111};
        }
    } else if (text == "open") {
        load.kind = Kind::Open;
    } else if (text == "pages") {
        load.kind = Kind::Pages;
    } else if (text == "burst") {
        load.kind = Kind::Burst;
    } else {
        throw ConfigError(name + "=" + text + " is not allowed: expected backlogged, phases, open, pages or burst");
    }
}

void SetRtts(Wanted &w, const std::string &name, const std::string &text)
{
    w.run.paths.clear();
    const auto dots = text.find(".."), slash = text.find('/');
    if (dots != std::string::npos && slash != std::string::npos) {
        const double low = Value(name, text.substr(0, dots), Plain, 0.1, 5000);
        const double high = Value(name, text.substr(dots + 2, slash - dots - 2), Plain, 0.1, 5000);
        const double most = Value(name, text.substr(slash + 1), Plain, 2, 1e4) - 1;
        for (double n = 0; n <= most; ++n)
            w.run.paths.push_back(static_cast<msfrs_time>((low + (high - low) * n / most) * 1e6));
        return;
    }
    for (const double rtt : Values(name, text, 0.1, 5000))
        w.run.paths.push_back(static_cast<msfrs_time>(rtt * 1e6));
}

void SetArms(Wanted &w, const std::string &name, const std::string &text)
{
    w.arms = Split(text, ',');
    for (const auto &arm : w.arms) {
        if (arm != "msfrs" && arm != "paper" && arm != "stock")
            throw ConfigError(name + "=" + text + " is not allowed: expected msfrs, paper, stock, separated by "
                              "commas");
    }
}

const std::vector<Option> &Options()
{
    constexpr double Hour = 3600;
    const auto run = [](auto member) { return [=](Wanted &w) -> auto & { return w.run.*member; }; };
    const auto load = [](auto member) { return [=](Wanted &w) -> auto & { return w.run.workload.*member; }; };
    const auto others = [](auto member) { return [=](Wanted &w) -> auto & { return w.run.others.*member; }; };
    const auto beside = [](auto member) { return [=](Wanted &w) -> auto & { return w.run.beside.*member; }; };
    const auto config = [](auto member) { return [=](Wanted &w) -> auto & { return w.run.config.*member; }; };
    const auto window = [](auto member) { return [=](Wanted &w) -> auto & { return w.run.config.window.*member; }; };
    static const std::vector<Option> all = {
        {"arms", "gateways to run: msfrs, paper, stock, separated by commas; msfrs", SetArms},
        {"workload", "one of backlogged, phases, open, pages, burst; backlogged", SetWorkload},
        {"traffic", "http1; tunnels: HTTP/2, a tunnel for each user and server; new-tunnels: HTTP/2, a tunnel for each "
                    "request; http1",
         [](Wanted &w, const auto &n, const auto &t) {
             using Traffic = RunParams::Traffic;
             if (t != "http1" && t != "tunnels" && t != "new-tunnels")
                 throw ConfigError(n + "=" + t + " is not allowed: expected http1, tunnels or new-tunnels");
             w.run.traffic = t == "http1"     ? Traffic::Http1
                             : t == "tunnels" ? Traffic::Tunnels
                                              : Traffic::NewTunnels; }},
        Numeric("idle", "idle tunnels of each user, without requests; 0", Plain, 0, 1000, run(&RunParams::idle)),
        Numeric("rate", "rate of the link, C; 2Mbit", Rates, 1e4, 1e10, run(&RunParams::rate)),
        {"trace", "course of C: steps, wave, lte or leo around rate=, or a file in Mahimahi's format",
         [](Wanted &w, const auto &, const auto &t) { w.run.trace = t; }},
        Numeric("buffer", "the provider's buffer as a multiple of rate x buffer_rtt; 1.5", Plain, 0, 1000,
                run(&RunParams::buffer)),
        Numeric("buffer_rtt", "RTT by which the buffer is sized; 154ms", Durations, 1e5, 5e9,
                run(&RunParams::bufferRtt)),
        {"rtts", "base RTTs of the servers in ms, separated by commas, or least..most/count; 12..296/12", SetRtts},
        Numeric("jumping", "number of servers, evenly spread, whose path is longer in every other jump_every; 0", Plain,
                0, 1e4, [](Wanted &w) -> auto & { return w.jumping; }),
        Numeric("jump", "delay added to their path; 0ms", Durations, 0, 5e9,
                [](Wanted &w) -> auto & { return w.jump; }),
        Numeric("jump_every", "time between two changes of their path; 2s", Durations, 1e7, Hour * 1e9,
                [](Wanted &w) -> auto & { return w.jumpEvery; }),
        {"servers", "backlogged: any: a random server for each request; own: user n always uses server n; any",
         [](Wanted &w, const auto &n, const auto &t) {
             if (t != "any" && t != "own")
                 throw ConfigError(n + "=" + t + " is not allowed: expected any or own");
             w.run.workload.ownServers = t == "own"; }},
        {"users", "number of users in each class; 4,4,4",
         [](Wanted &w, const auto &n, const auto &t) { w.users = Values(n, t, 0, 1e4); }},
        {"weights", "weights of the classes; 4,2,1",
         [](Wanted &w, const auto &n, const auto &t) { w.weights = Values(n, t, 1e-3, 1e6); }},
        Numeric("inflight", "backlogged: concurrent requests of a user; 4", Plain, 1, 256,
                load(&WorkloadParams::inFlight)),
        Numeric("load", "open: offered load as a share of the link; 95%", Shares, 0.01, 2, load(&WorkloadParams::load)),
        Numeric("burst", "burst: number of simultaneous requests; 1000", Plain, 1, 1e5, load(&WorkloadParams::burst)),
        {"burst_at", "burst: time of the burst; 1s", [](Wanted &w, const auto &n, const auto &t) {
             w.run.workload.burstAt = Value(n, t, Durations, 0, Hour * 1e9) * 1e-9; }},
        {"opened", "burst: yes: a small request precedes each one and opens its tunnel; no",
         [](Wanted &w, const auto &n, const auto &t) { w.run.workload.opened = YesOrNo(n, t); }},
        Numeric("objects", "pages: objects of a page; 12", Plain, 1, 1000, load(&WorkloadParams::objects)),
        Numeric("hosts", "pages: servers of a page's objects, used in turn; 1", Plain, 1, 1000,
                load(&WorkloadParams::hosts)),
        Numeric("blocking", "pages: objects that block first paint, the first requested; 4", Plain, 1, 1000,
                load(&WorkloadParams::blocking)),
        Numeric("connections", "pages: concurrent requests of a page; 6", Plain, 1, 64,
                load(&WorkloadParams::connections)),
        {"recorded", "requests.csv of a field trial, replayed instead of a workload",
         [](Wanted &w, const auto &, const auto &t) { w.recorded = t; }},
        {"classes", "names of the classes; gold,silver,bronze",
         [](Wanted &w, const auto &, const auto &t) { w.classes = Split(t, ','); }},
        {"think", "pages: mean pause between two pages of a user; 5s", [](Wanted &w, const auto &n, const auto &t) {
             w.run.workload.think = Value(n, t, Durations, 0, Hour * 1e9) * 1e-9; }},
        Numeric("size", "size of every response, instead of lognormal sizes", Sizes, 1, 1e9,
                load(&WorkloadParams::fixedSize)),
        Numeric("first_byte", "median time between a request and the first byte at the server, lognormal; 60ms",
                Durations, 0, 5e9, load(&WorkloadParams::firstByte)),
        Numeric("first_byte_sigma", "deviation of its logarithm; 1.2", Plain, 0, 3,
                load(&WorkloadParams::firstByteSigma)),
        Numeric("silent", "requests to servers that never answer, as a share of the others; 1%", Shares, 0, 1,
                load(&WorkloadParams::silent)),
        Numeric("dead", "requests a second to servers that never answer, of users of their own; 0", Plain, 0, 1e4,
                beside(&BesideParams::silent)),
        Numeric("dead_users", "number of these users; 1", Plain, 1, 1000, beside(&BesideParams::silentUsers)),
        Numeric("thinking", "requests a second to servers that take time; 0", Plain, 0, 1e4,
                beside(&BesideParams::thinking)),
        Numeric("thinks", "time that these take; 2s", Durations, 0, 60e9, beside(&BesideParams::thinks)),
        Numeric("streams", "streams of a constant rate, each of its own user; 0", Plain, 0, 1000,
                beside(&BesideParams::streams)),
        Numeric("stream_rate", "rate of each; 48kbit", Rates, 1e3, 1e9, beside(&BesideParams::streamRate)),
        Numeric("others", "endless TCP downloads that bypass the gateway; 0", Plain, 0, 1000,
                others(&OthersParams::downloads)),
        Numeric("constant", "unresponsive stream that bypasses the gateway, share of the link; 0%", Shares, 0, 1,
                others(&OthersParams::constant)),
        Numeric("others_from", "start of others= and constant=; 0s", Durations, 0, Hour * 1e9,
                others(&OthersParams::from)),
        Numeric("others_until", "end of others= and constant=; 3600s", Durations, 0, Hour * 1e9,
                others(&OthersParams::until)),
        Numeric("slice", "length of the slices in which shares are measured, s; 10", Plain, 0.1, 1e6,
                run(&RunParams::slice)),
        Numeric("seconds", "length of the run, warmup included, s; 200", Plain, 1, 1e6, run(&RunParams::seconds)),
        Numeric("warmup", "time at the start that is not measured, s; 60", Plain, 0, 1e6, run(&RunParams::warmup)),
        Numeric("drain", "time after the last request, s; 0", Plain, 0, 1e6, run(&RunParams::drain)),
        Numeric("seed", "first seed; 1", Plain, 0, 1e9, run(&RunParams::seed)),
        Numeric("seeds", "number of seeds, one run each; 1", Plain, 1, 1000,
                [](Wanted &w) -> auto & { return w.seeds; }),
        Numeric("link_rate", "msfrs_link rate=; the link's", Rates, 1e4, 1e10, config(&RequestConfig::rate)),
        Numeric("min", "msfrs_link rate=auto min=, with max=", Rates, 1e4, 1e10,
                [](Wanted &w) -> auto & { return w.run.config.bounds.min; }),
        Numeric("max", "msfrs_link rate=auto max=", Rates, 1e4, 1e10,
                [](Wanted &w) -> auto & { return w.run.config.bounds.max; }),
        Numeric("rtt", "msfrs_link rtt=; 300ms", Durations, 1e6, 1e10, config(&RequestConfig::rtt)),
        {"law", "msfrs_window law=, bytes or paper; bytes", [](Wanted &w, const auto &n, const auto &t) {
             if (t != "bytes" && t != "paper")
                 throw ConfigError(n + "=" + t + " is not allowed: expected bytes or paper");
             w.run.config.window.law = t == "bytes" ? WindowLaw::Bytes : WindowLaw::Paper; }},
        Numeric("target", "msfrs_window target=; 99%", Shares, 0.01, 0.9999, window(&WindowParams::target)),
        Numeric("interval", "msfrs_window interval=; 1s", Durations, 1e7, 1e12, window(&WindowParams::interval)),
        Numeric("growth", "msfrs_window growth=; 2", Plain, 1.01, 100, window(&WindowParams::growth)),
        Numeric("reserve", "msfrs_window reserve=; 50%", Shares, 0, 100, window(&WindowParams::reserve)),
        Numeric("floor", "msfrs_window floor=; 60%", Shares, 0, 0.99, window(&WindowParams::floor)),
        Numeric("patience", "msfrs_window patience=; 600ms", Durations, 1e6, 1e12, config(&RequestConfig::patience)),
        Numeric("quantum", "msfrs_quantum; 16KB, 0bytes: none", Sizes, 0, 1e9, config(&RequestConfig::quantum)),
        {"arbiter", "msfrs_arbiter; msf",
         [](Wanted &w, const auto &, const auto &t) { w.run.config.arbiter = Plugin(t); }},
        {"admission", "msfrs_admission; none",
         [](Wanted &w, const auto &, const auto &t) { w.run.config.admission = Plugin(t); }},
        {"plugins", "directory of the plugins; the installed one",
         [](Wanted &w, const auto &, const auto &t) { w.run.config.pluginDir = t; }},
        {"show", "trace: print the course of C without a run: time of a change in s, new rate in bit/s; runs",
         [](Wanted &w, const auto &n, const auto &t) {
             if (t != "trace" && t != "runs")
                 throw ConfigError(n + "=" + t + " is not allowed: expected trace or runs");
             w.traceAlone = t == "trace"; }},
        Numeric("workers", "workers of the gateway, each with a scheduler; 1", Plain, 1, 8, run(&RunParams::workers)),
        {"split", "assignment of requests to workers: random, by class or by user; random",
         [](Wanted &w, const auto &n, const auto &t) {
             if (t != "random" && t != "class" && t != "user")
                 throw ConfigError(n + "=" + t + " is not allowed: expected random, class or user");
             w.run.split = t == "class"  ? RunParams::Split::Class
                           : t == "user" ? RunParams::Split::User
                                         : RunParams::Split::Random; }},
        {"kernel", "new: the gateway's kernel is Linux 6.16 or later, whose smoothed RTT falls at once; old",
         [](Wanted &w, const auto &n, const auto &t) {
             if (t != "old" && t != "new")
                 throw ConfigError(n + "=" + t + " is not allowed: expected old or new");
             w.run.kernelTakesLeast = t == "new"; }},
        {"course", "yes: print W, W+, U and C of each second; no",
         [](Wanted &w, const auto &n, const auto &t) { w.course = YesOrNo(n, t); }},
    };
    return all;
}

Wanted Parse(const int argc, char **const argv)
{
    Wanted wanted;
    for (int n = 1; n < argc; ++n) {
        const std::string word = argv[n];
        const auto middle = word.find('=');
        const auto name = word.substr(0, middle);
        const auto found = std::find_if(Options().begin(), Options().end(),
                                        [&](const auto &o) { return name == o.name; });
        if (found == Options().end() || middle == std::string::npos) {
            std::string known;
            for (const auto &option : Options())
                known += std::string("\n  ") + option.name + "=  " + option.help;
            throw ConfigError(word + ": unknown parameter; expected name=value, with" + known);
        }
        found->set(wanted, name, word.substr(middle + 1));
    }
    auto &run = wanted.run;
    if (wanted.users.size() != wanted.weights.size() || wanted.users.size() != wanted.classes.size())
        throw ConfigError("users=, weights= and classes= must have the same number of values");
    if (run.workload.active.size() > wanted.users.size() || (run.workload.parts > 1 && wanted.users.size() != 3))
        throw ConfigError("workload=phases requires three classes");
    if (wanted.traceAlone && run.trace.empty())
        throw ConfigError("show=trace requires trace=");
    if (run.warmup >= run.seconds)
        throw ConfigError("warmup= must be less than seconds=");
    if (wanted.jumping > static_cast<double>(run.paths.size()))
        throw ConfigError("jumping=" + Number(wanted.jumping) + " is not allowed: there are " +
                          std::to_string(run.paths.size()) + " servers");
    LetJump(run.paths, static_cast<size_t>(wanted.jumping), wanted.jump, wanted.jumpEvery);
    run.workload.users.assign(wanted.users.begin(), wanted.users.end());
    run.config.classes.clear();
    for (size_t n = 0; n < wanted.classes.size(); ++n)
        run.config.classes.push_back({wanted.classes[n], wanted.weights[n]});
    run.config.defaultClass = static_cast<uint32_t>(run.config.classes.size()) - 1;
    if (!wanted.recorded.empty()) {
        run.workload.kind = WorkloadParams::Kind::Recorded;
        const auto servers = static_cast<uint32_t>(run.paths.size());
        run.workload.recorded = ReadRecorded(wanted.recorded, wanted.classes, run.workload.users, servers);
    }
    return wanted;
}

/// The field trial's arms.
RunParams ArmOf(RunParams run, const std::string &arm)
{
    run.scheduled = arm != "stock";
    if (arm == "paper") {
        run.config.window.target = 0.98;
        run.config.window.interval = 5 * Second;
        run.config.window.reserve = 0;
        run.config.quantum = 0;
        run.config.arbiter = {"msf", {{"wake", "paper"}, {"users", "fifo"}}};
    }
    return run;
}

/// The figures of a row, by column.
std::vector<double> Figures(const RunResult &r)
{
    std::vector<double> row;
    for (const double bytes : r.perUser)
        row.push_back(bytes / r.perUser.back());
    row.push_back(100 * *std::max_element(r.userError.begin(), r.userError.end()));
    row.insert(row.end(), {100 * r.sliceError, 100 * r.found, 100 * r.utilisation, 100 * (r.utilisation - r.others),
                           1e3 * r.queueMean, 1e3 * r.queueP95, 100 * r.dropped, r.unfinished / 1e3,
                           100 * r.whileAsked, r.all.mean, r.all.p95, r.all.p99, r.smallMean});
    for (const auto &cls : r.classes)
        row.push_back(cls.mean);
    row.insert(row.end(), r.paint.begin(), r.paint.end());
    row.insert(row.end(), {static_cast<double>(r.all.count), static_cast<double>(r.all.unfinished), r.inService,
                           r.window.empty() ? 0 : r.window.back().wplus});
    return row;
}

void PrintHeader(const size_t classes)
{
    std::printf("%-8s %4s", "arm", "seed");
    for (size_t n = 1; n <= classes; ++n)
        std::printf("  user-%zu", n);
    std::printf(" %7s %7s %7s %7s %7s %7s %7s %7s %7s %7s %7s %7s %7s %7s",
                "user-%", "slice-%", "C-%", "U-%", "own-%", "q-ms", "q95-ms", "drop-%", "work-KB", "Uwork-%", "mean-s",
                "p95-s", "p99-s", "16KB-s");
    for (size_t n = 1; n <= classes; ++n)
        std::printf("  mean-%zu", n);
    for (size_t n = 1; n <= classes; ++n)
        std::printf(" paint-%zu", n);
    std::printf(" %7s %7s %7s %7s\n", "n", "open", "W", "W+end");
}

void PrintRow(const std::string &arm, const std::string &seed, const std::vector<double> &row)
{
    std::printf("%-8s %4s", arm.c_str(), seed.c_str());
    for (const double value : row)
        std::printf(value >= 1000 ? " %7.0f" : value >= 100 ? " %7.1f" : " %7.3f", value);
    std::printf("\n");
}

void PrintTrace(const RunParams &run)
{
    for (const auto &step : MakeTrace(run.trace, run.rate, run.seconds, run.seed))
        std::printf("%.3f %.0f\n", Seconds(step.at), step.rate);
}

void PrintRuns(const Wanted &wanted)
{
    PrintHeader(wanted.users.size());
    for (const auto &arm : wanted.arms) {
        std::vector<double> sums;
        for (uint32_t n = 0; n < wanted.seeds; ++n) {
            auto params = ArmOf(wanted.run, arm);
            params.seed += n;
            const auto result = Simulate(params);
            const auto row = Figures(result);
            PrintRow(arm, std::to_string(params.seed), row);
            sums.resize(row.size());
            for (size_t column = 0; column < row.size(); ++column)
                sums[column] += row[column] / wanted.seeds;
            if (!result.log.empty())
                std::fprintf(stderr, "%s", result.log.c_str());
            for (size_t part = 0; result.parts.size() > 1 && part < result.parts.size(); ++part) {
                std::printf("  part %zu, KB a user:", part + 1);
                for (const double bytes : result.parts[part])
                    std::printf(" %.0f", bytes / 1024);
                std::printf("\n");
            }
            for (size_t second = 0; wanted.course && second < result.window.size(); ++second) {
                const auto &w = result.window[second];
                std::printf("  %5.0f s  W %3.0f  W+ %6.2f  U %.3f  C %.3f of %.3f Mbit/s\n", w.at, w.w, w.wplus, w.u,
                            result.rates[second].believed / 1e6, result.rates[second].carries / 1e6);
            }
        }
        if (wanted.seeds > 1)
            PrintRow(arm, "mean", sums);
    }
}

} // namespace

int main(const int argc, char **const argv)
{
    try {
        const auto wanted = Parse(argc, argv);
        if (wanted.traceAlone)
            PrintTrace(wanted.run);
        else
            PrintRuns(wanted);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "msfrs-sim-access: %s\n", e.what());
        return 2;
    }
    return 0;
}
