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
    f.takeUsers(Users(500), 50, 5000);
    EXPECT_TRUE(Has(f.dataJson(5000, 1, ""), "\"rate\":0,")) << "no flow is known yet";
    EXPECT_EQ(f.history().columns(), 0u);
    f.takeMetrics(Metrics(1'002'000), 52, 5002);
    f.takeUsers(Users(1500), 52, 5002);
    const auto data = f.dataJson(5002, 1, "");
    EXPECT_TRUE(Has(data, R"("classes":[{"name":"gold","weight":4,)")) << data;
    EXPECT_TRUE(Has(data, "\"rate\":8000,"));
    const auto users = f.usersJson();
    EXPECT_TRUE(Has(users, R"("users":[{"class":"gold","rate":4000,"due":2e+06,"bytes":1500,"queued":0,)")) << users;
    EXPECT_TRUE(Has(users, R"("user":"\u003ci\u003e","name":""})")) << users;
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
    f.takeTopUsers(50, 5000);
    EXPECT_TRUE(Has(f.userJson("a", ""),
                    R"("held":[{"user":"a","class":"gold","host":"h","waited":1,"what":"request","id":"","place":1,)"
                    R"("of":1}])"));
    EXPECT_TRUE(Has(f.userJson("a", ""), R"("classes":[{"class":"gold","rate":null,"due":2e+06,"bytes":7,)"));
    EXPECT_TRUE(Has(f.userJson("b", ""), R"("user":"b","name":"","trouble":"","age":null,"why":["Squid does not )"));
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
                    R"("users":1,"users_over":1,"most":[{"user":"a","name":"","bytes":7}]}])"));
}

