// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/share/report.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace share;

Report Example()
{
    Report r;
    r.gateway = "a";
    r.link = "home";
    r.store = "store 192.0.2.1 port 6379";
    r.share = 0.5;
    r.segment = true;
    r.parties = 2;
    r.sharing.state = StoreState::Static;
    r.sharing.failure = "cannot connect: Connection refused";
    r.sharing.others = {{"b", true, 0.05, 4, 3, 2, 1.5, 1000, 0}, {"c", false, -1, 0, 0, 0, 0, 0, 7}};
    return r;
}

TEST(ShareReport, ForPeople)
{
    const auto text = Text(Example());
    EXPECT_NE(text.find("gateway a of link home: up 0 s, static, static share 50 %\n"), text.npos);
    EXPECT_NE(text.find("; cannot connect: Connection refused\n"), text.npos);
    EXPECT_NE(text.find("gateway b: present, message 0.05 s ago: slots 4 (left to it: 3), waiting 2, demand 1.5;"),
              text.npos);
    EXPECT_NE(text.find("gateway c: has not reported yet; received 0 bytes, refused messages 7\n"), text.npos);
}

TEST(ShareReport, AsOpenMetrics)
{
    const auto text = OpenMetrics(Example());
    for (const auto *const line :
         {"msfrs_share_state{state=\"static\"} 1\n", "msfrs_share_state{state=\"together\"} 0\n",
          "msfrs_share_other_here{gateway=\"b\"} 1\n", "msfrs_share_other_received_bytes_total{gateway=\"b\"} 1000\n",
          "msfrs_share_other_messages_refused_total{gateway=\"c\"} 7\n", "msfrs_share_parties 2\n"})
        EXPECT_NE(text.find(line), text.npos) << line;
    EXPECT_EQ(text.substr(text.size() - 6), "# EOF\n");
}

} // namespace
} // namespace msfrs::test
