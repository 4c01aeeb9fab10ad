// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/gateway_report.h"

#include <algorithm>
#include <iterator>

namespace msfrs::report {

namespace {

constexpr Part All[] = {State, Link, Found, Window, Alone, Parties, Excess, Limits, Classes, Held, Users};

/// Sorts by a column, largest first.
void Sort(const Part part, Rows &rows, const char *const key)
{
    const auto n = TableOf(part).at(key);
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const Row &a, const Row &b) { return a[n].number() > b[n].number(); });
}

} // namespace

GatewayReport::GatewayReport(const Snapshot &s):
    scheduling_(s.scheduling), failed_(s.failed), follows_(s.window.follows), now_(s.now)
{
    if (!scheduling_)
        return;
    for (const auto part : All)
        rows(part) = RowsOf(TableOf(part), s);
}

void GatewayReport::add(const GatewayReport &other)
{
    if (!other.scheduling_) {
        failed_ = failed_ || other.failed_;
        return;
    }
    if (!scheduling_) {
        const auto sawFailure = failed_;
        *this = other;
        failed_ = sawFailure;
        return;
    }
    const auto join = [&](const Part part) { JoinRows(TableOf(part), rows(part), other.rows(part)); };
    if (!holds() && (other.holds() || follows_))
        rows(State) = other.rows(State);
    if (rows(Parties).empty() && other.rows(Parties).empty()) {
        join(Link);
        join(Window);
    } else if (follows_) {
        for (const auto part : {Link, Found, Window})
            rows(part) = other.rows(part);
        follows_ = other.follows_;
    }
    if (other.now_ >= now_ && !other.rows(Parties).empty())
        rows(Parties) = other.rows(Parties);
    now_ = std::max(now_, other.now_);
    for (const auto part : {Alone, Excess, Classes, Users})
        join(part);
    Sort(Users, rows(Users), "bytes");
    auto &held = rows(Held);
    held.insert(held.end(), other.rows(Held).begin(), other.rows(Held).end());
    Sort(Held, held, "waited");
    held.resize(std::min(held.size(), Snapshot::MostHeld));
}

void GatewayReport::addLink(const GatewayReport &other) { others_.push_back(other); }

std::string GatewayReport::written() const
{
    std::string bytes;
    for (const auto flag : {scheduling_, failed_, follows_})
        Value(flag).write(bytes);
    Value(now_).write(bytes);
    for (const auto part : All)
        WriteRows(bytes, rows(part));
    return bytes;
}

GatewayReport GatewayReport::Read(const std::string &bytes)
{
    GatewayReport report;
    std::string_view rest = bytes;
    Value value;
    bool good = true;
    for (auto *const flag : {&report.scheduling_, &report.failed_, &report.follows_}) {
        good = good && value.read(rest);
        *flag = value.whole != 0;
    }
    good = good && value.read(rest);
    report.now_ = value.whole;
    for (const auto part : All)
        good = good && ReadRows(TableOf(part), rest, report.rows(part));
    return good && rest.empty() ? report : GatewayReport();
}

void GatewayReport::printYaml(std::ostream &out) const
{
    out << "# Request scheduler (MSF-RS). Rates in bit/s, times in seconds, sizes in bytes; counts since it started.\n"
        << "scheduling: " << (scheduling_ ? "true" : "false") << '\n';
    if (!scheduling_) {
        out << "holding: no, because "
            << (failed_ ? "the scheduler failed and will start again; see cache.log" : "msfrs is off") << '\n';
    }
    for (size_t n = 0; scheduling_ && n < std::size(All); ++n)
        PrintYaml(out, TableOf(All[n]), rows(All[n]));
    for (const auto &other : others_)
        other.printYaml(out << "---\n");
}

void GatewayReport::printMetrics(std::ostream &out, const std::vector<Fault> &faults) const
{
    Metrics all(out, "");
    auto links = *this;
    for (const auto &other : others_) {
        links.scheduling_ = links.scheduling_ || other.scheduling_;
        for (const auto part : {State, Link, Found, Window, Classes})
            JoinRows(TableOf(part), links.rows(part), other.rows(part));
    }
    all.gauge("msfrs_scheduling", "1 while requests are scheduled.", links.scheduling_);
    if (!faults.empty()) {
        auto family = all.family("msfrs_fault", MetricKind::Gauge,
                                 "1 for what is wrong with the gateway as a whole, in the words of msfrsctl status.");
        for (const auto &[code, text] : faults)
            family.sample({Label("code", code), Label("text", text)}, 1);
    }
    for (const auto part : All)
        PrintFamilies(all, TableOf(part), links.rows(part));
    all.end();
}

void PrintUsers(std::ostream &out, std::vector<UserReport> users)
{
    Snapshot snapshot;
    snapshot.users = std::move(users);
    auto table = TableOf(Users);
    table.heading = "# by bytes since the user was first seen\nusers:";
    table.shown = SIZE_MAX;
    PrintYaml(out, table, RowsOf(table, snapshot));
}

} // namespace msfrs::report
