// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/page/figures.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

using namespace page;

std::string Metrics(const long bytes, const char *const more = "")
{
    return "msfrs_scheduling 1\nmsfrs_link_capacity_bytes_per_second 250000\nmsfrs_link_utilisation_ratio 0.5\n"
           "msfrs_class_weight{class=\"gold\"} 4\nmsfrs_class_received_bytes_total{class=\"gold\"} " +
        std::to_string(bytes) + "\n" + more + "# EOF\n";
}

std::string Users(const long bytes)
{
    return "users:\n  - {user: \"<i>\", class: \"gold\", bytes: " + std::to_string(bytes) +
        ", queued: 0, in_flight: 1}\n";
}

bool Has(const std::string &text, const std::string &part) { return text.find(part) != text.npos; }

TEST(Figures, FromPollToPoll)
{
    Figures f;
    f.takeMetrics(Metrics(1'000'000), 50, 5000);
    f.takeUsers(Users(500), 50);
    EXPECT_TRUE(Has(f.dataJson(5000, 1, ""), "\"rate\":0,")) << "no flow is known yet";
    EXPECT_EQ(f.history().columns(), 0u);
    f.takeMetrics(Metrics(1'002'000), 52, 5002);
    f.takeUsers(Users(1500), 52);
    const auto data = f.dataJson(5002, 1, "");
    EXPECT_TRUE(Has(data, R"("classes":[{"name":"gold","weight":4,)")) << data;
    EXPECT_TRUE(Has(data, "\"rate\":8000,"));
    EXPECT_TRUE(Has(data, R"("users":[{"user":"\u003ci\u003e","class":"gold","rate":4000,)"));
    EXPECT_TRUE(Has(data, R"("newest":{"slot":1000,"values":{)"));
    EXPECT_TRUE(Has(data, R"("rate/gold":8000)"));
    EXPECT_TRUE(Has(f.history().json(), R"("utilisation":[null,)"));
}

TEST(Figures, AUser)
{
    Figures f;
    f.takeMetrics(Metrics(1), 50, 5000);
    f.takeReport("holding: no\nheld:\n  - {user: \"a\", class: \"gold\", host: \"h\", waited: 1, what: request}\n"
                 "top_users:\n  - {user: \"a\", class: \"gold\", bytes: 7, queued: 1, in_flight: 0}\n");
    f.takeTopUsers(50);
    EXPECT_TRUE(Has(f.userJson("a", ""),
                    R"("held":[{"user":"a","class":"gold","host":"h","waited":1,"what":"request","id":"","place":1,)"
                    R"("of":1}])"));
    EXPECT_TRUE(Has(f.userJson("a", ""), R"("classes":[{"user":"a","class":"gold","rate":null,"bytes":7,)"));
    EXPECT_TRUE(Has(f.userJson("b", ""), R"("user":"b","trouble":"","age":null,"why":["Squid does not )"));
    // It once blamed the server, on the basis of figures from before Squid had disappeared.
    EXPECT_TRUE(Has(f.userJson("a", "Squid is gone.", 35), R"("age":35,"why":["Squid is gone."],"waiting":1,)"));
    EXPECT_EQ(f.age(85), 35);
    EXPECT_TRUE(Has(f.userJson("b", ""), R"("held":[])"));
}

TEST(Figures, Quotas)
{
    Figures f;
    f.takeMetrics(Metrics(1), 50, 5000);
    EXPECT_TRUE(Has(f.dataJson(5000, 1, ""), R"("quotas":[])"));
    f.takeReport("classes:\n  - name: \"gold\"\n    quota: {bytes: 5, period: day, over: \"<b>\", ends_in: 9, "
                 "users: 1, users_over: 1, passed: 1}\n    quota_users:\n      - {user: \"a\", bytes: 7}\n");
    EXPECT_TRUE(Has(f.dataJson(5000, 1, ""),
                    R"("quotas":[{"class":"gold","bytes":5,"period":"day","over":"\u003cb\u003e","ends_in":9,)"
                    R"("users":1,"users_over":1,"most":[{"user":"a","bytes":7}]}])"));
}

TEST(Figures, AWrongPageChangesNothing)
{
    Figures f;
    f.takeMetrics(Metrics(1), 50, 5000);
    const auto before = f.dataJson(5000, 1, "");
    EXPECT_THROW(f.takeMetrics("<html>", 51, 5001), PageError);
    EXPECT_THROW(f.takeReport("held:\n  - {"), PageError);
    EXPECT_THROW(f.takeUsers("users:\n  - {}", 51), PageError);
    EXPECT_EQ(f.dataJson(5000, 1, ""), before);
}

TEST(Figures, NothingIsScheduled)
{
    Figures f;
    f.takeMetrics("msfrs_scheduling 0\n# EOF\n", 50, 5000);
    f.takeMetrics("msfrs_scheduling 0\n# EOF\n", 51, 5001);
    EXPECT_TRUE(Has(f.dataJson(5001, 1, ""), "\"scheduling\":false"));
    EXPECT_EQ(f.history().columns(), 0u);
}

TEST(Figures, AnAddressOfAUserThatIsANetwork)
{
    Figures f;
    std::string text = "users:\n";
    for (const auto *const user : {"2001:db8:0:7::/64", "2001:db8:0:70::/60", "login=a/64", "2001:db8::9"})
        text += std::string("  - {user: \"") + user + "\", class: \"gold\", bytes: 7, queued: 0, in_flight: 1}\n";
    f.takeUsers(text, 50);
    EXPECT_TRUE(Has(f.userJson("2001:DB8:0:7::1:2", ""), R"({"user":"2001:db8:0:7::/64",)"));
    EXPECT_TRUE(Has(f.userJson("2001:db8:0:7f::1", ""), R"({"user":"2001:db8:0:70::/60",)"));
    for (const auto *const itself : {"2001:db8::9", "2001:db8:0:80::1", "login=a", "198.18.0.1", "::/64"})
        EXPECT_TRUE(Has(f.userJson(itself, ""), std::string(R"({"user":")") + itself + '"')) << itself;
}

TEST(Figures, AsManyUsersAsThereMayBe)
{
    Figures f;
    f.takeMetrics(Metrics(1), 50, 5000);
    std::string text = "users:\n";
    for (int n = 0; n < 10'000; ++n)
        text += "  - {user: \"u" + std::to_string(n) + "\", class: \"gold\", bytes: " + std::to_string(n) +
            ", queued: 0, in_flight: 0}\n";
    f.takeUsers(text, 50);
    const auto data = f.dataJson(5000, 1, "");
    EXPECT_TRUE(Has(data, "\"user_count\":10000,\"users\":[{\"user\":\"u9999\","));
    EXPECT_LT(data.size(), 10'000u) << "whoever asks for it every second gets those that are shown";
    EXPECT_TRUE(Has(f.userJson("u17", ""), "\"bytes\":17,"));
}

} // namespace
} // namespace msfrs::test