TEST(Figures, AWrongPageChangesNothing)
{
    Figures f;
    f.takeMetrics(Metrics(1), 50, 5000);
    const auto before = f.dataJson(5000, 1, "");
    EXPECT_THROW(f.takeMetrics("<html>", 51, 5001), PageError);
    EXPECT_THROW(f.takeReport("held:\n  - {"), PageError);
    EXPECT_THROW(f.takeUsers("users:\n  - {}", 51, 5001), PageError);
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
    f.takeUsers(text, 50, 5000);
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
    f.takeUsers(text, 50, 5000);
    const auto data = f.dataJson(5000, 1, ""), users = f.usersJson();
    EXPECT_TRUE(Has(data, "\"user_count\":10000,"));
    EXPECT_LT(data.size(), 10'000u);
    EXPECT_TRUE(Has(users, "\"user\":\"u9999\",") && !Has(users, "\"user\":\"u1\",")) << "those that are shown";
    EXPECT_LT(users.size(), 150 * Figures::MostUsersShown);
    EXPECT_TRUE(Has(f.userJson("u17", ""), "\"bytes\":17,"));
}

TEST(Figures, SinceWhenTheLinkIsFull)
{
    setenv("TZ", "UTC", 1);
    tzset();
    Figures f;
    std::string full = Metrics(1);
    full.replace(full.find("ratio 0.5"), 9, "ratio 0.99");
    constexpr int64_t Noon = 86'400 + 12 * 3600;
    double at = 50;
    f.takeMetrics(full, at, Noon);
    for (int64_t wall = Noon; wall < Noon + 300; wall += 5)
        f.takeMetrics(full, ++at, wall);
    EXPECT_TRUE(Has(f.dataJson(Noon + 300, 1, ""), R"("verdict":"The link is full since 12:00. Nobody waits. Nothing is wrong.")"))
        << f.dataJson(Noon + 300, 1, "");
    EXPECT_TRUE(Has(f.dataJson(Noon + 300, 1, "Squid is gone."), R"("verdict":"Squid is gone.")"));
    for (int64_t wall = Noon + 300; wall < Noon + 4000; wall += 5)
        f.takeMetrics(full, ++at, wall);
    EXPECT_TRUE(Has(f.dataJson(Noon + 4000, 1, ""), "The link is full for more than an hour."));
}

TEST(Figures, AUsersLastHour)
{
    Figures f;
    EXPECT_TRUE(Has(f.pastJson("<i>"), R"("columns":{})"));
    long bytes = 500;
    for (double at = 0; at <= 60; at += 6) // as seldom as it may be
        f.takeUsers(Users(bytes += 3000), 50 + at, 5010 + static_cast<int64_t>(at));
    const auto *const idle = "users:\n  - {user: \"idle\", class: \"gold\", bytes: 5, queued: 0, in_flight: 0}\n";
    f.takeUsers(idle, 140, 5100);
    f.takeUsers(idle, 155, 5115);
    const auto past = f.pastJson("<i>");
    EXPECT_TRUE(Has(past, R"({"step":15,"newest":341,"columns":{"\u003ci\u003e":[null,)")) << past;
    EXPECT_TRUE(Has(past, ",null,4000,4000,4000,4000,4000,null,null,null]}}")) << "each slot has a sample";
    EXPECT_TRUE(Has(f.pastJson("idle"), R"("columns":{})")) << "uses no memory";
}

TEST(Figures, ARefusalIsNotedForAMinute)
{
    Figures f;
    const auto refused = [](const int count) {
        return Metrics(1, ("msfrs_class_refused_requests_total{class=\"gold\",reason=\"total\"} " +
                           std::to_string(count) + "\n").c_str());
    };
    const auto noted = [&] { return Has(f.dataJson(5000, 1, ""), "Requests of class gold were refused"); };
    f.takeMetrics(refused(3), 50, 5000);
    EXPECT_FALSE(noted()) << "the time is unknown";
    f.takeMetrics(refused(4), 51, 5001);
    EXPECT_TRUE(noted());
    f.takeMetrics(refused(4), 110, 5060);
    EXPECT_TRUE(noted());
    f.takeMetrics(refused(4), 112, 5062);
    EXPECT_FALSE(noted());
}

TEST(Figures, TheNameOfAUser)
{
    Figures f;
    f.takeMetrics(Metrics(1), 50, 5000);
    f.takeReport("held:\n  - {user: \"<i>\", class: \"gold\", host: \"h\", waited: 1, what: request}\n");
    f.takeUsers(Users(500), 50, 5000);
    NameBook book;
    book.addNames("<i> <b>Anna\n");
    f.takeNames(std::move(book));
    constexpr auto Name = R"("name":"\u003cb\u003eAnna")";
    for (const auto &json : {f.dataJson(5000, 1, ""), f.usersJson(), f.userJson("<i>", ""), f.ownJson("<i>", "")})
        EXPECT_TRUE(Has(json, Name) && !Has(json, "<")) << json;
}

TEST(Figures, AUserSeesItselfOnly)
{
    Figures f;
    f.takeMetrics(Metrics(1), 50, 5000);
    f.takeReport("classes:\n  - name: \"gold\"\n    service: 12\n    quota: {bytes: 5, period: day, over: \"slow\", "
                 "ends_in: 9, users: 1, users_over: 1, passed: 1}\n    quota_users:\n"
                 "      - {user: \"10.0.0.5\", bytes: 7}\nheld:\n  - {user: \"10.0.0.6\", class: \"gold\", host: \"secret\", waited: 3, what: request}\n"
                 "  - {user: \"10.0.0.5\", class: \"gold\", host: \"mine\", waited: 2, what: request}\n");
    f.takeUsers("users:\n  - {user: \"10.0.0.5\", class: \"gold\", bytes: 9, queued: 1, in_flight: 1}\n"
                "  - {user: \"10.0.0.6\", class: \"gold\", bytes: 8, queued: 1, in_flight: 1}\n"
                "  - {user: \"aa:bb:cc:00:11:22\", class: \"gold\", bytes: 6, queued: 0, in_flight: 1}\n", 50, 5000);
    const auto own = f.ownJson("10.0.0.5", "");
    EXPECT_TRUE(Has(own, R"("reason":"waits","waiting":1,"longest":2,)")) << own;
    EXPECT_TRUE(Has(own, R"("quotas":[{"class":"gold","bytes":5,"period":"day","had":7,"exceeded":true,)"
                         R"("then":"slow",)"));
    EXPECT_FALSE(Has(own, "10.0.0.6") || Has(own, "secret") || Has(own, "mine"));
    EXPECT_TRUE(Has(f.ownJson("10.0.0.9", ""), R"("reason":"unknown","waiting":0,"longest":null,)"));
    EXPECT_TRUE(Has(f.ownJson("secret", ""), R"("reason":"unknown","waiting":0,)")) << "no host";
    EXPECT_TRUE(Has(f.ownJson("10.0.0.7", "Squid at 10.0.0.1 is gone."), R"("trouble":true)"));
    EXPECT_TRUE(Has(f.ownJson("10.0.0.7", "Squid at 10.0.0.1 is gone."), R"("gateway":"silent","light":"red")"));
    EXPECT_FALSE(Has(f.ownJson("10.0.0.7", "Squid at 10.0.0.1 is gone."), "10.0.0.1"));
    NameBook book;
    book.addLeases("1 aa:bb:cc:00:11:22 10.0.0.8 phone *\n");
    f.takeNames(std::move(book));
    EXPECT_TRUE(Has(f.ownJson("10.0.0.8", ""), R"("bytes":6,)")) << "users by hardware address";
    EXPECT_TRUE(Has(f.dataJson(5000, 1, ""), R"("service":12,)"));
}

} // namespace
} // namespace msfrs::test
