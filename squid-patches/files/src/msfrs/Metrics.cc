/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#include "squid.h"
#include "msfrs/Report.h"
#include "msfrs/Snapshot.h"

#include <functional>
#include <ostream>

namespace msfrs::squid
{

namespace
{

using Reports = std::vector<ClassReport>;

/// the value of a label, escaped as OpenMetrics requires
std::string
Escaped(const std::string &value)
{
    std::string escaped;
    for (const auto c: value) {
        if (c == '\n') {
            escaped += "\\n";
            continue;
        }
        if (c == '"' || c == '\\')
            escaped += '\\';
        escaped += c;
    }
    return escaped;
}

/// Writes metric families.
class Writer
{
public:
    explicit Writer(std::ostream &os): os_(os) {}

    /// \param unit the suffix of the name, or nil
    void family(const char *name, const char *type, const char *unit, const char *help)
    {
        name_ = name;
        os_ << "# TYPE " << name << ' ' << type << '\n';
        if (unit)
            os_ << "# UNIT " << name << ' ' << unit << '\n';
        os_ << "# HELP " << name << ' ' << help << '\n';
    }

    void sample(const char *suffix, const std::string &labels, const std::string &value)
    {
        os_ << name_ << suffix;
        if (!labels.empty())
            os_ << '{' << labels << '}';
        os_ << ' ' << value << '\n';
    }

    void gauge(const char *name, const char *unit, const char *help, const std::string &value)
    {
        family(name, "gauge", unit, help);
        sample("", "", value);
    }

    void counter(const char *name, const char *unit, const char *help, const std::string &value)
    {
        family(name, "counter", unit, help);
        sample("_total", "", value);
    }

    void counter(const char *name, const char *unit, const char *help, const uint64_t value)
    {
        counter(name, unit, help, std::to_string(value));
    }

private:
    std::ostream &os_;
    const char *name_ = nullptr;
};

std::string
ClassLabel(const ClassReport &c)
{
    return "class=\"" + Escaped(c.name) + "\"";
}

/// A metric family with a sample for each class.
template <class Report>
struct Family {
    const char *name;
    const char *type;
    const char *unit;
    const char *help;
    std::string (*value)(const Report &);

