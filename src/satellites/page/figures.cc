// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/figures.h"

#include "satellites/page/json.h"

#include <cmath>

namespace msfrs::page {

namespace {

void WriteLink(Json &json, const GatewayState &g)
{
    json.key("link").object();
    json.key("rate").number(g.capacity).key("utilisation").number(g.utilisation).key("target").number(g.target);
    json.key("own").number(g.own).key("queue").number(g.queue).key("base").number(g.base);
    json.key("metered").boolean(g.metered).end('}');
    json.key("window").object().key("outstanding").number(g.outstanding).key("limit").number(g.limit).end('}');
}

void WriteClass(Json &json, const GatewayState &g, const ClassState &c, const ClassFlow &flow)
{
    json.object().key("name").string(c.name).key("weight").number(c.weight).key("users").number(c.users);
    json.key("queued").number(c.queued).key("paused").number(c.paused).key("in_flight").number(c.inFlight);
    json.key("asked").number(c.asked).key("silent").number(c.silent);
    json.key("rate").number(flow.rate).key("excess").number(flow.excess).key("responses").number(flow.responses);
    json.key("share").number(g.fairShare(c)); // of one user, by weight
    json.key("size").number(flow.meanSize).key("held_per_mb").number(flow.heldPerMegabyte);
    json.key("held_p50").number(c.heldP50).key("held_p95").number(c.heldP95).key("held_p99").number(c.heldP99);
    json.key("refused").object();
    for (size_t n = 0; n < Refusals.size(); ++n)
        json.key(Refusals[n]).number(c.refused[n]);
    json.end('}').key("refusals").number(flow.refused).end('}');
}

void WriteUser(Json &json, const User &u)
{
    json.object().key("user").string(u.row.user).key("class").string(u.row.cls).key("rate").number(u.rate);
    json.key("bytes").number(u.row.bytes).key("queued").number(u.row.queued);
    json.key("in_flight").number(u.row.inFlight).end('}');
}

/// Leaves the object open.
void WriteHeld(Json &json, const HeldRow &h)
{
    json.object().key("user").string(h.user).key("class").string(h.cls).key("host").string(h.host);
    json.key("waited").number(h.waited).key("what").string(h.what);
}

void WriteQuota(Json &json, const QuotaRow &q)
{
    json.object().key("class").string(q.cls).key("bytes").number(q.bytes).key("period").string(q.period);
    json.key("over").string(q.over).key("ends_in").number(q.endsIn).key("users").number(q.users);
    json.key("users_over").number(q.usersOver).key("most").array();
    for (const auto &user : q.most)
        json.object().key("user").string(user.name).key("bytes").number(user.bytes).end('}');
    json.end(']').end('}');
}

void WriteTexts(Json &json, const std::vector<std::string> &texts)
{
    json.array();
    for (const auto &text : texts)
        json.string(text);
    json.end(']');
}

} // namespace

void Figures::takeMetrics(const std::string_view text, const double now, const int64_t wall)
{
    auto state = StateOf(ReadOpenMetrics(text));
    const bool flows = known_ && now > at_;
    situation_.flow = FlowBetween(flows ? situation_.gateway : GatewayState(), state, flows ? now - at_ : 1);
    if (!flows)
        situation_.flow.noClass = 0;
    situation_.gateway = std::move(state);
    at_ = now;
    known_ = true;
    if (flows && situation_.gateway.scheduling)
        remember(wall);
    else
        history_.advance(wall);
}

void Figures::takeReport(const std::string_view text) { situation_.report = ReadManagerReport(text); }

void Figures::takeUsers(const std::string_view text, const double now)
{
    situation_.users.update(ReadManagerReport(text).users, now);
}

void Figures::remember(const int64_t wall)
{
    const auto &g = situation_.gateway;
    const auto &flow = situation_.flow;
    History::Values values = {{"utilisation", g.utilisation}, {"own", g.own.value_or(NAN)},
                              {"outstanding", g.outstanding}, {"limit", g.limit},
                              {"queue", g.queue.value_or(NAN)}};
    double excess = flow.noClass, refused = 0;
    for (size_t n = 0; n < g.classes.size(); ++n) {
        const auto &name = g.classes[n].name;
        const auto &f = flow.classes[n];
        values.emplace_back("rate/" + name, f.rate);
        values.emplace_back("waiting/" + name, g.classes[n].waiting());
        values.emplace_back("held/" + name, g.classes[n].heldP95);
        excess += f.excess;
        refused += f.refused;
    }
    values.emplace_back("excess", excess);
    values.emplace_back("refused", refused);
    history_.add(wall, values);
}

std::string Figures::dataJson(const int64_t wall, const int64_t pace, const std::string &trouble,
                              const std::optional<double> age) const
{
    const auto &[g, flow, report, users] = situation_;
    Json json;
    json.object().key("time").whole(wall).key("pace").whole(pace).key("trouble").string(trouble);
    json.key("age").number(age);
    json.key("scheduling").boolean(g.scheduling).key("workers").number(g.workers).key("because");
    WriteTexts(json, report.because);
    WriteLink(json, g);
    json.key("classes").array();
    for (size_t n = 0; n < g.classes.size(); ++n)
        WriteClass(json, g, g.classes[n], flow.classes[n]);
    json.end(']').key("user_count").whole(static_cast<int64_t>(users.size())).key("users").array();
    for (const auto *const user : users.top(MostUsersShown))
        WriteUser(json, *user);
    json.end(']').key("held").array();
    for (const auto &row : report.held) {
        WriteHeld(json, row);
        json.end('}');
    }
    json.end(']').key("quotas").array();
    for (const auto &quota : report.quotas)
        WriteQuota(json, quota);
    json.end(']').key("beside").object().key("no_class").number(flow.noClass);
    json.key("share").number(PastSquid(situation_));
    json.key("lines").number(g.excessLines).key("refused_lines").number(g.excessRefused).end('}');
    return json.key("newest").raw(history_.newestJson()).end('}').take();
}

std::string Figures::userJson(const std::string &asked, const std::string &trouble,
                              const std::optional<double> age) const
{
    const auto name = situation_.users.nameOf(asked);
    const auto answer = WhySlow(situation_, name);
    const auto &listed = situation_.report.held;
    Json json;
    json.object().key("user").string(name).key("trouble").string(trouble).key("age").number(age).key("why");
    WriteTexts(json, trouble.empty() ? answer.why : std::vector<std::string>{trouble});
    json.key("waiting").number(answer.waiting).key("classes").array();
    for (const auto *const user : answer.users)
        WriteUser(json, *user);
    json.end(']').key("held").array();
    for (const auto *const row : answer.held) {
        WriteHeld(json, *row);
        json.key("id").string(row->id).key("place").whole(row - listed.data() + 1);
        json.key("of").whole(static_cast<int64_t>(listed.size())).end('}');
    }
    return json.end(']').end('}').take();
}

} // namespace msfrs::page
