// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/report.h"

#include "report/open_metrics.h"

#include <sstream>

namespace msfrs::edge {

namespace {

template <class Counts, class Count = uint64_t>
struct CountName {
    const char *name;
    Count Counts::*count;
    const char *help;
};
constexpr CountName<ClassCounts, Volume> Totals[] = {
    {"offered", &ClassCounts::offered, "that arrived"},
    {"policed", &ClassCounts::policed, "dropped beyond the rate of their rule"},
    {"dropped", &ClassCounts::dropped, "dropped by the AQM or the limit"},
    {"marked", &ClassCounts::marked, "marked with congestion experienced"},
    {"passed", &ClassCounts::passed, "released"},
};

constexpr CountName<QueueCounts> QueueTotals[] = {
    {"overruns", &QueueCounts::overruns, "Times that the kernel could not deliver packets: socket buffer full."},
    {"unscheduled", &QueueCounts::unscheduled,
     "Packets that passed unscheduled because the kernel could not deliver them (fail-open)."},
    {"gone", &QueueCounts::gone, "Verdicts for packets that the kernel no longer had."},
    {"unreadable", &QueueCounts::unreadable, "Packets without an IP header that could be read."},
    {"kernel_full", &QueueCounts::kernelDropped, "Packets dropped by the kernel because its queue was full."},
    {"socket_full", &QueueCounts::userDropped,
     "Packets dropped by the kernel because the socket buffer was full; with fail-open they pass, unscheduled."},
};

constexpr CountName<Excess::Counts> ExcessTotals[] = {
    {"bytes", &Excess::Counts::bytes, "Bytes of inside receivers reported to Squid."},
    {"outside_bytes", &Excess::Counts::outsideBytes, "Bytes of other receivers reported to Squid."},
    {"datagrams", &Excess::Counts::datagrams, "Datagrams with reports to Squid."},
    {"waits", &Excess::Counts::waits, "Reports that waited because Squid was behind."},
    {"lost_bytes", &Excess::Counts::lostBytes, "Bytes that could not be reported to Squid."},
};

std::string Milliseconds(const double seconds) { return Number(seconds * 1e3) + " ms"; }

bool Leaf(const Report &r, const size_t n) { return !r.config->classes[n].interior; }
std::string ClassLabel(const Report &r, const size_t n) { return Label("class", r.config->classes[n].name); }

void Waits(Metrics &all, const Report &r)
{
    auto waits = all.family("wait_seconds", MetricKind::Histogram, "Queueing delay of packets.");
    for (size_t n = 0; n < r.classes.size(); ++n) {
        if (!Leaf(r, n))
            continue;
        const auto &w = r.classes[n].waits;
        const auto bucket = [&](const std::string &end, const uint64_t below) {
            waits.sample({ClassLabel(r, n), Label("le", end)}, below, "_bucket");
        };
        uint64_t below = 0;
        for (size_t b = 0; b + 1 < WaitCounts::Buckets; ++b)
            bucket(Number(WaitCounts::upperEnd(b)), below += w.of[b]);
        bucket("+Inf", w.count());
        waits.sample({ClassLabel(r, n)}, w.count(), "_count");
        waits.sample({ClassLabel(r, n)}, static_cast<double>(w.sum) * 1e-9, "_sum");
    }
}

/// Packets and bytes of each class, as two families.
/// \param help what happened to the packets
void Volumes(Metrics &all, const Report &r, const std::string &name, const MetricKind kind,
             Volume ClassCounts::*const of, const std::string &help)
{
    const auto family = [&](const char *const unit, const char *const what, const auto count) {
        auto one = all.family(name + unit, kind, what + help + ".");
        for (size_t n = 0; n < r.classes.size(); ++n) {
            if (Leaf(r, n))
                one.sample({ClassLabel(r, n)}, r.classes[n].*of.*count);
        }
    };
    family("_packets", "Packets ", &Volume::packets);
    family("_bytes", "Bytes of packets ", &Volume::bytes);
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

void FoundMetrics(Metrics &all, const FoundReport &found)
{
    const auto &c = found.capacity;
    all.gauge("link_pace_bits_per_second", "Rate at which packets leave.", found.pace);
    all.gauge("link_delivered_bits_per_second", "Recent delivery rate of the link.", c.delivered);
    all.gauge("link_limited", "1 while packets wait; otherwise the estimated rate can only grow.", c.limited);
    all.gauge("link_out_of_order_ratio", "Share of segments that arrived while an earlier one was missing.", c.loss);
    all.gauge("link_longer_path_seconds", "Part of the RTT increase that is not queueing.", c.ignored);
    if (c.queue >= 0)
        all.gauge("link_queue_seconds", "Queueing delay at the provider, from RTT samples.", c.queue);
    if (found.base > 0)
        all.gauge("link_base_round_trip_seconds", "Mean base RTT to servers.", found.base);
    if (c.changes.empty())
        return;
    all.gauge("link_last_change_age_seconds", "Time since the estimated rate was changed.",
              static_cast<double>(found.at - c.changes.back().at) * 1e-9);
    all.family("link_last_change", MetricKind::Gauge, "1 for the reason of the last change of the estimated rate.")
        .sample({Label("reason", CapacityReasonText(c.changes.back().why))}, 1);
}

} // namespace

std::string Text(const Report &r)
{
    const auto &config = *r.config;
    std::ostringstream out;
    out << r.file << ": up " << Number(r.upSeconds) << " s, " << r.reloads << " reloads, " << r.reloadFailures
        << " refused\n";
    out << "link " << (config.link.rate ? Number(LinkRate(r)) + " bit/s" : "without limit")
        << ", scheduler " << config.scheduler.text << ", aqm " << (config.aqm.plugin ? config.aqm.text : "none")
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
    if (!config.segment.value.empty()) {
        out << "segment " << config.segment.value << ": " << (r.party ? "shared" : "not used") << ", share "
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
            out << " " << v.name << " " << (c.*v.count).packets << " packets " << (c.*v.count).bytes << " bytes,";
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
    Metrics all(out, "msfrs_edge_");
    all.gauge("up_seconds", "Time since the start.", r.upSeconds);
    all.gauge("link_bits_per_second", "The link's rate; 0: no limit.", LinkRate(r));
    if (r.found)
        FoundMetrics(all, *r.found);
    all.counter("reloads", "Configurations reloaded.", r.reloads);
    all.counter("reload_failures", "Configurations refused.", r.reloadFailures);
    for (const auto &v : Totals)
        Volumes(all, r, v.name, MetricKind::Counter, v.count, v.help);
    Volumes(all, r, "queued", MetricKind::Gauge, &ClassCounts::queued, "that wait");
    Waits(all, r);
    const auto queueLabel = [&](const size_t n) { return Label("queue", std::to_string(config.queue.number + n)); };
    for (const auto &c : QueueTotals) {
        auto family = all.family(c.name, MetricKind::Counter, c.help);
        for (size_t n = 0; n < r.queues.size(); ++n)
            family.sample({queueLabel(n)}, r.queues[n].*c.count);
    }
    auto flows = all.family("flows", MetricKind::Gauge, "Known flows, including idle ones.");
    for (size_t n = 0; n < r.flows.size(); ++n)
        flows.sample({queueLabel(n)}, r.flows[n]);
    if (!config.segment.value.empty()) {
        all.gauge("party", "Whether it is a party of Squid's ledger.", r.party);
        all.gauge("share_bits_per_second", "What packets may have of Squid's link; 0: Squid says nothing of it.",
                  r.share);
    }
    for (const auto &e : ExcessTotals) {
        if (r.excess)
            all.counter(std::string("excess_") + e.name, e.help, (*r.excess).*e.count);
    }
    auto gauges = all.family("plugin", MetricKind::Gauge, "Gauges of the scheduler and the AQM.");
    for (const auto &g : r.gauges) {
        Labels labels = {queueLabel(g.queue), Label("plugin", g.plugin), Label("name", g.name)};
        if (g.cls != NoClass)
            labels.push_back(ClassLabel(r, g.cls));
        gauges.sample(labels, g.value);
    }
    all.end();
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
