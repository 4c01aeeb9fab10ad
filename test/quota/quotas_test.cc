// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Who has passed a quota, when that ends, and what of it survives a restart.
#include "quota/quotas.h"
#include "support/host.h"

#include <array>
#include <gtest/gtest.h>
#include <map>

namespace msfrs::test {
namespace {

constexpr int64_t Hour = 3600, Today = 20779 * 24 * Hour + 15 * Hour + 100; // 15:01:40
enum { Gold, Silver, Bulk };

/// gold's users go on as silver's, and those as bulk's.
std::vector<QuotaClass> Chain()
{
    return {{"gold", 1000, QuotaPeriod::Day, "silver"},
            {"silver", 500, QuotaPeriod::Hour, "bulk"},
            {"bulk", 0, {}, ""}};
}

TEST(Quotas, AUserGoesOnInTheOtherClassAndComesBack)
{
    Quotas q(Chain(), Today);
    EXPECT_TRUE(q.any());
    EXPECT_FALSE(q.charge(Gold, "ann", 999));
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Gold));
    EXPECT_TRUE(q.charge(Gold, "ann", 1)) << "all of it";
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Silver));
    EXPECT_EQ(q.classOf(Gold, "bob"), size_t(Gold)) << "each user has one";
    EXPECT_FALSE(q.charge(Gold, "ann", 10'000)) << "said once";
    EXPECT_FALSE(q.tick(Today + Hour)) << "silver's hour has ended, and nobody was over";
    EXPECT_TRUE(q.charge(Silver, "ann", 700));
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Bulk));
    EXPECT_EQ(q.classOf(Silver, "ann"), size_t(Bulk));
    EXPECT_EQ(q.classOf(Bulk, "ann"), size_t(Bulk));
    EXPECT_FALSE(q.charge(Bulk, "ann", 1 << 30)) << "which has none";
    EXPECT_TRUE(q.tick(Today + 2 * Hour));
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Silver)) << "the hour is over, the day is not";
    EXPECT_FALSE(q.tick(Today + 8 * Hour));
    EXPECT_TRUE(q.tick(Today + 9 * Hour));
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Gold));
    EXPECT_FALSE(q.charge(Gold, "ann", 999)) << "from 0";
}

TEST(Quotas, AReportTellsWhoHadMost)
{
    Quotas q(Chain(), Today);
    for (int n = 1; n <= 5; ++n)
        q.charge(Gold, "u" + std::to_string(n), 300 * n);
    const auto r = q.report(Gold, 2);
    EXPECT_EQ(r.bytes, 1000);
    EXPECT_EQ(r.period, QuotaPeriod::Day);
    EXPECT_EQ(r.over, "silver");
    EXPECT_EQ(r.endsIn, 9 * Hour - 100);
    EXPECT_EQ(r.users, 5u);
    EXPECT_EQ(r.usersOver, 2u);
    EXPECT_EQ(r.passed, 2u);
    ASSERT_EQ(r.most.size(), 2u);
    EXPECT_EQ(r.most[0].name, "u5");
    EXPECT_EQ(r.most[0].bytes, 1500);
    EXPECT_EQ(r.most[1].name, "u4");
    EXPECT_EQ(q.report(Bulk, 2).bytes, 0);
    q.tick(Today + 24 * Hour);
    EXPECT_EQ(q.report(Gold, 2).usersOver, 0u);
    EXPECT_EQ(q.report(Gold, 2).passed, 2u) << "since the start";
}

TEST(Quotas, AClockThatGoesBackEndsNothing)
{
    Quotas q(Chain(), Today);
    q.charge(Gold, "ann", 1000);
    EXPECT_FALSE(q.tick(Today - 400 * 24 * Hour)) << "set back by a year";
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Silver)) << "it is no way to a second quota";
    EXPECT_FALSE(q.tick(Today - 400 * 24 * Hour + Hour));
    EXPECT_TRUE(q.tick(Today - 399 * 24 * Hour)) << "nor is anybody slow until the old day comes again";
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Gold));
    q.charge(Gold, "ann", 1000);
    EXPECT_TRUE(q.tick(Today)) << "set right";
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Gold));
}

/// Clocks go from 2:59:59 back to 2:00:00, and in spring from 1:59:59 on to 3:00:00.
TEST(Quotas, SummerTime)
{
    const int64_t two = 20779 * 24 * Hour + 2 * Hour;
    Quotas q(Chain(), two);
    q.charge(Silver, "ann", 500);
    EXPECT_FALSE(q.tick(two + Hour - 1));
    EXPECT_FALSE(q.tick(two)) << "the hour comes again";
    EXPECT_EQ(q.classOf(Silver, "ann"), size_t(Bulk));
    EXPECT_TRUE(q.tick(two + Hour));
    q.charge(Silver, "ann", 500);
    EXPECT_TRUE(q.tick(two + 3 * Hour));
    EXPECT_EQ(q.classOf(Silver, "ann"), size_t(Silver));
}

