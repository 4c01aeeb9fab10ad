// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A DiffServ edge router's output port on a simulated link, for the papers' figures: receivers with constant rates,
/// whose packets of 64 bytes pass the real classifier, policer and marker, are queued by class, and leave in the order
/// of the diffserv scheduler. Time is simulated; only `rules` measures the machine.
///
///     edge_port port  PLUGINS LOAD SECONDS QUEUE   EF and AF1-3 from four receivers, each with LOAD of its wire speed:
///                                             prints a line for each class: packets/s offered, policed, dropped at
///                                             the queue, sent; mean time from arrival to the end of sending, us
///     edge_port flows PLUGINS LOAD SECONDS QUEUE   500 flows of one receiver, each with a rule and a 500th of half the
///                                             wire speed: prints a line of offered and sent packets/s for each
///     edge_port rules N                       processor time of a packet through classifier, policer and marker, ns,
///                                             with N rules, the last of which it matches; and of linear search
#include "edge/conditioner.h"
#include "edge/packet.h"
#include "sim/link/port.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace msfrs;
using namespace msfrs::edge;
using sim::Second;

constexpr double LinkRate = 100e6;                                 ///< Fast Ethernet, bit/s
constexpr int64_t Frame = 64, Header = 18;                         ///< bytes; Header: Ethernet header within the frame
constexpr int64_t Gap = 20;                                        ///< bytes: preamble and interframe gap
constexpr double WireSpeed = LinkRate / (8.0 * (Frame + Gap));     ///< packets/s
constexpr double EfLimit = 62'500;                                 ///< packets/s, as in figure 7
constexpr size_t Flows = 500;                                      ///< figure 9
constexpr double FlowLimit = 74'400.0 / Flows;                     ///< packets/s

/// A UDP packet from the n-th source that fits in a frame of 64 bytes.
std::vector<uint8_t> PacketFrom(const uint32_t n)
{
    std::vector<uint8_t> p(Frame - Header);
    p[0] = 0x45;
    p[9] = 17;
    p[12] = 198, p[13] = 18, p[14] = static_cast<uint8_t>(n >> 8), p[15] = static_cast<uint8_t>(n);
    return p;
}

std::string Source(const uint32_t n) { return "198.18." + std::to_string(n >> 8) + "." + std::to_string(n & 0xff); }

/// A policer's fields for a number of packets per second.
std::string Police(const double packets, const int64_t burst)
{
    const auto bits = static_cast<double>(8 * (Frame - Header));
    return " rate=" + std::to_string(static_cast<int64_t>(packets * bits + 0.5)) +
        "bit depth=" + std::to_string(burst * (Frame - Header)) + "B";
}

/// One of the port's inputs.
struct Input {
    uint32_t source;
    double rate; ///< packets/s
};

/// Counts of the packets of an input, or of a class.
struct Tally {
    uint64_t offered = 0, policed = 0, dropped = 0, sent = 0;
    double waited = 0; ///< seconds, of those sent
};

class EdgePort {
public:
    EdgePort(const std::string &plugins, const std::string &rules, const uint32_t queue)
        : conditioner_(Parse(rules)), queue_(queue),
          port_(clock_, LinkRate, Load(plugins), {}, 0, {[](int, const std::string &) {}, [] { return uint64_t(1); }},
                Gap)
    {
        for (const auto &c : PerHopClasses)
            flows_.push_back(&port_.engine.flow(*port_.engine.addClass(c.name, c.weight), "port"));
    }

    /// Counts arrivals and departures in the second half of `seconds`, when the queues have filled.
    std::vector<Tally> run(const std::vector<Input> &inputs, const double seconds)
    {
        struct Arrival {
            int64_t at;
            size_t input;
            bool operator<(const Arrival &other) const { return at > other.at; }
        };
        const auto end = static_cast<int64_t>(seconds * Second), half = end / 2;
        std::mt19937_64 random(1);
        std::vector<Tally> tallies(inputs.size());
        port_.sent = [&, sending = static_cast<int64_t>(Second / WireSpeed)](const msfrs_item &item) {
            if (clock_.now() - sending >= half) {
                auto &tally = tallies[reinterpret_cast<size_t>(item.host)];
                ++tally.sent;
                tally.waited += static_cast<double>(clock_.now() - item.enqueued) / Second;
            }
            port_.transmit();
        };
        std::vector<int64_t> count(inputs.size());
        std::priority_queue<Arrival> arrivals;
        // Constant rates, but each packet at a random time in its interval: otherwise inputs would stay synchronised.
        const auto next = [&](const size_t i) {
            const double in = static_cast<double>(count[i]++) + static_cast<double>(random() >> 11) * 0x1p-53;
            arrivals.push({static_cast<int64_t>(in / inputs[i].rate * Second), i});
        };
        std::vector<std::vector<uint8_t>> packets;
        for (size_t i = 0; i < inputs.size(); ++i) {
            packets.push_back(PacketFrom(inputs[i].source));
            next(i);
        }
        while (arrivals.top().at < end) {
            const auto [at, i] = arrivals.top();
            arrivals.pop();
            next(i);
            clock_.run(at); // departures at this time come first
            const bool counts = at >= half;
            tallies[i].offered += counts;
            const Packet packet{packets[i].data(), packets[i].size()};
            Verdict verdict;
            conditioner_.process(&packet, 1, at, &verdict);
            auto &flow = *flows_[static_cast<size_t>(verdict.cls)];
            if (!verdict.pass) {
                tallies[i].policed += counts;
            } else if (flow.backlog >= queue_) {
                tallies[i].dropped += counts;
            } else {
                const int64_t est[] = {Frame};
                msfrs_item *item;
                port_.engine.offer(flow, est, reinterpret_cast<void *>(i), at, item);
                port_.transmit();
            }
        }
        clock_.run(end);
        return tallies;
    }

private:
    static std::shared_ptr<const RuleTable> Parse(const std::string &rules)
    {
        std::istringstream in(rules);
        return std::make_shared<RuleTable>(ReadRules(in, "rules"));
    }

