// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/manager_report.h"

#include "support/plugins.h"

#include <fstream>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

/// As src/report/ writes it, and older versions of it.
constexpr const char *Report =
    R"(# Request scheduler (MSF-RS). Rates in bit/s, times in seconds, sizes in bytes; counts since it started.
scheduling: true
holding: yes, because 2 wait and the window is full (W is 1 of W+ 1.00)
window:
  outstanding: 1 # W, responses under way
  interval: 1.500
  history:
    - {ago: 2.0, outstanding: 1, limit: 2.00, utilisation: 0.9000, full: true}
    - {ago: 1.0, outstanding: 1, limit: 2.00, utilisation: 0.8000, full: true, own: null}
    - {ago: 0.0, outstanding: 1, limit: 2.00, utilisation: 0.7000, full: true, own: 0.6000}
parties:
  - {slot: 0, kind: worker, live: true, leads: true, share: 0.7000, configured: true}
  - {slot: 12, kind: edge, live: false, leads: false, share: 0.9000, configured: true}
  - {slot: 13, kind: edge, live: true, leads: false, share: 0.3000, configured: false}
classes:
  - name: "gold"
    users: 1
    quota: {bytes: 5000, period: day, over: "bulk \"b\"", ends_in: 7300, users: 3, users_over: 1, passed: 2}
    quota_users:
      - {user: "10.0.0.1", bytes: 6000}
      - {user: "x\\ ", bytes: 70}
  - name: "bulk \"b\""
    quota: null
# who waits for a turn now
held:
  - {user: "10.0.0.1", class: "gold", host: "a.example", waited: 0.250, what: request, id: 17}
  - {user: "x\\ \u202E<b>\uFFFD", class: "bronze", host: "", waited: 2.000, what: response}
# by bytes
top_users:
  - {user: "10.0.0.1", class: "gold", bytes: 123456, queued: 1, in_flight: 2}
)";

TEST(ManagerReport, WhatReportWrites)
{
    const auto report = ReadManagerReport(Report);
    EXPECT_EQ(report.because, std::vector<std::string>{"2 wait and the window is full (W is 1 of W+ 1.00)"});
    ASSERT_EQ(report.held.size(), 2u);
    EXPECT_EQ(report.held[0].user, "x\\ \xE2\x80\xAE<b>\xEF\xBF\xBD") << "the longest first";
    EXPECT_EQ(report.held[0].what, "response");
    EXPECT_EQ(report.held[1].host, "a.example");
    EXPECT_EQ(report.held[1].waited, 0.25);
    EXPECT_EQ(report.held[1].id, "17");
    EXPECT_EQ(report.held[0].id, "");
    EXPECT_EQ(report.interval, 1.5);
    ASSERT_EQ(report.intervals.size(), 3u);
    EXPECT_FALSE(report.intervals[0].own) << "Squid is older";
    EXPECT_FALSE(report.intervals[1].own);
    EXPECT_EQ(report.intervals[2].own.value_or(0), 0.6);
    EXPECT_EQ(report.intervals[2].utilisation, 0.7);
    EXPECT_EQ(report.edgeShare, 0.3);
    ASSERT_EQ(report.quotas.size(), 1u);
    const auto &quota = report.quotas[0];
    EXPECT_EQ(quota.cls + ", " + quota.over + ", " + quota.period, "gold, bulk \"b\", day");
    EXPECT_EQ((std::vector{quota.bytes, quota.endsIn, quota.users, quota.usersOver}),
              (std::vector<double>{5000, 7300, 3, 1}));
    ASSERT_EQ(quota.most.size(), 2u);
    EXPECT_EQ(quota.most[0].name, "10.0.0.1");
    EXPECT_EQ(quota.most[1].bytes, 70);
    ASSERT_EQ(report.users.size(), 1u);
    EXPECT_EQ(report.users[0].bytes, 123456);
    EXPECT_EQ(report.users[0].inFlight, 2);
}

TEST(ManagerReport, AGatewayWithEveryFigure)
{
    std::ifstream in(TreeFile("test/report/gateway.yaml"));
    const auto report = ReadManagerReport(std::string(std::istreambuf_iterator<char>(in), {}));
    EXPECT_EQ(report.because, std::vector<std::string>{"2 wait and the window is full"});
    EXPECT_EQ(report.held.size(), 2u);
    EXPECT_EQ(report.users.size(), 2u);
    EXPECT_EQ(report.intervals.size(), 2u);
    EXPECT_EQ(report.interval, 1);
    ASSERT_EQ(report.quotas.size(), 1u);
    EXPECT_EQ(report.quotas[0].most.size(), 2u);
}

TEST(ManagerReport, WorkersAreJoined)
{
    const auto report = ReadManagerReport("---\nkid: 1\nholding: no, because weights not yet, because x\nusers:\n"
                                          "  - {user: \"a\", class: \"c\", bytes: 1, queued: 1, in_flight: 0}\n"
                                          "---\nkid: 2\nholding: yes\nusers:\n"
                                          "  - {user: \"a\", class: \"c\", bytes: 2, queued: 0, in_flight: 3}\n"
                                          "  - {user: \"a\", class: \"d\", bytes: 5, queued: 0, in_flight: 0}\n");
    EXPECT_EQ(report.because, (std::vector<std::string>{"weights not yet, because x", "yes"}));
    ASSERT_EQ(report.users.size(), 2u);
    EXPECT_EQ(report.users[0].bytes, 3);
    EXPECT_EQ(report.users[0].queued, 1);
    EXPECT_EQ(report.users[0].inFlight, 3);
    EXPECT_EQ(report.users[1].cls, "d");
}

TEST(ManagerReport, NothingIsScheduled)
{
    const auto report = ReadManagerReport("scheduling: false\nholding: no, because msfrs is off\n");
    EXPECT_EQ(report.because.at(0), "msfrs is off");
    EXPECT_TRUE(report.held.empty());
    EXPECT_TRUE(ReadManagerReport("users: []\n").users.empty());
    EXPECT_TRUE(ReadManagerReport("").because.empty());
}

class ManagerReportRefused : public testing::TestWithParam<const char *> {};

TEST_P(ManagerReportRefused, Row)
{
    const std::string row = GetParam();
    EXPECT_THROW(ReadManagerReport("users:\n  - {" + row + "\n"), PageError);
    EXPECT_THROW(ReadManagerReport("held:\n  - {" + row + "\n"), PageError);
    EXPECT_THROW(ReadManagerReport("classes:\n    quota: {" + row + "\n"), PageError);
}

INSTANTIATE_TEST_SUITE_P(Rows, ManagerReportRefused,
                         testing::Values("", "}", "user", "user: ", "user: \"a", "user: \"\\", "user: \"\\q\"}",
                                         "user: \"\\u12\"}", "user: \"\\uzzzz\"}", "user: \"a\" class: \"b\"}",
                                         "user: \"a\", class: \"b\"}",
                                         "user: \"a\", class: \"b\", bytes: x, queued: 0, in_flight: 0}",
                                         "user: \"a\", class: \"b\", bytes: -1, queued: 0, in_flight: 0}",
                                         "user: \"a\", class: \"b\", bytes: 1e99, queued: 0, in_flight: 0}",
                                         "user: \"a\", class: \"b\", host: \"h\", what: request, waited: nan}"));

} // namespace
} // namespace msfrs::test