TEST(Quotas, AnotherConfiguration)
{
    Quotas q(Chain(), Today);
    q.charge(Gold, "ann", 700);
    q.charge(Silver, "ann", 100);
    const auto day = QuotaPeriod::Day;
    q.configure({{"bulk", 0, {}, ""}, {"gold", 600, day, "bulk"}, {"silver", 50, day, "bulk"}}, Today + 60);
    EXPECT_EQ(q.classOf(1, "ann"), 0u) << "less is allowed now";
    EXPECT_EQ(q.report(1, 1).usersOver, 1u);
    EXPECT_EQ(q.report(2, 1).users, 0u) << "an hour's bytes are no day's";
    EXPECT_TRUE(q.charge(2, "ann", 50));
    q.configure({{"gold", 2000, QuotaPeriod::Day, "bulk"}, {"bulk", 0, {}, ""}}, Today + 120);
    EXPECT_EQ(q.classOf(0, "ann"), 0u) << "and more again";
    EXPECT_TRUE(q.charge(0, "ann", 1300));
    q.configure({{"gold", 0, {}, ""}}, Today + 180);
    EXPECT_FALSE(q.any());
    EXPECT_EQ(q.classOf(0, "ann"), 0u);
}

TEST(Quotas, WhatIsWrongIsNamed)
{
    const auto fault = [](const std::vector<QuotaClass> &classes) {
        const auto found = CheckQuotas(classes);
        return found ? std::to_string(found->cls) + ": " + found->sentence : "nothing";
    };
    const auto day = QuotaPeriod::Day;
    EXPECT_EQ(fault(Chain()), "nothing");
    EXPECT_EQ(fault({}), "nothing");
    EXPECT_EQ(fault({{"a", 5, day, ""}}), "0: quota= needs over=, the class in which users go on; give both");
    EXPECT_EQ(fault({{"a", 0, day, ""}, {"b", 0, day, "a"}}), "1: over=a needs quota=; give both, as in quota=5GB/day");
    EXPECT_EQ(fault({{"a", 0, day, ""}, {"b", 5, day, "c"}, {"d", 0, day, ""}}),
              "1: over=c names no class; known are a, d");
    EXPECT_EQ(fault({{"a", 5, day, "b"}}), "0: over=b names no class; there is no other one");
    EXPECT_EQ(fault({{"z", 0, day, ""}, {"a", 5, day, "a"}}),
              "1: over=a leads in a circle (a to a); the last class of such a chain has no quota");
    EXPECT_EQ(fault({{"in", 5, day, "a"}, {"a", 5, day, "b"}, {"b", 5, day, "a"}}),
              "1: over=b leads in a circle (a to b to a); the last class of such a chain has no quota");
}

TEST(Quotas, CountsSurviveARestart)
{
    const std::string odd("login=\x01 %\n\xC3\xBC\0z", 14);
    Quotas before(Chain(), Today);
    before.charge(Gold, "ann", 1200);
    before.charge(Gold, odd, 7);
    before.charge(Silver, "ann", 500);
    const auto text = before.save();
    EXPECT_NE(text.find("\nclass gold day 20779\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\n7 login=%01%20%25%0A%C3%BC%00z\n"), std::string::npos) << text;

    Quotas after(Chain(), Today + 60);
    after.load(text);
    EXPECT_EQ(after.classOf(Gold, "ann"), size_t(Bulk));
    EXPECT_FALSE(after.charge(Gold, odd, 992));
    EXPECT_TRUE(after.charge(Gold, odd, 1));
    EXPECT_EQ(after.report(Gold, 0).passed, 1u) << "since the start";

    Quotas tomorrow(Chain(), Today + 24 * Hour);
    tomorrow.load(text);
    EXPECT_EQ(tomorrow.report(Gold, 0).users, 0u) << "the day was over before it was read";

    Quotas unset(Chain(), 5 * Hour); // a board without a battery, before it has asked for the time
    unset.load(text);
    EXPECT_EQ(unset.classOf(Gold, "ann"), size_t(Bulk));

    Quotas other({{"gold", 100, QuotaPeriod::Week, "bulk"}, {"bulk", 0, {}, ""}}, Today);
    other.load(text);
    EXPECT_EQ(other.report(0, 0).users, 0u) << "a day's bytes are no week's";
    other.load(Quotas(Chain(), Today).save());
}