    void head(Writer &writer) const { writer.family(name, type, unit, help); }
    const char *suffix() const { return strcmp(type, "counter") == 0 ? "_total" : ""; }
};

const Family<QuotaReport> QuotaFamilies[] = {
    {   "msfrs_class_quota_bytes", "gauge", "bytes", "Quota of a user of the class in a period.",
        [](const QuotaReport &q) { return std::to_string(q.bytes); }
    },
    {   "msfrs_class_quota_remaining_seconds", "gauge", "seconds", "Time until that period ends.",
        [](const QuotaReport &q) { return std::to_string(q.endsIn); }
    },
    {   "msfrs_class_quota_users", "gauge", nullptr, "Users who used any of it in this period.",
        [](const QuotaReport &q) { return std::to_string(q.users); }
    },
    {   "msfrs_class_quota_users_over", "gauge", nullptr, "Of these, users who exceeded it: another class now.",
        [](const QuotaReport &q) { return std::to_string(q.usersOver); }
    },
    {   "msfrs_class_quota_passed", "counter", nullptr, "How often a user exceeded it.",
        [](const QuotaReport &q) { return std::to_string(q.passed); }
    },
};

const Family<ClassReport> ClassFamilies[] = {
    {   "msfrs_class_weight", "gauge", nullptr, "Weight of the class.",
        [](const ClassReport &c) { return Fixed(c.weight, 3); }
    },
    {   "msfrs_class_users", "gauge", nullptr, "Users with a request queued or in service.",
        [](const ClassReport &c) { return std::to_string(c.users); }
    },
    {   "msfrs_class_queued_requests", "gauge", nullptr, "Requests that wait to be forwarded.",
        [](const ClassReport &c) { return std::to_string(c.queued); }
    },
    {   "msfrs_class_paused_responses", "gauge", nullptr, "Responses that wait for their next quantum.",
        [](const ClassReport &c) { return std::to_string(c.paused); }
    },
    {   "msfrs_class_in_flight_requests", "gauge", nullptr, "Requests in service.",
        [](const ClassReport &c) { return std::to_string(c.inFlight); }
    },
    {   "msfrs_class_sending_responses", "gauge", nullptr, "Of those in flight: their servers have begun to answer.",
        [](const ClassReport &c) { return std::to_string(c.inFlight - c.asked); }
    },
    {   "msfrs_class_asked_requests", "gauge", nullptr, "Of those in flight: their servers have not answered yet.",
        [](const ClassReport &c) { return std::to_string(c.asked); }
    },
    {   "msfrs_class_silent_requests", "gauge", nullptr, "Idle requests: open without a slot, server silent.",
        [](const ClassReport &c) { return std::to_string(c.resting); }
    },
    {   "msfrs_class_service_bytes", "gauge", "bytes", "Service counter SC: bytes / (weight * users).",
        [](const ClassReport &c) { return Fixed(c.service, 0); }
    },
    {   "msfrs_class_requests", "counter", nullptr, "Requests that arrived.",
        [](const ClassReport &c) { return std::to_string(c.requests); }
    },
    {   "msfrs_class_exchanges", "counter", nullptr, "Exchanges beyond the first of each request.",
        [](const ClassReport &c) { return std::to_string(c.exchanges); }
    },
    {   "msfrs_class_received_bytes", "counter", "bytes", "Bytes of responses that were received.",
        [](const ClassReport &c) { return std::to_string(c.bytes); }
    },
    {   "msfrs_class_excess_bytes", "counter", "bytes", "Bytes that no request caused, as reported to msfrs_excess.",
        [](const ClassReport &c) { return std::to_string(c.excess); }
    },
    {   "msfrs_class_unfinished_byte_seconds", "counter", nullptr,
        "Bytes received, each times the seconds since it was requested; per second: bytes requested and not received.",
        [](const ClassReport &c) { return Fixed(c.unfinished, 0); }
    },
    {   "msfrs_class_quanta", "counter", nullptr, "Quanta of responses that were begun.",
        [](const ClassReport &c) { return std::to_string(c.quanta); }
    },
};

/// why C was changed last, as values of a label
const std::pair<CapacityReason, const char *> CapacityReasons[] = {
    {CapacityReason::Carried, "carried"}, {CapacityReason::NoQueue, "no_queue"},
    {CapacityReason::Queue, "queue"}, {CapacityReason::CarriesLess, "carries_less"},
    {CapacityReason::Loss, "loss"}, {CapacityReason::LongerPath, "longer_path"},
    {CapacityReason::Bounds, "bounds"}, {CapacityReason::Followed, "followed"},
    {CapacityReason::VariableRate, "variable_rate"}
};

/// how the rate of the link was estimated
void
PrintFound(Writer &writer, const CapacityReport &found)
{
    writer.gauge("msfrs_link_delivered_bytes_per_second", nullptr, "Recent delivery rate of the link.",
                 Fixed(found.delivered/8, 0));
    writer.gauge("msfrs_link_limited", nullptr, "1 while requests wait; otherwise the estimated rate can only grow.",
                 found.limited ? "1" : "0");
    writer.gauge("msfrs_link_out_of_order_ratio", "ratio", "Share of packets that arrived before others sent earlier.",
                 Fixed(found.loss, 6));
    writer.gauge("msfrs_link_longer_path_seconds", "seconds", "Part of the RTT increase that is not queueing.",
                 Fixed(found.ignored, 6));
    writer.family("msfrs_link_last_change", "gauge", nullptr, "1 for the reason of the estimate's last change.");
    for (const auto &[why, reason]: CapacityReasons) {
        const auto last = !found.changes.empty() && found.changes.back().why == why;
        writer.sample("", std::string("reason=\"") + reason + '"', last ? "1" : "0");
    }
}

/// whether requests are held, and the queueing delay that server connections measure
void
PrintHolding(Writer &writer, const WindowReport &window)
{
    writer.gauge("msfrs_holding", nullptr, "1 while requests wait for a turn.", window.holding ? "1" : "0");
    if (window.queue >= 0) {
        writer.gauge("msfrs_link_queue_seconds", "seconds", "Queueing delay at the provider, from RTT samples.",
                     Fixed(window.queue, 6));
    }
    if (window.base > 0) {
        writer.gauge("msfrs_link_base_round_trip_seconds", "seconds", "Mean base RTT to servers.",
                     Fixed(window.base, 6));
    }
}

void
PrintClasses(Writer &writer, const Reports &classes)
{
    for (const auto &family: ClassFamilies) {
        family.head(writer);
        for (const auto &c: classes)
            writer.sample(family.suffix(), ClassLabel(c), family.value(c));
    }
}

void
PrintRefusals(Writer &writer, const Reports &classes)
{
    writer.family("msfrs_class_refused_requests", "counter", nullptr,
                  "Requests refused: too many of the user, too many in all, by admission, or waited too long.");
    for (const auto &c: classes) {
        const std::pair<const char *, uint64_t> reasons[] = {
            {"per_user", c.refusedPerUser}, {"total", c.refusedTotal}, {"admission", c.refusedAdmission},
            {"max_wait", c.expired}
        };
        for (const auto &[reason, count]: reasons)
            writer.sample("_total", ClassLabel(c) + ",reason=\"" + reason + "\"", std::to_string(count));
    }
}

void
PrintHeldTimes(Writer &writer, const Reports &classes)
{
    writer.family("msfrs_class_held_seconds", "summary", "seconds",
                  "Time that an exchange was held before its first release and between its quanta, so far if it "
                  "continues; each megabyte of a large response for itself. Quantiles over the last 5 to 10 minutes.");
    for (const auto &c: classes) {
        const std::pair<const char *, double> quantiles[] = {
            {"0.5", c.heldP50}, {"0.95", c.heldP95}, {"0.99", c.heldP99}
        };
        for (const auto &[quantile, value]: quantiles)
            writer.sample("", ClassLabel(c) + ",quantile=\"" + quantile + "\"", Fixed(value, 6));
        writer.sample("_sum", ClassLabel(c), Fixed(c.heldSum, 6));
        writer.sample("_count", ClassLabel(c), std::to_string(c.heldCount));
    }
}

void
PrintQuotas(Writer &writer, const Reports &classes, const std::vector<QuotaReport> &quotas)
{
    if (quotas.empty())
        return;
    for (const auto &family: QuotaFamilies) {
        family.head(writer);
        for (size_t n = 0; n < classes.size(); ++n) {
            if (n < quotas.size() && quotas[n].bytes > 0)
                writer.sample(family.suffix(), ClassLabel(classes[n]), family.value(quotas[n]));
        }
    }
}

struct PartyFamily {
    const char *name;
    const char *unit;
    const char *help;
    std::string (*value)(const PartySnapshot &);
};

const PartyFamily PartyFamilies[] = {
    {   "msfrs_party_live", nullptr, "1 while this party of the link, a worker or another program, is alive.",
        [](const PartySnapshot &p) { return std::string(p.live ? "1" : "0"); }
    },
    {   "msfrs_party_leading", nullptr, "1 for the party whose window applies to all.",
        [](const PartySnapshot &p) { return std::string(p.leads ? "1" : "0"); }
    },
    {   "msfrs_party_outstanding_responses", nullptr, "Its part of W.",
        [](const PartySnapshot &p) { return std::to_string(p.places); }
    },
    {   "msfrs_party_waiting_requests", nullptr, "Requests that wait for a slot there.",
        [](const PartySnapshot &p) { return std::to_string(p.waiting); }
    },
    {   "msfrs_party_demand", nullptr, "Sum of the weights of its active users.",
        [](const PartySnapshot &p) { return Fixed(p.demand, 3); }
    },
    {   "msfrs_party_share_ratio", "ratio", "Its share of the link by demand.",
        [](const PartySnapshot &p) { return Fixed(p.share, 6); }
    },
};

void
PrintParties(Writer &writer, const std::vector<PartySnapshot> &parties)
{
    if (parties.empty())
        return;
    for (const auto &family: PartyFamilies) {
        writer.family(family.name, "gauge", family.unit, family.help);
        for (const auto &p: parties)
            writer.sample("", "kind=\"" + p.kind + "\",slot=\"" + std::to_string(p.slot) + '"', family.value(p));
    }
}

} // namespace

void
PrintMetrics(std::ostream &os, const Snapshot &snapshot)
{
    Writer writer(os);
    writer.gauge("msfrs_scheduling", nullptr, "1 while requests are scheduled.", snapshot.scheduling ? "1" : "0");
    if (snapshot.scheduling) {
        const auto &config = snapshot.config;
        const auto &window = snapshot.window;
        const auto &classes = snapshot.classes;
        writer.gauge("msfrs_link_capacity_bytes_per_second", nullptr, "Rate of the link as configured, or found.",
                     Fixed(config.rate/8, 0));
        if (window.capacity)
            PrintFound(writer, *window.capacity);
        writer.gauge("msfrs_link_metered", nullptr, "1 while the interface's counter tells the use of the link.",
                     window.metered ? "1" : "0");
        writer.gauge("msfrs_link_utilisation_ratio", "ratio", "U: share of the link used in the last interval.",
                     Fixed(window.utilisation, 6));
        if (window.own >= 0)
            writer.gauge("msfrs_link_own_ratio", "ratio", "Share of the link that responses had in it.",
                         Fixed(window.own, 6));
        writer.counter("msfrs_link_wanted_seconds", "seconds", "Time in which somebody waited for a turn.",
                       Fixed(window.full, 3));
        writer.counter("msfrs_link_wanted_bytes", "bytes", "Bytes that the link carried in that time.",
                       Fixed(window.carriedWhileFull, 0));
        writer.gauge("msfrs_window_target_ratio", "ratio", "U+: utilisation to be reached.",
                     Fixed(config.window.target, 6));
        writer.gauge("msfrs_window_outstanding_responses", nullptr, "W: responses under way.",
                     Fixed(window.outstanding, 0));
        writer.gauge("msfrs_window_limit_responses", nullptr, "W+: responses that may be under way.",
                     Fixed(window.limit, 6));
        if (window.queueTarget >= 0)
            writer.gauge("msfrs_window_queue_target_seconds", "seconds",
                         "q*: bytes in flight may make a queue of so long at the provider.",
                         Fixed(window.queueTarget, 6));
        PrintHolding(writer, window);
        writer.gauge("msfrs_ledger_degraded", nullptr, "1 while a worker that should share the link schedules alone.",
                     snapshot.alone.empty() ? "0" : "1");
        PrintParties(writer, snapshot.parties);
        const auto &excess = snapshot.excess;
        writer.counter("msfrs_excess_lines", nullptr, "Lines that msfrs_excess took.", excess.lines);
        writer.counter("msfrs_excess_refused_lines", nullptr, "Lines that msfrs_excess refused.", excess.refused);
        writer.counter("msfrs_excess_no_class_bytes", "bytes", "Bytes of receivers that are of no class.",
                       excess.noClass);
        PrintClasses(writer, classes);
        PrintRefusals(writer, classes);
        PrintHeldTimes(writer, classes);
        PrintQuotas(writer, classes, snapshot.quotas);
    }
    os << "# EOF\n";
}

} // namespace msfrs::squid
