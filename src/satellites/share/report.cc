// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/report.h"

#include "report/open_metrics.h"

#include <sstream>

namespace msfrs::share {

namespace {

/// A figure of each of the other gateways.
struct OtherFigure {
    const char *name;
    MetricKind kind;
    const char *help;
    double (*value)(const OtherReport &);
};
template <auto Member>
double Of(const OtherReport &o) { return static_cast<double>(o.*Member); }

constexpr OtherFigure OtherFigures[] = {
    {"here", MetricKind::Gauge, "1 while messages of a gateway arrive.", Of<&OtherReport::here>},
    {"news_age_seconds", MetricKind::Gauge, "Time since the latest message of a gateway; negative: none yet.",
     Of<&OtherReport::age>},
    {"demand", MetricKind::Gauge, "Sum of the weights of a gateway's active users.", Of<&OtherReport::demand>},
    {"places", MetricKind::Gauge, "Responses in service at a gateway, by its latest message.",
     Of<&OtherReport::places>},
    {"waiting", MetricKind::Gauge, "Requests that wait for a slot at a gateway, by its latest message.",
     Of<&OtherReport::waiting>},
    {"places_shown", MetricKind::Gauge, "Slots that the parties of this machine leave to a gateway.",
     Of<&OtherReport::shown>},
    {"received_bytes", MetricKind::Counter, "Bytes that the link has carried to a gateway, as far as known.",
     Of<&OtherReport::received>},
    {"messages_refused", MetricKind::Counter, "Invalid messages of a gateway.",
     Of<&OtherReport::refused>},
};

} // namespace

std::string Text(const Report &r)
{
    const auto &s = r.sharing;
    std::ostringstream out;
    out << "gateway " << r.gateway << " of link " << r.link << ": up " << Number(r.upSeconds) << " s, "
        << StoreStateText(s.state) << ", static share " << Number(r.share * 100) << " %\n";
    out << r.store << ": " << s.exchanges << " exchanges, " << s.failures << " failed; the latest answer "
        << Number(s.sinceAnswer) << " s ago, took " << Number(s.took * 1e3) << " ms"
        << (s.failure.empty() ? "" : "; " + s.failure) << "\n";
    out << "segment " << (r.segment ? "mapped, " : "not mapped, ") << r.parties << " parties; last message "
        << s.messageBytes << " bytes, " << s.users << " users; segment full " << r.crowded << " times\n";
    for (const auto &o : s.others) {
        out << "gateway " << o.name << ": "
            << (o.here ? "present" : o.age < 0 ? "has not reported yet" : "gone");
        if (o.age >= 0)
            out << ", message " << Number(o.age) << " s ago: slots " << o.places << " (left to it: " << o.shown
                << "), waiting " << o.waiting << ", demand " << Number(o.demand);
        out << "; received " << o.received << " bytes, refused messages " << o.refused << "\n";
    }
    return out.str();
}

std::string OpenMetrics(const Report &r)
{
    const auto &s = r.sharing;
    std::ostringstream out;
    Metrics all(out, "msfrs_share_");
    all.gauge("up_seconds", "Time since the start.", r.upSeconds);
    auto state =
        all.family("state", MetricKind::Gauge, "State of the knowledge of the other gateways: 1 for the present one.");
    for (const auto each : {StoreState::Together, StoreState::Last, StoreState::Static})
        state.sample({Label("state", StoreStateText(each))}, s.state == each);
    all.counter("exchanges", "Exchanges with the store, started.", s.exchanges);
    all.counter("failures", "Exchanges that failed.", s.failures);
    all.gauge("exchange_seconds", "Duration of the latest successful exchange.", s.took);
    all.gauge("answer_age_seconds", "Time since the store's latest answer.", s.sinceAnswer);
    all.gauge("message_bytes", "Size of the latest message.", s.messageBytes);
    all.gauge("message_users", "Users in the latest message.", s.users);
    all.gauge("segment", "1 while the ledger's segment is mapped.", r.segment);
    all.gauge("parties", "Live parties of this machine.", r.parties);
    all.counter("crowded", "Times that a gateway got no slot, or a user no entry, in the segment.", r.crowded);
    for (const auto &f : OtherFigures) {
        auto family = all.family(std::string("other_") + f.name, f.kind, f.help);
        for (const auto &o : s.others)
            family.sample({Label("gateway", o.name)}, f.value(o));
    }
    all.end();
    return out.str();
}

} // namespace msfrs::share
