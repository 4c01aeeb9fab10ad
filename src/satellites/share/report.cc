// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/report.h"

#include "daemon/open_metrics.h"

namespace msfrs::share {

namespace {

struct OtherGauge {
    const char *name, *type, *help;
    double (*value)(const OtherReport &);
};
constexpr OtherGauge OtherGauges[] = {
    {"here", "gauge", "Whether there is news of a gateway.", [](const OtherReport &o) { return o.here ? 1.0 : 0.0; }},
    {"news_age_seconds", "gauge", "Time since the latest news of a gateway; negative: none yet.",
     [](const OtherReport &o) { return o.age; }},
    {"demand", "gauge", "Weights of a gateway's active users.", [](const OtherReport &o) { return o.demand; }},
    {"places", "gauge", "Responses in service at a gateway, by its latest news.",
     [](const OtherReport &o) { return static_cast<double>(o.places); }},
    {"waiting", "gauge", "Requests that wait for a slot at a gateway, by its latest news.",
     [](const OtherReport &o) { return static_cast<double>(o.waiting); }},
    {"places_shown", "gauge", "Places that the parties of this machine leave to a gateway.",
     [](const OtherReport &o) { return static_cast<double>(o.shown); }},
    {"received_bytes", "counter", "Bytes that the link has carried to a gateway, as far as is known.",
     [](const OtherReport &o) { return static_cast<double>(o.received); }},
    {"messages_refused", "counter", "Messages of a gateway that were not what they should be.",
     [](const OtherReport &o) { return static_cast<double>(o.refused); }},
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
    out << "segment " << (r.segment ? "mapped, " : "not there, ") << r.parties << " parties; last message "
        << s.messageBytes << " bytes, " << s.users << " users; no room " << r.crowded << " times\n";
    for (const auto &o : s.others) {
        out << "gateway " << o.name << ": "
            << (o.here ? "there" : o.age < 0 ? "has said nothing yet" : "gone");
        if (o.age >= 0)
            out << ", news " << Number(o.age) << " s ago: places " << o.places << " (left to it: " << o.shown
                << "), waiting " << o.waiting << ", demand " << Number(o.demand);
        out << "; received " << o.received << " bytes, refused messages " << o.refused << "\n";
    }
    return out.str();
}

std::string OpenMetrics(const Report &r)
{
    const auto &s = r.sharing;
    std::ostringstream out;
    const auto one = [&](const char *const name, const char *const type, const char *const help, const double value) {
        const bool counter = std::string(type) == "counter";
        Metric(out, std::string("msfrs_share_") + name, type, help).sample("", value, counter ? "_total" : "");
    };
    one("up_seconds", "gauge", "Time since the start.", r.upSeconds);
    Metric state(out, "msfrs_share_state", "gauge", "Of what is known of the others: 1 for the state that it is in.");
    for (const auto each : {StoreState::Together, StoreState::Last, StoreState::Static})
        state.sample(Label("state", StoreStateText(each)), s.state == each ? 1 : 0);
    one("exchanges", "counter", "Exchanges with the store that were begun.", static_cast<double>(s.exchanges));
    one("failures", "counter", "Exchanges that failed.", static_cast<double>(s.failures));
    one("exchange_seconds", "gauge", "What the latest exchange took.", s.took);
    one("answer_age_seconds", "gauge", "Time since the store's latest answer.", s.sinceAnswer);
    one("message_bytes", "gauge", "Size of the latest message.", static_cast<double>(s.messageBytes));
    one("message_users", "gauge", "Users in the latest message.", static_cast<double>(s.users));
    one("segment", "gauge", "Whether the ledger's segment is mapped.", r.segment ? 1 : 0);
    one("parties", "gauge", "Parties of this machine that live.", static_cast<double>(r.parties));
    one("crowded", "counter", "Times that a gateway found no slot, or a user no entry.",
        static_cast<double>(r.crowded));
    for (const auto &g : OtherGauges) {
        Metric family(out, std::string("msfrs_share_other_") + g.name, g.type, g.help);
        for (const auto &o : s.others)
            family.sample(Label("gateway", o.name), g.value(o), std::string(g.type) == "counter" ? "_total" : "");
    }
    out << "# EOF\n";
    return out.str();
}

} // namespace msfrs::share
