// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/gateway.h"

#include <algorithm>
#include <map>

namespace msfrs::page {

namespace {

enum class Join { Sum, Most };

void Take(double &into, const double value, const Join join)
{
    into = join == Join::Sum ? into + value : std::max(into, value);
}

/// Where a metric goes, how the values of several workers join, and the factor from the metric's unit.
template <class Member>
struct Metric {
    Member member;
    Join join;
    double scale = 1;
};
template <class Member>
using Metrics = std::map<std::string_view, Metric<Member>>;

const Metrics<double GatewayState::*> GatewayMetrics = {
    {"msfrs_link_capacity_bytes_per_second", {&GatewayState::capacity, Join::Most, 8}},
    {"msfrs_link_utilisation_ratio", {&GatewayState::utilisation, Join::Most}},
    {"msfrs_window_target_ratio", {&GatewayState::target, Join::Most}},
    {"msfrs_window_outstanding_responses", {&GatewayState::outstanding, Join::Sum}},
    {"msfrs_window_limit_responses", {&GatewayState::limit, Join::Sum}},
    {"msfrs_excess_lines_total", {&GatewayState::excessLines, Join::Sum}},
    {"msfrs_excess_refused_lines_total", {&GatewayState::excessRefused, Join::Sum}},
    {"msfrs_excess_no_class_bytes_total", {&GatewayState::noClassBytes, Join::Sum}},
};

const Metrics<std::optional<double> GatewayState::*> OptionalMetrics = {
    {"msfrs_link_own_ratio", {&GatewayState::own, Join::Sum}},
    {"msfrs_link_queue_seconds", {&GatewayState::queue, Join::Most}},
    {"msfrs_link_base_round_trip_seconds", {&GatewayState::base, Join::Most}},
};

const std::map<std::string_view, bool GatewayState::*> Switches = {
    {"msfrs_scheduling", &GatewayState::scheduling},
    {"msfrs_holding", &GatewayState::holding},
    {"msfrs_link_metered", &GatewayState::metered},
};

const Metrics<double ClassState::*> ClassMetrics = {
    {"msfrs_class_weight", {&ClassState::weight, Join::Most}},
    {"msfrs_class_users", {&ClassState::users, Join::Sum}},
    {"msfrs_class_queued_requests", {&ClassState::queued, Join::Sum}},
    {"msfrs_class_paused_responses", {&ClassState::paused, Join::Sum}},
    {"msfrs_class_in_flight_requests", {&ClassState::inFlight, Join::Sum}},
    {"msfrs_class_asked_requests", {&ClassState::asked, Join::Sum}},
    {"msfrs_class_silent_requests", {&ClassState::silent, Join::Sum}},
    {"msfrs_class_requests_total", {&ClassState::requests, Join::Sum}},
    {"msfrs_class_exchanges_total", {&ClassState::exchanges, Join::Sum}},
    {"msfrs_class_received_bytes_total", {&ClassState::bytes, Join::Sum}},
    {"msfrs_class_excess_bytes_total", {&ClassState::excess, Join::Sum}},
    {"msfrs_class_held_seconds_sum", {&ClassState::heldSum, Join::Sum}},
};

const std::map<std::string_view, double ClassState::*> Quantiles = {
    {"0.5", &ClassState::heldP50}, {"0.95", &ClassState::heldP95}, {"0.99", &ClassState::heldP99}};

/// The member that holds a metric of a class; null: the metric is not shown.
double *Place(ClassState &c, const Sample &s, Join &join)
{
    join = Join::Sum;
    if (s.name == "msfrs_class_refused_requests_total") {
        const auto reason = std::find(Refusals.begin(), Refusals.end(), s.label("reason"));
        return reason == Refusals.end() ? nullptr : &c.refused[static_cast<size_t>(reason - Refusals.begin())];
    }
    if (s.name == "msfrs_class_held_seconds") {
        join = Join::Most;
        const auto quantile = Quantiles.find(s.label("quantile"));
        return quantile == Quantiles.end() ? nullptr : &(c.*quantile->second);
    }
    const auto metric = ClassMetrics.find(s.name);
    if (metric == ClassMetrics.end())
        return nullptr;
    join = metric->second.join;
    return &(c.*metric->second.member);
}

void TakeGateway(GatewayState &state, const Sample &s)
{
    if (const auto metric = GatewayMetrics.find(s.name); metric != GatewayMetrics.end()) {
        const auto &[member, join, scale] = metric->second;
        const bool ofLink = member == &GatewayState::capacity && !s.label("link").empty(); // there are several
        Take(state.*member, s.value * scale, ofLink ? Join::Sum : join);
    } else if (const auto optional = OptionalMetrics.find(s.name); optional != OptionalMetrics.end()) {
        auto &member = state.*optional->second.member;
        double value = member.value_or(0);
        Take(value, s.value, optional->second.join);
        member = value;
    } else if (const auto flag = Switches.find(s.name); flag != Switches.end()) {
        state.workers += s.name == "msfrs_scheduling" ? 1 : 0;
        state.*flag->second |= s.value > 0;
    }
}

} // namespace

const ClassState *GatewayState::find(const std::string_view name) const
{
    const auto found =
        std::find_if(classes.begin(), classes.end(), [&](const ClassState &c) { return c.name == name; });
    return found == classes.end() ? nullptr : &*found;
}

double GatewayState::waiting() const
{
    double sum = 0;
    for (const auto &c : classes)
        sum += c.waiting();
    return sum;
}

double GatewayState::fairShare(const ClassState &of) const
{
    double weights = of.users > 0 ? 0 : of.weight; // with one more user, if it has none
    for (const auto &c : classes)
        weights += c.weight * c.users;
    return weights > 0 ? capacity * of.weight / weights : 0;
}

GatewayState StateOf(const std::vector<Sample> &samples)
{
    GatewayState state;
    std::map<std::string_view, size_t> index;
    for (const auto &s : samples) {
        const auto name = s.label("class");
        if (name.empty()) {
            TakeGateway(state, s);
            continue;
        }
        const auto [found, fresh] = index.emplace(name, state.classes.size());
        if (fresh) {
            if (state.classes.size() == MostClasses)
                throw PageError("more than " + std::to_string(MostClasses) + " classes");
            state.classes.emplace_back();
            state.classes.back().name = name;
        }
        Join join;
        if (auto *const place = Place(state.classes[found->second], s, join))
            Take(*place, s.value, join);
    }
    return state;
}

Flow FlowBetween(const GatewayState &before, const GatewayState &after, const double seconds)
{
    const auto perSecond = [&](const double first, const double last) { return Grown(first, last) / seconds; };
    const auto mean = [](const double amount, const double count) {
        return count > 0 ? std::optional(amount / count) : std::nullopt;
    };
    Flow flow;
    flow.noClass = 8 * perSecond(before.noClassBytes, after.noClassBytes);
    for (const auto &c : after.classes) {
        flow.classes.emplace_back();
        const auto *const was = before.find(c.name);
        if (!was)
            continue;
        auto &f = flow.classes.back();
        f.rate = 8 * perSecond(was->bytes, c.bytes);
        f.excess = 8 * perSecond(was->excess, c.excess);
        f.responses = perSecond(was->responses(), c.responses());
        f.refused = perSecond(was->refusals(), c.refusals());
        f.meanSize = mean(Grown(was->bytes, c.bytes), Grown(was->responses(), c.responses()));
        f.heldPerMegabyte = mean(Grown(was->heldSum, c.heldSum), Grown(was->bytes, c.bytes) / 1e6);
    }
    return flow;
}

} // namespace msfrs::page