TEST(Quotas, AForeignTextIsRefusedAndNothingChanges)
{
    const std::string title = "msfrs-quota 1\n", gold = title + "class gold day 20779\n";
    const auto refusal = [](const std::string &text) -> std::string {
        Quotas q(Chain(), Today);
        q.charge(Gold, "ann", 1000);
        try {
            q.load(text);
        } catch (const std::runtime_error &e) {
            EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Silver)) << text;
            return e.what();
        }
        return "taken";
    };
    std::string many = gold;
    for (size_t n = 0; n <= Quotas::MostUsers; ++n)
        many += "1 u" + std::to_string(n) + '\n';
    const std::string form = "this is not of the form BYTES USER, below a class";
    const std::map<std::string, std::string> cases = {
        {"", "line 0: this is no file of quotas; they begin with msfrs-quota 1"},
        {"msfrs-quota 1", "line 0: this is no file of quotas; they begin with msfrs-quota 1"},
        {"msfrs-quota 2\nend 1\n", "line 1: this is no file of quotas; they begin with msfrs-quota 1"},
        {title, "line 1: the text is cut here"},
        {gold + "5 ann\n", "line 3: the text is cut here"},
        {gold + "5 ann\nend 3", "line 3: the text is cut here"},
        {gold + "5 ann\nend 2\n", "line 4: this is not the number of lines before it"},
        {gold + "5 ann\nend\n", "line 4: this is not the number of lines before it"},
        {gold + "end 2\nend 2\n", "line 3: more comes after the end"},
        {title + "5 ann\nend 2\n", "line 2: " + form},
        {gold + "-5 ann\nend 3\n", "line 3: " + form},
        {gold + "99999999999999999999 ann\nend 3\n", "line 3: " + form},
        {gold + "9223372036854775807 ann\nend 3\n", "line 3: " + form},
        {gold + "5x ann\nend 3\n", "line 3: " + form},
        {gold + "5 ann lee\nend 3\n", "line 3: " + form},
        {gold + "5 an%2\nend 3\n", "line 3: " + form},
        {gold + "5 an%zz\nend 3\n", "line 3: " + form},
        {gold + "5 " + std::string(257, 'x') + "\nend 3\n", "line 3: " + form},
        {gold + "5 \nend 3\n", "line 3: " + form},
        {gold + "\nend 3\n", "line 3: " + form},
        {gold + "5 ann\n6 ann\nend 4\n", "line 4: this user comes twice"},
        {gold + "class gold day 20779\nend 3\n", "line 3: class gold comes twice"},
        {title + "class gold year 20779\nend 2\n", "line 2: this is not of the form class NAME PERIOD NUMBER"},
        {title + "class gold day\nend 2\n", "line 2: this is not of the form class NAME PERIOD NUMBER"},
        {title + "class gold day 20779 x\nend 2\n", "line 2: this is not of the form class NAME PERIOD NUMBER"},
        {many + "end 65539\n", "line 65539: more than 65536 users of one class"},
        {gold + "5 an%25\nclass iron week 3\n5 u\nend 5\n", "taken"},
    };
    for (const auto &[text, says] : cases)
        EXPECT_EQ(refusal(text), says) << text.substr(0, 80);
}

TEST(Quotas, WhoHasHadMuchIsNotForgotten)
{
    Quotas q(Chain(), Today);
    q.charge(Gold, "ann", 1000);
    q.charge(Gold, "bob", 10);
    for (size_t n = 0; n < 3 * Quotas::MostUsers; ++n) {
        q.charge(Gold, "stranger" + std::to_string(n), 1);
        if (n % 4096 == 0) { // it looks at all
            ASSERT_LE(q.report(Gold, 0).users, Quotas::MostUsers);
        }
    }
    EXPECT_LE(q.report(Gold, 0).users, Quotas::MostUsers);
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Silver));
    EXPECT_TRUE(q.charge(Gold, "bob", 990)) << "who had 10 before";
}

/// Against a plain count of everything.
TEST(Quotas, Property)
{
    Random random(5);
    for (int round = 0; round < 20; ++round) {
        auto local = Today + random.between(0, 1000) * Hour;
        auto q = std::make_unique<Quotas>(Chain(), local);
        std::map<std::pair<size_t, std::string>, int64_t> had;
        for (int step = 0; step < 3000; ++step) {
            const auto cls = random.below(3);
            const auto user = std::to_string(random.below(5));
            if (random.chance(0.01)) {
                const auto next = local + random.between(-3 * Hour, 9 * Hour);
                std::array<bool, 2> ended = {next / (24 * Hour) > local / (24 * Hour), next / Hour > local / Hour};
                for (auto &[key, bytes] : had)
                    bytes = key.first < 2 && ended[key.first] ? 0 : bytes;
                q->tick(local = next);
            } else if (random.chance(0.02)) {
                const auto text = q->save();
                q = std::make_unique<Quotas>(Chain(), local);
                q->load(text);
                EXPECT_EQ(q->save().size(), text.size());
            } else {
                const auto bytes = random.between(0, 300), limit = cls == Gold ? int64_t(1000) : int64_t(500);
                auto &sum = had[{cls, user}];
                const bool passes = cls != Bulk && sum < limit && sum + bytes >= limit;
                sum += bytes;
                ASSERT_EQ(q->charge(cls, user, bytes), passes) << step;
            }
            const bool gold = had[{Gold, user}] >= 1000, silver = had[{Silver, user}] >= 500;
            ASSERT_EQ(q->classOf(Gold, user), size_t(!gold ? Gold : !silver ? Silver : Bulk)) << step;
        }
    }
}

} // namespace
} // namespace msfrs::test
