// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/report.h"

#include "daemon/open_metrics.h"

namespace msfrs::edge {

namespace {

struct VolumeName {
    const char *name;
    Volume ClassCounts::*volume;
    const char *help;
};
constexpr VolumeName Totals[] = {
    {"offered", &ClassCounts::offered, "that came"},
    {"policed", &ClassCounts::policed, "dropped beyond the rate of their rule"},
    {"dropped", &ClassCounts::dropped, "dropped by the AQM or the limit"},
    {"marked", &ClassCounts::marked, "marked with congestion experienced"},
    {"passed", &ClassCounts::passed, "let go"},
};

struct CountName {
    const char *name;
    uint64_t QueueCounts::*count;
    const char *help;
};
constexpr CountName QueueTotals[] = {
    {"overruns", &QueueCounts::overruns, "Times the kernel could not hand packets over: the socket was full."},
    {"unscheduled", &QueueCounts::unscheduled,
     "Packets that passed unscheduled because the kernel could not hand them over (fail-open)."},
    {"gone", &QueueCounts::gone, "Verdicts for packets that the kernel no longer had."},
    {"unreadable", &QueueCounts::unreadable, "Packets without an IP header that could be read."},
    {"kernel_full", &QueueCounts::kernelDropped, "Packets dropped by the kernel, its queue being full; likewise."},
    {"socket_full", &QueueCounts::userDropped,
     "Packets dropped by the kernel, the socket being full; with fail-open they pass, unscheduled."},
};

struct ExcessName {
    const char *name;
    uint64_t Excess::Counts::*count;
    const char *help;
};
constexpr ExcessName ExcessTotals[] = {
    {"bytes", &Excess::Counts::bytes, "Bytes of inside receivers that Squid was told of."},
    {"outside_bytes", &Excess::Counts::outsideBytes, "Bytes of others that Squid was told of."},
    {"datagrams", &Excess::Counts::datagrams, "Reports to Squid."},
    {"waits", &Excess::Counts::waits, "Reports that waited because Squid was behind."},
    {"lost_bytes", &Excess::Counts::lostBytes, "Bytes that nobody could be told of."},
};

std::string Milliseconds(const double seconds) { return Number(seconds * 1e3) + " ms"; }

// Names of classes and gauges need no escapes in labels.
bool Leaf(const Report &r, const size_t n) { return !r.config->classes[n].interior; }
std::string ClassLabel(const Report &r, const size_t n) { return Label("class", r.config->classes[n].name); }

void Waits(std::ostringstream &out, const Report &r)
{
    Metric waits(out, "msfrs_edge_wait_seconds", "histogram", "How long packets waited.");
    for (size_t n = 0; n < r.classes.size(); ++n) {
        if (!Leaf(r, n))
            continue;
        const auto &w = r.classes[n].waits;
        uint64_t below = 0;
        for (size_t b = 0; b + 1 < WaitCounts::Buckets; ++b) {
            below += w.of[b];
            waits.sample(ClassLabel(r, n) + "," + Label("le", Number(WaitCounts::upperEnd(b))),
                         static_cast<double>(below), "_bucket");
        }
        const auto all = static_cast<double>(w.count());
        waits.sample(ClassLabel(r, n) + "," + Label("le", "+Inf"), all, "_bucket");
        waits.sample(ClassLabel(r, n), all, "_count");
        waits.sample(ClassLabel(r, n), static_cast<double>(w.sum) * 1e-9, "_sum");
    }
}

/// bit/s; 0: no limit
double LinkRate(const Report &r)
{
    return r.found ? r.found->capacity.rate : static_cast<double>(r.config->link.rate);
}

void FoundText(std::ostringstream &out, const FoundReport &found)
{
    const auto &c = found.capacity;
    out << "found from " << Number(c.params.min) << " to " << Number(c.params.max) << " bit/s: pace "
        << Number(static_cast<double>(found.pace)) << " bit/s, delivered " << Number(c.delivered) << " bit/s, base "
        << (found.base > 0 ? Milliseconds(found.base) : "unknown") << ", queue at the provider "
        << (c.queue >= 0 ? Milliseconds(c.queue) : "unknown") << ", longer path " << Milliseconds(c.ignored)
        << ", out of order " << Number(c.loss) << ", limited " << (c.limited ? "yes" : "no") << "\n";
    for (const auto &change : c.changes)
        out << "changed " << Number(static_cast<double>((found.at - change.at) / 100'000'000) / 10) << " s ago from "
            << Number(change.from) << " to " << Number(change.to) << " bit/s: " << CapacityReasonText(change.why)
            << "\n";
}

void FoundMetrics(std::ostringstream &out, const FoundReport &found)
{
    const auto &c = found.capacity;
    const auto gauge = [&](const char *const name, const char *const help, const double value) {
        Metric(out, std::string("msfrs_edge_link_") + name, "gauge", help).sample("", value);
    };
    gauge("pace_bits_per_second", "Rate at which packets leave.", static_cast<double>(found.pace));
    gauge("delivered_bits_per_second", "Recent delivery rate of the link.", c.delivered);
    gauge("limited", "1 while packets wait; otherwise the estimated rate can only grow.", c.limited);
    gauge("out_of_order_ratio", "Share of segments that arrived while an earlier one was missing.", c.loss);
    gauge("longer_path_seconds", "Part of the RTT increase that is not queueing.", c.ignored);
    if (c.queue >= 0)
        gauge("queue_seconds", "Queueing delay at the provider, from RTT samples.", c.queue);
    if (found.base > 0)
        gauge("base_round_trip_seconds", "Mean base RTT to servers.", found.base);
    if (c.changes.empty())
        return;
    gauge("last_change_age_seconds", "Time since the estimated rate was changed.",
          static_cast<double>(found.at - c.changes.back().at) * 1e-9);
    Metric(out, "msfrs_edge_link_last_change", "gauge", "1 for the reason of the last change of the rate found.")
        .sample(Label("reason", CapacityReasonText(c.changes.back().why)), 1);
}

} // namespace

std::string Text(const Report &r)
{
    const auto &config = *r.config;
    std::ostringstream out;
    out << r.file << ": up " << Number(r.upSeconds) << " s, " << r.reloads << " reloads, " << r.reloadFailures
        << " refused\n";
    out << "link " << (config.link.rate ? Number(LinkRate(r)) + " bit/s" : "without limit")
        << ", scheduler " << config.schedulerText << ", aqm " << (config.aqm.plugin ? config.aqmText : "none")
        << ", limit " << config.limit << " packets"
        << ", segments " << (config.gso() ? "together" : "apart") << ", conntrack " << (r.conntrack ? "yes" : "no")
        << "\n";
    if (r.found)
        FoundText(out, *r.found);
    for (size_t n = 0; n < r.queues.size(); ++n) {
        out << "queue " << config.queue.number + n << ": flows " << r.flows[n];
        for (const auto &c : QueueTotals)
            out << ", " << c.name << " " << r.queues[n].*c.count;
        out << "\n";
    }
    if (!config.segment.empty()) {
        out << "segment " << config.segment << ": " << (r.party ? "shared" : "not used") << ", share "
            << Number(static_cast<double>(r.share)) << " bit/s\n";
    }
    if (r.excess) {
        out << "excess " << config.excess.socket;
        auto separator = ": ";
        for (const auto &e : ExcessTotals) {
            out << separator << e.name << " " << (*r.excess).*e.count;
            separator = ", ";
        }
        out << "\n";
    }
    for (size_t n = 0; n < r.classes.size(); ++n) {
        if (!Leaf(r, n))
            continue;
        const auto &c = r.classes[n];
        out << "class " << config.classes[n].name << ":";
        for (const auto &v : Totals)
            out << " " << v.name << " " << (c.*v.volume).packets << " packets " << (c.*v.volume).bytes << " bytes,";
        out << " queued " << c.queued.packets << " packets " << c.queued.bytes << " bytes; waited p50 "
            << Milliseconds(c.waits.quantile(0.5)) << ", p99 " << Milliseconds(c.waits.quantile(0.99)) << "\n";
    }
    for (const auto &g : r.gauges) {
        out << g.plugin << " of queue " << config.queue.number + g.queue
            << (g.cls == NoClass ? "" : ", class " + config.classes[g.cls].name) << ": " << g.name << " "
            << Number(g.value) << (g.unit.empty() ? "" : " " + g.unit) << "\n";
    }
    return out.str();
}

std::string OpenMetrics(const Report &r)
{
    const auto &config = *r.config;
    std::ostringstream out;
    Metric(out, "msfrs_edge_up_seconds", "gauge", "Time since the start.").sample("", r.upSeconds);
    Metric(out, "msfrs_edge_link_bits_per_second", "gauge", "The link's rate; 0: no limit.")
        .sample("", LinkRate(r));
    if (r.found)
        FoundMetrics(out, *r.found);
    Metric(out, "msfrs_edge_reloads", "counter", "Configurations taken up.")
        .sample("", static_cast<double>(r.reloads), "_total");
    Metric(out, "msfrs_edge_reload_failures", "counter", "Configurations refused.")
        .sample("", static_cast<double>(r.reloadFailures), "_total");
    for (const auto &v : Totals) {
        for (const bool packets : {true, false}) {
            Metric family(out, "msfrs_edge_" + std::string(v.name) + (packets ? "_packets" : "_bytes"), "counter",
                          (packets ? "Packets " : "Bytes of packets ") + std::string(v.help) + ".");
            for (size_t n = 0; n < r.classes.size(); ++n) {
                const auto &volume = r.classes[n].*v.volume;
                if (Leaf(r, n))
                    family.sample(ClassLabel(r, n), static_cast<double>(packets ? volume.packets : volume.bytes),
                                  "_total");
            }
        }
    }
    for (const bool packets : {true, false}) {
        Metric family(out, packets ? "msfrs_edge_queued_packets" : "msfrs_edge_queued_bytes", "gauge",
                      packets ? "Packets that wait." : "Bytes of packets that wait.");
        for (size_t n = 0; n < r.classes.size(); ++n) {
            const auto &volume = r.classes[n].queued;
            if (Leaf(r, n))
                family.sample(ClassLabel(r, n), static_cast<double>(packets ? volume.packets : volume.bytes));
        }
    }
    Waits(out, r);
    const auto queueLabel = [&](const size_t n) { return Label("queue", std::to_string(config.queue.number + n)); };
    for (const auto &c : QueueTotals) {
        Metric family(out, std::string("msfrs_edge_") + c.name, "counter", c.help);
        for (size_t n = 0; n < r.queues.size(); ++n)
            family.sample(queueLabel(n), static_cast<double>(r.queues[n].*c.count), "_total");
    }
    Metric flows(out, "msfrs_edge_flows", "gauge", "Flows that are known, idle ones included.");
    for (size_t n = 0; n < r.flows.size(); ++n)
        flows.sample(queueLabel(n), static_cast<double>(r.flows[n]));
    if (!config.segment.empty()) {
        Metric(out, "msfrs_edge_party", "gauge", "Whether it is a party of Squid's ledger.").sample("", r.party);
        Metric(out, "msfrs_edge_share_bits_per_second", "gauge",
               "What packets may have of Squid's link; 0: Squid says nothing of it.")
            .sample("", static_cast<double>(r.share));
    }
    for (const auto &e : ExcessTotals) {
        if (r.excess)
            Metric(out, std::string("msfrs_edge_excess_") + e.name, "counter", e.help)
                .sample("", static_cast<double>((*r.excess).*e.count), "_total");
    }
    Metric gauges(out, "msfrs_edge_plugin", "gauge", "Gauges of the scheduler and the AQM.");
    for (const auto &g : r.gauges) {
        gauges.sample(queueLabel(g.queue) + "," + Label("plugin", g.plugin) + "," + Label("name", g.name) +
                          (g.cls == NoClass ? "" : "," + ClassLabel(r, g.cls)),
                      g.value);
    }
    out << "# EOF\n";
    return out.str();
}

void ReadKernelCounts(const std::string &table, const uint32_t number, QueueCounts &counts)
{
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        uint64_t queue = 0, port = 0, total = 0, mode = 0, range = 0, full = 0, user = 0;
        if (fields >> queue >> port >> total >> mode >> range >> full >> user && queue == number) {
            counts.kernelDropped = full;
            counts.userDropped = user;
        }
    }
}

} // namespace msfrs::edge
