// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/gateway_tables.h"

#include "report/snapshot.h"

#include <algorithm>

namespace msfrs::report {

namespace {

using S = const Snapshot &;
using C = ClassReport;
using P = PartySnapshot;
using W = WindowReport;

constexpr size_t ShownUsers = 10; ///< of a report; mgr:msfrs-users has all

size_t One(S) { return 1; }

/// Unknown if negative.
Value FromZero(const double value) { return value < 0 ? Value() : value; }
Value TextOf(const std::string &text) { return text.empty() ? Value() : text; }
Value Word(std::string text) { return {std::move(text), Value::Word}; }
Value Seconds(const msfrs_time ns) { return static_cast<double>(ns) * 1e-9; }

// Members of the parts of a snapshot.
template <auto Member> Value OfConfig(S s, size_t) { return s.config.*Member; }
template <auto Member> Value OfConfigTime(S s, size_t) { return Seconds(s.config.*Member); }
template <auto Member> Value OfLaw(S s, size_t) { return s.config.window.*Member; }
template <auto Member> Value OfWindow(S s, size_t) { return s.window.*Member; }
template <auto Member> Value IfKnown(S s, size_t) { return FromZero(s.window.*Member); }
template <auto Member> Value ByRate(S s, size_t) { return {s.window.*Member * s.config.rate, s.config.rate}; }
template <auto Member> Value Capacity(S s, size_t) { return (*s.window.capacity).*Member; }
template <auto Member> Value Party(S s, const size_t n) { return s.parties[n].*Member; }
template <auto Member> Value OfExcess(S s, size_t) { return s.excess.*Member; }
template <auto Member> Value Class(S s, const size_t n) { return s.classes[n].*Member; }
template <auto Member> Value OfHeld(S s, const size_t n) { return s.held[n].*Member; }
template <auto Member> Value User(S s, const size_t n) { return s.users[n].*Member; }

/// The link of a row, where a process has several.
constexpr Column LinkName = Column{nullptr, [](S s, size_t) {
    return s.link.empty() ? Value(Value::Absent) : Value(s.link);
}}.keyed("link");

constexpr Column StateColumns[] = {
    Column{nullptr, OfWindow<&W::holding>}.gauge("msfrs_holding", "1 while requests wait for a turn."),
    Column{"holding", [](S s, size_t) {
        const auto where = s.link.empty() ? "" : "at " + s.link + ' ';
        return Word((s.window.holding ? "yes" : "no") + (", because " + where + s.window.because));
    }},
    LinkName,
};

constexpr Column LinkColumns[] = {
    LinkName,
    Column{"rate", OfConfig<&RequestConfig::rate>}.sum().gauge(
        "msfrs_link_capacity_bytes_per_second", "Rate of the link as configured, or found.", "", 0, 1 / 8.0),
    Column{"interface", [](S s, size_t) { return TextOf(s.config.interface); }},
    Column{"metered", OfWindow<&W::metered>}
        .note("whether utilisation is from the interface's counter; otherwise from bytes of responses")
        .gauge("msfrs_link_metered", "1 while utilisation is measured by the interface's counter."),
    Column{"overhead", OfConfig<&RequestConfig::overhead>, 4},
    Column{"packet_overhead", OfConfig<&RequestConfig::packetOverhead>},
    Column{"rtt", OfConfigTime<&RequestConfig::rtt>, 3},
};

/// The fixed rates to choose from instead of rate=auto.
Value Advice(S s, size_t)
{
    constexpr double Enough = 600; // s in which requests waited: less says little about nine tenths of a day
    const auto &found = *s.window.capacity;
    if (found.known < Enough)
        return {};
    return "rate=" + Fixed(found.mostly / 1e3, 0) + "kbit was available nine tenths of the time and " +
        Fixed(found.half / 1e3, 0) + "kbit half of it, of the " + Fixed(found.known / 3600, 1) +
        " h of the last day in which requests waited";
}

/// Whether the rate was changed last for a reason.
constexpr Metric LastChange{"msfrs_link_last_change", "1 for the reason of the estimate's last change."};
template <CapacityReason Why>
constexpr Column ChangedFor(const char *const name)
{
    return Column{nullptr, [](S s, size_t) -> Value {
        const auto &changes = s.window.capacity->changes;
        return !changes.empty() && changes.back().why == Why;
    }}.metric(LastChange, "reason", name);
}

Value Changes(S s, size_t)
{
    Value list(Value::List);
    for (const auto &change : s.window.capacity->changes) {
        list.text += Map({{"ago", Fixed(static_cast<double>(s.now - change.at) * 1e-9, 1)},
                          {"from", Fixed(change.from, 0)}, {"to", Fixed(change.to, 0)},
                          {"because", Quoted(CapacityReasonText(change.why))}}) + "\n";
    }
    return list;
}

constexpr Column FoundColumns[] = {
    LinkName,
    Column{"min", [](S s, size_t) -> Value { return s.window.capacity->params.min; }},
    Column{"max", [](S s, size_t) -> Value { return s.window.capacity->params.max; }},
    Column{"delivered", Capacity<&CapacityReport::delivered>}.note("recent delivery rate")
        .gauge("msfrs_link_delivered_bytes_per_second", "Recent delivery rate of the link.", "", 0, 1 / 8.0),
    Column{"limited", Capacity<&CapacityReport::limited>}.note("requests wait; otherwise rate can only grow")
        .gauge("msfrs_link_limited", "1 while requests wait; otherwise the estimated rate can only grow."),
    Column{"queue", [](S s, size_t) { return FromZero(s.window.capacity->queue); }, 4}.note("recent, at the provider"),
    Column{"longer", Capacity<&CapacityReport::ignored>, 4}.note("part of the RTT increase that is not queueing")
        .gauge("msfrs_link_longer_path_seconds", "Part of the RTT increase that is not queueing.", "seconds"),
    Column{"out_of_order", Capacity<&CapacityReport::loss>, 4}
        .note("share of packets in the last second; caused by losses")
        .gauge("msfrs_link_out_of_order_ratio", "Share of packets that arrived before others sent earlier.", "ratio"),
    Column{"advice", Advice}.note("for a fixed rate; null: too little was measured"),
    Column{"changes", Changes}.note("the latest last"),
    ChangedFor<CapacityReason::Carried>("carried"),
    ChangedFor<CapacityReason::NoQueue>("no_queue"),
    ChangedFor<CapacityReason::Queue>("queue"),
    ChangedFor<CapacityReason::CarriesLess>("carries_less"),
    ChangedFor<CapacityReason::Loss>("loss"),
    ChangedFor<CapacityReason::LongerPath>("longer_path"),
    ChangedFor<CapacityReason::Bounds>("bounds"),
    ChangedFor<CapacityReason::Followed>("followed"),
    ChangedFor<CapacityReason::VariableRate>("variable_rate"),
};

Value History(S s, size_t)
{
    Value list(Value::List);
    for (const auto &sample : s.window.history) {
        list.text += Map({{"ago", Fixed(static_cast<double>(s.now) * 1e-9 - sample.at, 1)},
                          {"outstanding", Fixed(sample.w, 0)}, {"limit", Fixed(sample.wplus, 2)},
                          {"utilisation", Fixed(sample.u, 4)}, {"full", Value(sample.full != 0).yaml(0)},
                          {"own", FromZero(sample.own).yaml(4)}}) + "\n";
    }
    return list;
}

// The sums are over workers that do not share the link: each has a window for its part of the rate.
constexpr Column WindowColumns[] = {
    LinkName,
    Column{"outstanding", OfWindow<&W::outstanding>}.sum().note("W, responses in service")
        .gauge("msfrs_window_outstanding_responses", "W: responses in service.", "", 0),
    Column{"limit", OfWindow<&W::limit>, 2}.sum().note("W+, its limit")
        .gauge("msfrs_window_limit_responses", "W+: limit of responses in service."),
    Column{"queue_target", IfKnown<&W::queueTarget>, 4}
        .note("q*, the queue that bytes in flight may build at the provider; null: law=paper")
        .gauge("msfrs_window_queue_target_seconds",
               "q*: queueing delay at the provider that bytes in flight may cause.", "seconds"),
    Column{"queue", IfKnown<&W::queue>, 4}.note("at the provider, from RTT samples; null: too few recent ones")
        .gauge("msfrs_link_queue_seconds", "Queueing delay at the provider, from RTT samples.", "seconds"),
    Column{"base", [](S s, size_t) { return s.window.base > 0 ? Value(s.window.base) : Value(); }, 4}
        .note("mean base RTT to servers")
        .gauge("msfrs_link_base_round_trip_seconds", "Mean base RTT to servers.", "seconds"),
    Column{"utilisation", ByRate<&W::utilisation>, 4}.sum().note("U of the last interval, share of the rate")
        .gauge("msfrs_link_utilisation_ratio", "U: share of the link used in the last interval.", "ratio"),
    Column{"used_while_waiting", ByRate<&W::usedWhileFull>, 4}.sum().note("the same while requests waited"),
    Column{"own", IfKnown<&W::own>, 4}.note("share of responses in it")
        .gauge("msfrs_link_own_ratio", "Share of the link that responses had in it.", "ratio"),
    Column{nullptr, OfWindow<&W::full>}.sum()
        .counter("msfrs_link_wanted_seconds", "Time in which requests waited for a turn.", "seconds", 3),
    Column{nullptr, OfWindow<&W::carriedWhileFull>}.sum()
        .counter("msfrs_link_wanted_bytes", "Bytes that the link carried in that time.", "bytes"),
    Column{"law", [](S s, size_t) { return Word(s.config.window.law == WindowLaw::Bytes ? "bytes" : "paper"); }},
    Column{"floor", OfLaw<&WindowParams::floor>, 2},
    Column{"target", OfLaw<&WindowParams::target>, 4}.note("U+")
        .gauge("msfrs_window_target_ratio", "U+: target utilisation.", "ratio"),
    Column{"interval", [](S s, size_t) { return Seconds(s.config.window.interval); }, 3},
    Column{"growth", OfLaw<&WindowParams::growth>, 2},
    Column{"reserve", OfLaw<&WindowParams::reserve>, 2},
    Column{"patience", OfConfigTime<&RequestConfig::patience>, 3},
    Column{"history", History}.note(
        "one entry per interval since the last configuration, latest last; full: share of time in which requests\n"
        "waited; own: as above"),
};

constexpr Column AloneColumns[] = {
    Column{"alone", [](S s, size_t) { return TextOf(s.alone); }}.joined(Join::Known)
        .note("why a worker that should share the link schedules its part of the rate alone; null: none does"),
    Column{nullptr, [](S s, size_t) -> Value { return !s.alone.empty(); }}.most()
        .gauge("msfrs_ledger_degraded", "1 while a worker that should share the link schedules alone."),
};

/// Whether a party has the configuration of the leader.
Value Configured(S s, const size_t n)
{
    const auto leads = std::find_if(s.parties.begin(), s.parties.end(), [](const auto &p) { return p.leads; });
    return s.parties[n].live && leads != s.parties.end() && s.parties[n].config == leads->config;
}

constexpr Column PartyColumns[] = {
    Column{"slot", Party<&P::slot>}.keyed("slot"),
    Column{"kind", [](S s, const size_t n) { return Word(s.parties[n].kind); }}.keyed("kind"),
    Column{"live", Party<&P::live>}
        .gauge("msfrs_party_live", "1 while this party of the link, a worker or another program, is alive."),
    Column{"leads", Party<&P::leads>}.gauge("msfrs_party_leading", "1 for the party whose window applies to all."),
    Column{"pid", Party<&P::pid>},
    Column{"outstanding", Party<&P::places>}.gauge("msfrs_party_outstanding_responses", "Its part of W."),
    Column{"waiting", Party<&P::waiting>}.gauge("msfrs_party_waiting_requests", "Requests that wait for a slot there."),
    Column{"demand", Party<&P::demand>, 3}
        .gauge("msfrs_party_demand", "Sum of the weights of its active users.", "", 3),
    Column{"share", Party<&P::share>, 4}.gauge("msfrs_party_share_ratio", "Its share of the link by demand.", "ratio"),
    Column{"configured", Configured},
};

constexpr Column ExcessColumns[] = {
    Column{"socket", [](S s, size_t) { return TextOf(s.excessSocket); }}.joined(Join::Known),
    Column{"lines", OfExcess<&ExcessCounts::lines>}.sum()
        .counter("msfrs_excess_lines", "Lines that msfrs_excess took."),
    Column{"bytes", OfExcess<&ExcessCounts::bytes>}.sum().note("charged to classes"),
    Column{"no_class_bytes", OfExcess<&ExcessCounts::noClass>}.sum()
        .counter("msfrs_excess_no_class_bytes", "Bytes of receivers that are of no class.", "bytes"),
    Column{"refused_lines", OfExcess<&ExcessCounts::refused>}.sum()
        .counter("msfrs_excess_refused_lines", "Lines that msfrs_excess refused."),
};

template <auto Member>
Value Plugin(S s, size_t)
{
    const PluginChoice &choice = s.config.*Member;
    const auto settings = PrintSettings(choice.settings);
    return choice.name + (settings.empty() ? "" : " " + settings);
}

constexpr Column LimitColumns[] = {
    Column{"quantum", OfConfig<&RequestConfig::quantum>}.note("0: none"),
    Column{"max_wait", OfConfigTime<&RequestConfig::maxWait>, 3},
    Column{"max_per_user", OfConfig<&RequestConfig::maxPerUser>},
    Column{"max_queued", OfConfig<&RequestConfig::maxQueued>},
    Column{"arbiter", Plugin<&RequestConfig::arbiter>},
    Column{"admission", Plugin<&RequestConfig::admission>},
};

Value HeldPerMegabyte(S s, const size_t n) { return {1e6 * s.classes[n].heldLately, s.classes[n].bytesLately}; }

/// The quota of a class; null: none.
const QuotaReport *QuotaOf(S s, const size_t n)
{
    return n < s.quotas.size() && s.quotas[n].bytes > 0 ? &s.quotas[n] : nullptr;
}
template <auto Member>
Value Quota(S s, const size_t n)
{
    const auto *const quota = QuotaOf(s, n);
    return quota ? Value(quota->*Member) : Value();
}

Value QuotaUsers(S s, const size_t n)
{
    const auto *const quota = QuotaOf(s, n);
    Value list(quota ? Value::List : Value::Absent);
    for (const auto &user : quota ? quota->most : std::vector<QuotaReport::User>())
        list.text += Map({{"user", Quoted(user.name)}, {"bytes", std::to_string(user.bytes)}}) + "\n";
    return list;
}

constexpr Metric HeldTimes{
    "msfrs_class_held_seconds",
    "Time that an exchange was held before its first release and between its quanta, so far if it continues; each "
    "megabyte of a large response for itself. Quantiles over the last 5 to 10 minutes.",
    MetricKind::Summary, "seconds"};
constexpr Metric Refused{
    "msfrs_class_refused_requests",
    "Requests refused: too many of the user, too many in all, by admission, or waited too long.", MetricKind::Counter};

constexpr Column ClassColumns[] = {
    LinkName,
    Column{"name", Class<&C::name>}.keyed("class"),
    Column{"default", [](S s, const size_t n) -> Value { return n == s.config.defaultClass; }},
    Column{"weight", Class<&C::weight>, 3}.gauge("msfrs_class_weight", "Weight of the class.", "", 3),
    Column{"users", Class<&C::users>}.sum().gauge("msfrs_class_users", "Users with a request queued or in service."),
    Column{"queued", Class<&C::queued>}.sum()
        .gauge("msfrs_class_queued_requests", "Requests that wait to be forwarded."),
    Column{"paused", Class<&C::paused>}.sum()
        .gauge("msfrs_class_paused_responses", "Responses that wait for their next quantum."),
    Column{"in_flight", Class<&C::inFlight>}.sum().gauge("msfrs_class_in_flight_requests", "Requests in service."),
    Column{"sending", [](S s, const size_t n) -> Value { return s.classes[n].inFlight - s.classes[n].asked; }}.sum()
        .gauge("msfrs_class_sending_responses", "Of those in flight: their servers have begun to answer."),
    Column{"asked", Class<&C::asked>}.sum()
        .gauge("msfrs_class_asked_requests", "Of those in flight: their servers have not answered yet."),
    Column{"silent", Class<&C::resting>}.sum()
        .gauge("msfrs_class_silent_requests", "Idle requests: open without a slot, server silent."),
    Column{"requests", Class<&C::requests>}.sum().counter("msfrs_class_requests", "Requests that arrived."),
    Column{"exchanges", Class<&C::exchanges>}.sum()
        .counter("msfrs_class_exchanges", "Exchanges beyond the first of each request."),
    Column{"bytes", Class<&C::bytes>}.sum()
        .counter("msfrs_class_received_bytes", "Bytes of responses that were received.", "bytes"),
    Column{"excess", Class<&C::excess>}.sum()
        .counter("msfrs_class_excess_bytes", "Bytes that no request caused, as reported to msfrs_excess.", "bytes"),
    Column{"quanta", Class<&C::quanta>}.sum().counter("msfrs_class_quanta", "Quanta of responses that were begun."),
    Column{"service", Class<&C::service>}.most()
        .gauge("msfrs_class_service_bytes", "Service counter SC: bytes / (weight * users).", "bytes", 0),
    Column{"held_p50", Class<&C::heldP50>, 4}.most().metric(HeldTimes, "quantile", "0.5"),
    Column{"held_p95", Class<&C::heldP95>, 4}.most().metric(HeldTimes, "quantile", "0.95"),
    Column{"held_p99", Class<&C::heldP99>, 4}.most().metric(HeldTimes, "quantile", "0.99"),
    Column{nullptr, Class<&C::heldSum>}.sum().metric(HeldTimes, "", "_sum"),
    Column{nullptr, Class<&C::heldCount>}.sum().metric(HeldTimes, "", "_count"),
    Column{"unfinished", Class<&C::unfinished>}.sum().counter(
        "msfrs_class_unfinished_byte_seconds",
        "Bytes received, each times the seconds since it was requested; per second: bytes requested and not received."),
    Column{"held_per_mb", HeldPerMegabyte, 4}.sum(),
    Column{"refused.per_user", Class<&C::refusedPerUser>}.sum().metric(Refused, "reason", "per_user"),
    Column{"refused.total", Class<&C::refusedTotal>}.sum().metric(Refused, "reason", "total"),
    Column{"refused.admission", Class<&C::refusedAdmission>}.sum().metric(Refused, "reason", "admission"),
    Column{"refused.max_wait", Class<&C::expired>}.sum().metric(Refused, "reason", "max_wait"),
    Column{"quota.bytes", Quota<&QuotaReport::bytes>}
        .gauge("msfrs_class_quota_bytes", "Quota of a user of the class in a period.", "bytes"),
    Column{"quota.period", [](S s, const size_t n) {
        const auto *const quota = QuotaOf(s, n);
        return quota ? Word(QuotaPeriodText(quota->period)) : Value();
    }},
    Column{"quota.over", Quota<&QuotaReport::over>},
    Column{"quota.ends_in", Quota<&QuotaReport::endsIn>}
        .gauge("msfrs_class_quota_remaining_seconds", "Time until that period ends.", "seconds"),
    Column{"quota.users", Quota<&QuotaReport::users>}
        .gauge("msfrs_class_quota_users", "Users who used any of it in this period."),
    Column{"quota.users_over", Quota<&QuotaReport::usersOver>}
        .gauge("msfrs_class_quota_users_over", "Of these, users who exceeded it: another class now."),
    Column{"quota.passed", Quota<&QuotaReport::passed>}
        .counter("msfrs_class_quota_passed", "How often a user exceeded it."),
    Column{"quota_users", QuotaUsers},
};

constexpr Column HeldColumns[] = {
    Column{"user", OfHeld<&HeldReport::user>},
    Column{"class", OfHeld<&HeldReport::className>},
    Column{"host", OfHeld<&HeldReport::host>},
    Column{"waited", OfHeld<&HeldReport::waited>, 3},
    Column{"what", [](S s, const size_t n) { return Word(HeldText(s.held[n].what)); }},
    Column{"id", OfHeld<&HeldReport::id>},
};

constexpr Column UserColumns[] = {
    Column{"user", User<&UserReport::name>}.keyed(),
    Column{"class", User<&UserReport::className>}.keyed(),
    Column{"bytes", User<&UserReport::bytes>}.sum(),
    Column{"queued", User<&UserReport::queued>}.sum(),
    Column{"in_flight", User<&UserReport::inFlight>}.sum(),
};

constexpr Table Tables[Parts] = {
    {"", 0, Table::Lines, StateColumns, One},
    {"link:", 2, Table::Lines, LinkColumns, One},
    {"  auto: # how rate was found", 4, Table::Lines, FoundColumns,
     [](S s) -> size_t { return s.window.capacity ? 1 : 0; }},
    {"window:", 2, Table::Lines, WindowColumns, One},
    {"", 0, Table::Lines, AloneColumns, One},
    {"# parties on the link: workers and others. leads: its window applies to all. demand: sum of the weights of\n"
     "# active users. share: of the link, by demand. configured: like the leader\n"
     "parties:", 0, Table::RowsIfAny, PartyColumns, [](S s) { return s.parties.size(); }},
    {"excess: # reported to msfrs_excess", 2, Table::Lines, ExcessColumns, One},
    {"", 0, Table::Lines, LimitColumns, One},
    {"# users: with a request queued or in service. in_flight: requests with a slot; their servers are sending, or\n"
     "# were asked and have not answered yet. silent: idle, open without a slot. exchanges: beyond the first of\n"
     "# each request, which counts as a request.\n"
     "# service: the service counter SC, bytes / (weight * users).\n"
     "# excess: bytes that no request caused, in addition to bytes.\n"
     "# held_p*: time that an exchange was held, before its first release and between its quanta, over the last 5\n"
     "# to 10 minutes. An exchange held now counts with its time so far, and each megabyte of a large response for\n"
     "# itself. held_per_mb: the sum of these times per million bytes delivered meanwhile; null: none were.\n"
     "# unfinished: bytes received, each times the seconds since its exchange began. Its growth in a second is the\n"
     "# mean number of bytes requested and not received.\n"
     "# quota: bytes of a user of the class in a period, of all its traffic; users: with any; users_over: those who\n"
     "# exceeded it and are in the class over now; passed: how often that happened. quota_users: those with most.\n"
     "classes:", 0, Table::Maps, ClassColumns, [](S s) { return s.classes.size(); }},
    {"# requests that wait for a turn now, longest wait first, at most 50. request: has had none yet.\n"
     "# exchange: a later one of a persistent connection. response: paused between two quanta.\n"
     "# id: %master_xaction of logformat\n"
     "held:", 0, Table::Rows, HeldColumns, [](S s) { return s.held.size(); }},
    {"# by bytes since the user was first seen\n"
     "top_users:", 0, Table::Rows, UserColumns, [](S s) { return s.users.size(); }, ShownUsers},
};
static_assert(Snapshot::MostHeld == 50, "see the heading of held");

} // namespace

const Table &TableOf(const Part part) { return Tables[part]; }

} // namespace msfrs::report
