// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/figures.h"

#include "satellites/page/json.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace msfrs::page {

namespace {

void WriteLink(Json &json, const Situation &now)
{
    const auto &g = now.gateway;
    json.key("link").object();
    json.key("rate").number(g.capacity).key("utilisation").number(g.utilisation).key("target").number(g.target);
    json.key("own").number(g.own).key("queue").number(g.queue).key("base").number(g.base);
    json.key("metered").boolean(g.metered).key("full").boolean(Used(now) >= Full).end('}');
    json.key("window").object().key("outstanding").number(g.outstanding).key("limit").number(g.limit).end('}');
}

void WriteClass(Json &json, const Situation &now, const size_t index)
{
    const auto &g = now.gateway;
    const auto &c = g.classes[index];
    const auto &flow = now.flow.classes[index];
    json.object().key("name").string(c.name).key("weight").number(c.weight).key("users").number(c.users);
    json.key("queued").number(c.queued).key("paused").number(c.paused).key("in_flight").number(c.inFlight);
    json.key("asked").number(c.asked).key("silent").number(c.silent);
    json.key("rate").number(flow.rate).key("excess").number(flow.excess).key("responses").number(flow.responses);
    json.key("share").number(g.fairShare(c)); // of one user, by weight
    const auto service = now.report.service.find(c.name);
    json.key("service").number(service == now.report.service.end() ? std::nullopt : std::optional(service->second));
    json.key("size").number(flow.meanSize).key("held_per_mb").number(flow.heldPerMegabyte);
    json.key("held_p50").number(c.heldP50).key("held_p95").number(c.heldP95).key("held_p99").number(c.heldP99);
    json.key("refused").object();
    for (size_t n = 0; n < Refusals.size(); ++n)
        json.key(Refusals[n]).number(c.refused[n]);
    json.end('}').key("refusals").number(flow.refused).end('}');
}

/// Leaves the object open.
void WriteUser(Json &json, const Situation &now, const User &u)
{
    const auto *const cls = now.gateway.find(u.row.cls);
    json.object().key("class").string(u.row.cls).key("rate").number(u.rate);
    json.key("due").number(cls ? std::optional(now.gateway.fairShare(*cls)) : std::nullopt);
    json.key("bytes").number(u.row.bytes).key("queued").number(u.row.queued);
    json.key("in_flight").number(u.row.inFlight);
}

/// Leaves the object open.
void WriteHeld(Json &json, const HeldRow &h)
{
    json.object().key("user").string(h.user).key("class").string(h.cls).key("host").string(h.host);
    json.key("waited").number(h.waited).key("what").string(h.what);
}

void WriteQuota(Json &json, const QuotaRow &q, const NameBook &names)
{
    json.object().key("class").string(q.cls).key("bytes").number(q.bytes).key("period").string(q.period);
    json.key("over").string(q.over).key("ends_in").number(q.endsIn).key("users").number(q.users);
    json.key("users_over").number(q.usersOver).key("most").array();
    for (const auto &user : q.most)
        json.object().key("user").string(user.name).key("name").string(names.of(user.name)).key("bytes")
            .number(user.bytes).end('}');
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

Figures::Figures(const int64_t usersPace):
    // A slot without a sample would look like a user who received nothing. 4 bytes a slot make 1 MB at most.
    usersHistory_({std::max<int64_t>(15, usersPace), 3600 / static_cast<size_t>(std::max<int64_t>(15, usersPace)),
                   MostUsersShown})
{}

void Figures::takeMetrics(const std::string_view text, const double now, const int64_t wall)
{
    auto state = StateOf(ReadOpenMetrics(text));
    const bool flows = known_ && now > at_;
    situation_.flow = FlowBetween(flows ? situation_.gateway : GatewayState(), state, flows ? now - at_ : 1);
    if (!flows)
        situation_.flow.noClass = 0;
    situation_.gateway = std::move(state);
    noteRefusals(now);
    at_ = now;
    known_ = true;
    if (flows && situation_.gateway.scheduling)
        remember(wall);
    else
        history_.advance(wall);
}

void Figures::noteRefusals(const double now)
{
    constexpr double Noted = 60; // s; a sentence that comes and goes with each poll could not be read
    std::map<std::string, double> noted;
    situation_.refused.clear();
    for (size_t n = 0; n < situation_.flow.classes.size(); ++n) {
        const auto &name = situation_.gateway.classes[n].name;
        const auto before = refusedAt_.find(name);
        if (situation_.flow.classes[n].refused > 0)
            noted[name] = now;
        else if (before != refusedAt_.end() && now - before->second < Noted)
            noted.insert(*before);
        if (noted.count(name))
            situation_.refused.push_back(name);
    }
    refusedAt_ = std::move(noted);
}

void Figures::takeReport(const std::string_view text) { situation_.report = ReadManagerReport(text); }

void Figures::takeUsers(std::vector<UserRow> rows, const double now, const int64_t wall)
{
    situation_.users.update(std::move(rows), now);
    std::map<std::string, double> rates; // a user may have rows of several classes
    for (const auto *const user : situation_.users.top(MostUsersShown)) {
        if (user->rate.value_or(0) > 0) // others use no memory
            rates[user->row.user] += *user->rate;
    }
    usersHistory_.add(wall, {rates.begin(), rates.end()});
}

void Figures::takeUsers(const std::string_view text, const double now, const int64_t wall)
{
    takeUsers(ReadManagerReport(text).users, now, wall);
}

void Figures::remember(const int64_t wall)
{
    const auto &g = situation_.gateway;
    const auto &flow = situation_.flow;
    History::Values values = {{"utilisation", g.utilisation}, // More than all of it was read later than it came.
                              {"own", std::min(g.own.value_or(NAN), g.utilisation)},
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
    const auto &[g, flow, report, users, faults, refused] = situation_;
    const auto overall = verdict(trouble);
    Json json;
    json.object().key("time").whole(wall).key("pace").whole(pace).key("trouble").string(trouble);
    json.key("age").number(age).key("verdict").string(overall.text);
    json.key("light").string(CodeOf(overall.light));
    json.key("scheduling").boolean(g.scheduling).key("workers").number(g.workers).key("because");
    WriteTexts(json, report.because);
    WriteLink(json, situation_);
    json.key("classes").array();
    for (size_t n = 0; n < g.classes.size(); ++n)
        WriteClass(json, situation_, n);
    json.end(']').key("user_count").whole(static_cast<int64_t>(users.size())).key("held").array();
    for (const auto &row : report.held) {
        WriteHeld(json, row);
        json.key("name").string(names_.of(row.user));
        json.key("reason").string(CodeOf(WhySlow(situation_, row.user, Who::User).reason)).end('}');
    }
    json.end(']').key("quotas").array();
    for (const auto &quota : report.quotas)
        WriteQuota(json, quota, names_);
    json.end(']').key("beside").object().key("no_class").number(flow.noClass);
    json.key("share").number(PastSquid(situation_));
    json.key("lines").number(g.excessLines).key("refused_lines").number(g.excessRefused).end('}');
    return json.key("newest").raw(history_.newestJson()).end('}').take();
}

std::string Figures::overallJson(const std::string &trouble) const
{
    const auto overall = verdict(trouble);
    Json json;
    json.object().key("light").string(CodeOf(overall.light)).key("text").string(overall.text);
    return json.end('}').take();
}

Judgement Figures::verdict(const std::string &trouble) const
{
    const auto &shape = history_.shape();
    const auto perMinute = static_cast<size_t>(60 / shape.step);
    const auto minutes = MinutesFull(history_.column("utilisation"), perMinute);
    if (minutes == 0)
        return Overall(situation_, "", trouble);
    if (minutes == shape.slots / perMinute)
        return Overall(situation_, "for more than an hour", trouble);
    const std::time_t since = (history_.newest() + 1) * shape.step - static_cast<int64_t>(minutes) * 60;
    std::tm local{};
    char text[sizeof("since 14:02")];
    std::strftime(text, sizeof(text), "since %H:%M", localtime_r(&since, &local));
    return Overall(situation_, text, trouble);
}

std::string Figures::usersJson() const
{
    const auto &users = situation_.users;
    Json json;
    json.object().key("count").whole(static_cast<int64_t>(users.size())).key("over").number(users.over());
    json.key("users").array();
    for (const auto *const user : users.top(MostUsersShown)) {
        WriteUser(json, situation_, *user);
        json.key("user").string(user->row.user).key("name").string(names_.of(user->row.user)).end('}');
    }
    return json.end(']').end('}').take();
}

std::optional<std::string> Figures::userOf(const std::string &asked) const
{
    auto name = situation_.users.nameOf(asked);
    return situation_.users.find(name).empty() ? std::nullopt : std::make_optional(std::move(name));
}

std::string Figures::pastJson(const std::string &asked) const
{
    return usersHistory_.json(situation_.users.nameOf(asked));
}

std::string Figures::ownJson(const std::string &address, const std::string &trouble,
                             const std::optional<double> age) const
{
    const auto &gateway = situation_.gateway;
    const auto &users = situation_.users;
    auto user = users.nameOf(address);
    if (const auto hardware = names_.hardwareOf(address); users.find(user).empty() && !users.find(hardware).empty())
        user = hardware;
    const auto answer = WhySlow(situation_, user, Who::User);
    const auto overall = verdict(trouble);
    Json json;
    json.object().key("address").string(address).key("name").string(names_.of(user));
    const auto &held = answer.held;
    const auto waits = [](const HeldRow *const row) { return Waits(*row); };
    const auto asked = answer.waiting - static_cast<double>(held.size()) +
        static_cast<double>(std::count_if(held.begin(), held.end(), waits));
    const auto first = std::find_if(held.begin(), held.end(), waits);
    const bool turns = asked <= 0 && (answer.reason == Reason::Waits || answer.reason == Reason::HasShare);
    json.key("trouble").boolean(!trouble.empty()).key("age").number(age);
    json.key("reason").string(CodeOf(turns ? Reason::LinkFull : answer.reason)).key("waiting").number(asked);
    json.key("longest").number(first == held.end() ? std::nullopt : std::optional((*first)->waited));
    json.key("gateway").string(overall.state).key("light").string(CodeOf(overall.light));
    json.key("link").object().key("rate").number(gateway.capacity).key("used").number(Used(situation_));
    json.key("queue").number(gateway.queue.value_or(0) >= LongQueue ? gateway.queue : std::nullopt).end('}');
    json.key("classes").array();
    for (const auto *const row : answer.users) {
        WriteUser(json, situation_, *row);
        json.end('}');
    }
    json.end(']').key("quotas").array();
    for (const auto &[quota, had, over] : answer.quotas) {
        json.object().key("class").string(quota->cls).key("bytes").number(quota->bytes);
        json.key("period").string(quota->period).key("had").number(had).key("exceeded").boolean(over);
        json.key("then").string(quota->over).key("ends_in").number(quota->endsIn).end('}');
    }
    return json.end(']').end('}').take();
}

std::string Figures::userJson(const std::string &asked, const std::string &trouble,
                              const std::optional<double> age) const
{
    const auto name = situation_.users.nameOf(asked);
    const auto answer = WhySlow(situation_, name);
    const auto &listed = situation_.report.held;
    Json json;
    json.object().key("user").string(name).key("name").string(names_.of(name)).key("trouble").string(trouble);
    json.key("age").number(age).key("why");
    WriteTexts(json, trouble.empty() ? answer.why : std::vector<std::string>{trouble});
    json.key("waiting").number(answer.waiting).key("boost").boolean(boosts_);
    json.key("overall").string(verdict(trouble).text);
    json.key("link").number(situation_.gateway.capacity).key("classes").array();
    for (const auto *const user : answer.users) {
        WriteUser(json, situation_, *user);
        json.key("user").string(user->row.user).end('}');
    }
    json.end(']').key("held").array();
    for (const auto *const row : answer.held) {
        WriteHeld(json, *row);
        json.key("id").string(row->id).key("place").whole(row - listed.data() + 1);
        json.key("of").whole(static_cast<int64_t>(listed.size())).end('}');
    }
    return json.end(']').end('}').take();
}

} // namespace msfrs::page
