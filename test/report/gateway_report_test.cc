// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/example.h"

#include "report/gateway_report.h"
#include "support/plugins.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace msfrs::test {
namespace {

using report::GatewayReport;
using report::Snapshot;

std::string Yaml(const GatewayReport &r)
{
    std::ostringstream out;
    r.printYaml(out);
    return out.str();
}

std::string OpenMetrics(const GatewayReport &r, const std::vector<report::Fault> &faults = {})
{
    std::ostringstream out;
    r.printMetrics(out, faults);
    return out.str();
}

std::string Content(const std::string &name)
{
    std::ifstream in(TreeFile("test/report/" + name));
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The lines of a text that begin with one of the words, indents and list marks aside.
std::string Lines(const std::string &text, const std::vector<std::string> &words)
{
    std::istringstream in(text);
    std::string found;
    for (std::string line; std::getline(in, line);) {
        const auto begin = std::min(line.find_first_not_of(" -"), line.size());
        for (const auto &word : words) {
            if (line.compare(begin, word.size(), word) == 0)
                found += line.substr(begin) + "\n";
        }
    }
    return found;
}

GatewayReport Joined(const Snapshot &one, const Snapshot &other)
{
    GatewayReport all;
    for (const auto *const s : {&one, &other})
        all.add(GatewayReport::Read(GatewayReport(*s).written()));
    return all;
}

const std::vector<report::Fault> Faults = {{"off", "Off since 14:02 by msfrsctl off."}, {"log", "\"/var\" is full."}};

TEST(GatewayReport, MetricsHaveTheFaultsOfTheGateway)
{
    const auto text = OpenMetrics(GatewayReport(), Faults); // also while nothing is scheduled
    EXPECT_EQ(Lines(text, {"msfrs_fault{"}), "msfrs_fault{code=\"off\",text=\"Off since 14:02 by msfrsctl off.\"} 1\n"
                                            "msfrs_fault{code=\"log\",text=\"\\\"/var\\\" is full.\"} 1\n");
    EXPECT_EQ(OpenMetrics(GatewayReport()).find("msfrs_fault"), std::string::npos);
}

TEST(GatewayReport, EveryFigure)
{
    EXPECT_EQ(Yaml(GatewayReport(Example())), Content("gateway.yaml"));
    EXPECT_EQ(OpenMetrics(GatewayReport(Example()), Faults), Content("gateway.metrics"));
}

TEST(GatewayReport, NothingScheduled)
{
    EXPECT_EQ(Yaml(GatewayReport()), "# Request scheduler (MSF-RS). Rates in bit/s, times in seconds, sizes in bytes; "
                                     "counts since it started.\nscheduling: false\n"
                                     "holding: no, because msfrs is off\n");
    Snapshot failed;
    failed.failed = true;
    EXPECT_EQ(Lines(Yaml(GatewayReport(failed)), {"holding"}),
              "holding: no, because the scheduler failed and will start again; see cache.log\n");
    EXPECT_EQ(OpenMetrics(GatewayReport(failed)),
              "# TYPE msfrs_scheduling gauge\n# HELP msfrs_scheduling 1 while requests are scheduled.\n"
              "msfrs_scheduling 0\n# EOF\n");
    EXPECT_EQ(Yaml(Joined(failed, Example())), Yaml(GatewayReport(Example())));
    EXPECT_EQ(Yaml(Joined(Example(), failed)), Yaml(GatewayReport(Example())));
    EXPECT_EQ(Yaml(Joined(Snapshot(), failed)), Yaml(GatewayReport(failed)));
}

TEST(GatewayReport, WhatIsUnknownIsNullAndInNoMetric)
{
    auto s = Example();
    s.window.own = s.window.queue = s.window.queueTarget = -1;
    s.window.base = 0;
    s.window.capacity.reset();
    s.window.history.clear();
    s.quotas.clear();
    s.parties.clear();
    s.held.clear();
    const auto yaml = Yaml(GatewayReport(s));
    EXPECT_EQ(Lines(yaml, {"own:", "queue:", "history:", "held:", "parties:", "auto:", "quota:", "quota_users:"}),
              "queue: null # at the provider, from RTT samples; null: too few recent ones\n"
              "own: null # share of responses in it\nhistory: []\nquota: null\nquota: null\nheld: []\n");
    EXPECT_EQ(Lines(yaml, {"base:"}), "base: null # mean base RTT to servers\n");
    const auto metrics = OpenMetrics(GatewayReport(s));
    for (const auto *const name :
         {"own", "link_queue", "base_round_trip", "queue_target", "quota", "party", "last_change"})
        EXPECT_EQ(metrics.find(name), metrics.npos) << name;
}

TEST(GatewayReport, AnotherWorkerReadsWhatOneHasWritten)
{
    const GatewayReport report(Example());
    const auto bytes = report.written();
    EXPECT_EQ(Yaml(GatewayReport::Read(bytes)), Yaml(report));
    EXPECT_EQ(OpenMetrics(GatewayReport::Read(bytes)), OpenMetrics(report));
    const auto nothing = Yaml(GatewayReport());
    EXPECT_EQ(Yaml(GatewayReport::Read(bytes + "x")), nothing);
    for (size_t n = 0; n < bytes.size(); ++n)
        ASSERT_EQ(Yaml(GatewayReport::Read(bytes.substr(0, n))), nothing) << n;
}

TEST(GatewayReport, CountsOfWorkersAddUp)
{
    auto other = Example();
    other.classes[0].heldP95 = 3;
    other.classes[0].heldLately = 0;
    other.classes.push_back(other.classes[1]);
    other.classes[2].name = "third";
    other.users[1].bytes = 1'000'000;
    other.held[0].waited = 1;
    const auto yaml = Yaml(Joined(Example(), other));
    EXPECT_EQ(Lines(yaml, {"sending:", "held_p95:", "held_per_mb:", "refused:", "lines:", "name: \"third\""}),
              "lines: 24\nsending: 4\nheld_p95: 3.0000\nheld_per_mb: 7.5000\n"
              "refused: {per_user: 2, total: 4, admission: 6, max_wait: 8}\n"
              "sending: 0\nheld_p95: 0.0000\nheld_per_mb: null\n"
              "refused: {per_user: 0, total: 0, admission: 0, max_wait: 0}\n"
              "name: \"third\"\nsending: 0\nheld_p95: 0.0000\nheld_per_mb: null\n"
              "refused: {per_user: 0, total: 0, admission: 0, max_wait: 0}\n");
    EXPECT_EQ(Lines(yaml, {"{user: \"2001", "{user: \"10.0.0.1\", class: \"gold\", bytes"}),
              "{user: \"2001:db8::/64\", class: \"bulk \\\"b\\\"\", bytes: 1000099, queued: 0, in_flight: 2}\n"
              "{user: \"10.0.0.1\", class: \"gold\", bytes: 246912, queued: 2, in_flight: 4}\n");
    const auto held = yaml.substr(yaml.find("\nheld:"));
    EXPECT_LT(held.find("waited: 2.0"), held.find("waited: 1.0"));
    EXPECT_LT(held.find("waited: 1.0"), held.find("waited: 0.2")) << "longest wait first";
}

TEST(GatewayReport, TheWindowIsTheLeaders)
{
    auto follower = Example();
    follower.window.follows = true;
    follower.window.holding = false;
    follower.window.because = "nobody waits";
    follower.window.outstanding = 99;
    follower.window.history.clear();
    follower.parties.clear();
    follower.now -= 1;
    for (const auto &report : {Joined(follower, Example()), Joined(Example(), follower)}) {
        EXPECT_EQ(Lines(Yaml(report), {"holding:", "outstanding:"}), Lines(Yaml(GatewayReport(Example())),
                                                                           {"holding:", "outstanding:"}));
        EXPECT_EQ(Lines(Yaml(report), {"{ago:", "{slot:"}), Lines(Yaml(GatewayReport(Example())), {"{ago:", "{slot:"}));
    }
}

TEST(GatewayReport, WorkersApartHaveAWindowEach)
{
    auto one = Example();
    one.parties.clear();
    auto other = one;
    other.config.rate = 60e6;
    other.window.utilisation = 0.5;
    one.alone.clear();
    const auto report = Joined(one, other);
    EXPECT_EQ(Lines(Yaml(report), {"rate:", "outstanding:", "limit:", "utilisation:", "alone:"}),
              "rate: 80000000\noutstanding: 6 # W, responses in service\nlimit: 7.00 # W+, its limit\n"
              "utilisation: 0.6219 # U of the last interval, share of the rate\nalone: \"since \\\"x\\\"\"\n");
    EXPECT_EQ(Lines(OpenMetrics(report), {"msfrs_ledger_degraded ", "msfrs_link_wanted_bytes_total"}),
              "msfrs_link_wanted_bytes_total 600000000\nmsfrs_ledger_degraded 1\n");
}

TEST(GatewayReport, LinksOfAProcess)
{
    auto one = Example(), other = Example();
    one.link = "eth1";
    other.link = other.config.interface = "eth2";
    other.config.rate = 4e6;
    other.quotas.clear();
    GatewayReport both((one));
    both.addLink(GatewayReport(other));
    EXPECT_EQ(Yaml(both), Yaml(GatewayReport(one)) + "---\n" + Yaml(GatewayReport(other)));
    EXPECT_EQ(Lines(Yaml(both), {"holding", "interface", "rate: "}),
              "holding: yes, because at eth1 2 wait and the window is full\nrate: 20000000\ninterface: \"eth1\"\n"
              "holding: yes, because at eth2 2 wait and the window is full\nrate: 4000000\ninterface: \"eth2\"\n");
    EXPECT_EQ(Lines(OpenMetrics(both), {"msfrs_scheduling", "msfrs_link_capacity", "msfrs_class_weight{class=\"gold\"",
                                        "msfrs_class_quota_bytes{class=\"gold\"", "msfrs_excess_lines"}),
              "msfrs_scheduling 1\n"
              "msfrs_link_capacity_bytes_per_second{link=\"eth1\"} 2500000\n"
              "msfrs_link_capacity_bytes_per_second{link=\"eth2\"} 500000\n"
              "msfrs_excess_lines_total 12\n"
              "msfrs_class_weight{class=\"gold\",link=\"eth1\"} 4.000\n"
              "msfrs_class_weight{class=\"gold\",link=\"eth2\"} 4.000\n"
              "msfrs_class_quota_bytes{class=\"gold\",link=\"eth1\"} 5000000000\n");
}

TEST(GatewayReport, AllUsers)
{
    std::ostringstream out;
    report::PrintUsers(out, {{"a", "gold", 3, 2, 1}});
    EXPECT_EQ(out.str(), "# by bytes since the user was first seen\nusers:\n"
                         "  - {user: \"a\", class: \"gold\", bytes: 3, queued: 2, in_flight: 1}\n");
}

TEST(Quoted, EscapesWhatYamlDoesNotAllow)
{
    EXPECT_EQ(report::Quoted("a\"\\\n\x7F\xC3\xBC\xE2\x80\xAE\xFF\xC0\x80\xF0\x9F\x98\x80"),
              "\"a\\\"\\\\\\u000A\\u007F\xC3\xBC\\u202E\\uFFFD\\uFFFD\\uFFFD\xF0\x9F\x98\x80\"");
}

TEST(OpenMetrics, Families)
{
    std::ostringstream out;
    Metrics all(out, "p_");
    all.counter("n", "How many.", 1e15);
    auto family = all.family("t_seconds", MetricKind::Summary, "Time.", "seconds");
    family.sample({Label("class", "a\"\\\n")}, 0.5);
    family.sample({}, true, "_count");
    all.end();
    EXPECT_EQ(out.str(), "# TYPE p_n counter\n# HELP p_n How many.\np_n_total 1e+15\n"
                         "# TYPE p_t_seconds summary\n# UNIT p_t_seconds seconds\n# HELP p_t_seconds Time.\n"
                         "p_t_seconds{class=\"a\\\"\\\\\\n\"} 0.5\np_t_seconds_count 1\n# EOF\n");
}

} // namespace
} // namespace msfrs::test