    static Engine::Part Load(const std::string &plugins)
    {
        const auto plugin = LoadPlugin("diffserv", MSFRS_SCHED, plugins);
        return {plugin, ParseParams(plugin->ops(), {{"quantum", std::to_string(Frame)}})};
    }

    Conditioner conditioner_;
    uint32_t queue_;
    sim::Clock clock_;
    sim::Port port_;
    std::vector<msfrs_flow *> flows_;
};

void PrintPort(const std::string &plugins, const double load, const double seconds, const uint32_t queue)
{
    const char *const marks[] = {"ef", "af11", "af21", "af31"};
    std::string rules;
    std::vector<Input> inputs;
    for (uint32_t n = 0; n < 4; ++n) {
        const auto police = n == 0 ? Police(EfLimit, 16) : "";
        rules += std::string(marks[n]) + " from=" + Source(n) + police + " mark=" + marks[n] + "\n";
        inputs.push_back({n, load * WireSpeed});
    }
    for (const auto &t : EdgePort(plugins, rules, queue).run(inputs, seconds)) {
        const double span = seconds / 2;
        std::printf("%.1f %.1f %.1f %.1f %.3f\n", static_cast<double>(t.offered) / span,
                    static_cast<double>(t.policed) / span, static_cast<double>(t.dropped) / span,
                    static_cast<double>(t.sent) / span, t.sent ? 1e6 * t.waited / static_cast<double>(t.sent) : 0);
    }
}

void PrintFlows(const std::string &plugins, const double load, const double seconds, const uint32_t queue)
{
    std::string rules;
    std::vector<Input> inputs;
    for (uint32_t n = 0; n < Flows; ++n) {
        rules += "flow" + std::to_string(n) + " from=" + Source(n) + Police(FlowLimit, 4) + " mark=af11\n";
        inputs.push_back({n, load * WireSpeed / Flows});
    }
    const double span = seconds / 2;
    for (const auto &t : EdgePort(plugins, rules, queue).run(inputs, seconds))
        std::printf("%.2f %.2f\n", static_cast<double>(t.offered) / span, static_cast<double>(t.sent) / span);
}

double ProcessorTime()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Nanoseconds per call, the least of several rounds, since other processes only add time.
template <class Work>
double Measure(const int calls, const Work &work)
{
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 7; ++round) {
        const double begin = ProcessorTime();
        for (int n = 0; n < calls; ++n)
            work();
        best = std::min(best, (ProcessorTime() - begin) / calls * 1e9);
    }
    return best;
}

void PrintRules(const uint32_t n)
{
    std::vector<Rule> rules;
    for (uint32_t r = 0; r < n; ++r) {
        Rule rule;
        rule.name = "r" + std::to_string(r);
        rule.match.family = Family::V4;
        rule.match.source.first = rule.match.source.last = {0, 0xc6120000u + r};
        rule.match.destinationPort = {0, r + 1};
        rule.match.protocol = {17, 17};
        rule.police = TokenRate{TokenRate::MaxRate, TokenRate::MaxDepth};
        rule.mark = CodePoints[r % std::size(CodePoints)];
        rules.push_back(rule);
    }
    Conditioner conditioner(std::make_shared<RuleTable>(rules));
    auto packet = PacketFrom(n - 1);
    const Packet packets[] = {{packet.data(), packet.size()}};
    int64_t now = 0;
    const double ours = Measure(20'000, [&] {
        Verdict verdict;
        conditioner.process(packets, 1, now += 1000, &verdict);
        if (verdict.rule != n - 1)
            std::abort();
    });
    Policer policer(*rules[0].police);
    const double theirs = Measure(2'000, [&] {
        const auto key = *ReadKey(packet.data(), packet.size());
        const auto matches = [&key](const Rule &r) { return r.match.contains(key); };
        const auto first = std::find_if(rules.begin(), rules.end(), matches);
        if (first != rules.end() - 1 ||
            !policer.admit(static_cast<int64_t>(packet.size()), now += 1000))
            std::abort();
        Mark(packet.data(), rules[n - 1].mark.value);
    });
    std::printf("%.1f %.1f\n", ours, theirs);
}

} // namespace

int main(const int argc, char **const argv)
{
    try {
        const std::string what = argc > 1 ? argv[1] : "";
        if (what == "rules" && argc == 3 && std::atoi(argv[2]) > 0)
            PrintRules(static_cast<uint32_t>(std::atoi(argv[2])));
        else if ((what == "port" || what == "flows") && argc == 6)
            (what == "port" ? PrintPort : PrintFlows)(argv[2], std::atof(argv[3]), std::atof(argv[4]),
                                                      static_cast<uint32_t>(std::atoi(argv[5])));
        else
            throw std::invalid_argument("expected port|flows PLUGINS LOAD SECONDS QUEUE, or rules N");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "edge_port: %s\n", e.what());
        return 2;
    }
    return 0;
}
