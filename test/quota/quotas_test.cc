// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Which users have exceeded a quota, when that ends, and what survives a restart.
#include "quota/quotas.h"
#include "support/host.h"

#include <array>
#include <gtest/gtest.h>
#include <map>
#include <thread>

namespace msfrs::test {
namespace {

constexpr int64_t Hour = 3600, Today = 20779 * 24 * Hour + 15 * Hour + 100; // 15:01:40
enum { Gold, Silver, Bulk };

/// gold's users are moved to silver, and silver's to bulk.
std::vector<QuotaClass> Chain()
{
    return {{"gold", 1000, QuotaPeriod::Day, "silver"},
            {"silver", 500, QuotaPeriod::Hour, "bulk"},
            {"bulk", 0, {}, ""}};
}

/// Quotas of a single process, with a table of its own.
struct OwnQuotas : private ledger::OwnQuotaTable, Quotas {
    OwnQuotas(const std::vector<QuotaClass> &classes, const int64_t local):
        ledger::OwnQuotaTable(ledger::MakeQuotaTable()),
        Quotas(**static_cast<ledger::OwnQuotaTable *>(this), classes, local)
    {
    }
};

TEST(Quotas, AUserGoesOnInTheOtherClassAndComesBack)
{
    OwnQuotas q(Chain(), Today);
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
    OwnQuotas q(Chain(), Today);
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
    OwnQuotas q(Chain(), Today);
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

/// Clocks are set from 2:59:59 back to 2:00:00, and in spring from 1:59:59 forward to 3:00:00.
TEST(Quotas, SummerTime)
{
    const int64_t two = 20779 * 24 * Hour + 2 * Hour;
    OwnQuotas q(Chain(), two);
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
    OwnQuotas q(Chain(), Today);
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
    EXPECT_EQ(fault({{"a", 5, day, ""}}),
              "0: quota= needs over=, the class to which users over quota are moved; give both");
    EXPECT_EQ(fault({{"a", 0, day, ""}, {"b", 0, day, "a"}}), "1: over=a needs quota=; give both, as in quota=5GB/day");
    EXPECT_EQ(fault({{"a", 0, day, ""}, {"b", 5, day, "c"}, {"d", 0, day, ""}}),
              "1: over=c is not another class; known are a, d");
    EXPECT_EQ(fault({{"a", 5, day, "b"}}), "0: over=b is not another class; there is none");
    EXPECT_EQ(fault({{"z", 0, day, ""}, {"a", 5, day, "a"}}),
              "1: over=a forms a cycle (a to a); the last class of such a chain has no quota");
    EXPECT_EQ(fault({{"in", 5, day, "a"}, {"a", 5, day, "b"}, {"b", 5, day, "a"}}),
              "1: over=b forms a cycle (a to b to a); the last class of such a chain has no quota");
}

TEST(Quotas, CountsSurviveARestart)
{
    const std::string odd("login=\x01 %\n\xC3\xBC\0z", 14);
    OwnQuotas before(Chain(), Today);
    before.charge(Gold, "ann", 1200);
    before.charge(Gold, odd, 7);
    before.charge(Silver, "ann", 500);
    const auto text = before.save();
    EXPECT_NE(text.find("\nclass gold day 20779\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\n7 login=%01%20%25%0A%C3%BC%00z\n"), std::string::npos) << text;

    OwnQuotas after(Chain(), Today + 60);
    after.load(text);
    EXPECT_EQ(after.classOf(Gold, "ann"), size_t(Bulk));
    EXPECT_FALSE(after.charge(Gold, odd, 992));
    EXPECT_TRUE(after.charge(Gold, odd, 1));
    EXPECT_EQ(after.report(Gold, 0).passed, 1u) << "since the start";

    OwnQuotas tomorrow(Chain(), Today + 24 * Hour);
    tomorrow.load(text);
    EXPECT_EQ(tomorrow.report(Gold, 0).users, 0u) << "the day was over before it was read";

    OwnQuotas unset(Chain(), 5 * Hour); // a board without a battery-backed clock, before its first time synchronisation
    unset.load(text);
    EXPECT_EQ(unset.classOf(Gold, "ann"), size_t(Bulk));

    OwnQuotas other({{"gold", 100, QuotaPeriod::Week, "bulk"}, {"bulk", 0, {}, ""}}, Today);
    other.load(text);
    EXPECT_EQ(other.report(0, 0).users, 0u) << "a day's bytes are no week's";
    other.load(OwnQuotas(Chain(), Today).save());
}

TEST(Quotas, AForeignTextIsRefusedAndNothingChanges)
{
    const std::string title = "msfrs-quota 1\n", gold = title + "class gold day 20779\n";
    const auto refusal = [](const std::string &text) -> std::string {
        OwnQuotas q(Chain(), Today);
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
    const std::string form = "expected BYTES USER, below a class";
    const std::map<std::string, std::string> cases = {
        {"", "line 0: not a file of quotas, which begins with msfrs-quota 1"},
        {"msfrs-quota 1", "line 0: not a file of quotas, which begins with msfrs-quota 1"},
        {"msfrs-quota 2\nend 1\n", "line 1: not a file of quotas, which begins with msfrs-quota 1"},
        {title, "line 1: the text is truncated here"},
        {gold + "5 ann\n", "line 3: the text is truncated here"},
        {gold + "5 ann\nend 3", "line 3: the text is truncated here"},
        {gold + "5 ann\nend 2\n", "line 4: not the number of lines before it"},
        {gold + "5 ann\nend\n", "line 4: not the number of lines before it"},
        {gold + "end 2\nend 2\n", "line 3: text follows the end"},
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
        {gold + "5 ann\n6 ann\nend 4\n", "line 4: this user is listed twice"},
        {gold + "class gold day 20779\nend 3\n", "line 3: class gold is listed twice"},
        {title + "class gold year 20779\nend 2\n", "line 2: expected class NAME PERIOD NUMBER"},
        {title + "class gold day\nend 2\n", "line 2: expected class NAME PERIOD NUMBER"},
        {title + "class gold day 20779 x\nend 2\n", "line 2: expected class NAME PERIOD NUMBER"},
        {many + "end 65539\n", "line 65539: more than 65536 users of one class"},
        {gold + "5 an%25\nclass iron week 3\n5 u\nend 5\n", "taken"},
    };
    for (const auto &[text, says] : cases)
        EXPECT_EQ(refusal(text), says) << text.substr(0, 80);
}

TEST(Quotas, WhoHasHadMuchIsNotForgotten)
{
    OwnQuotas q(Chain(), Today);
    q.charge(Gold, "ann", 1000);
    q.charge(Gold, "bob", 10);
    for (size_t n = 0; n < 3 * Quotas::MostUsers; ++n) {
        q.charge(Gold, "stranger" + std::to_string(n), 1);
        if (n % 4096 == 0) { // report() visits all users
            ASSERT_LE(q.report(Gold, 0).users, Quotas::MostUsers);
        }
    }
    EXPECT_LE(q.report(Gold, 0).users, Quotas::MostUsers);
    EXPECT_EQ(q.classOf(Gold, "ann"), size_t(Silver));
    EXPECT_TRUE(q.charge(Gold, "bob", 990)) << "who had 10 before";
}

/// Two processes that share the table, as workers do.
class SharedQuotas : public ::testing::Test {
protected:
    ledger::OwnQuotaTable table = ledger::MakeQuotaTable();
    Quotas one{*table, Chain(), Today}, other{*table, Chain(), Today};
};

TEST_F(SharedQuotas, BothCountTheSameUserAndAreToldOnce)
{
    EXPECT_FALSE(one.charge(Gold, "ann", 600));
    EXPECT_FALSE(other.charge(Gold, "ann", 399));
    EXPECT_TRUE(one.charge(Gold, "ann", 1));
    EXPECT_EQ(other.classOf(Gold, "ann"), size_t(Silver)) << "a new request at once";
    EXPECT_TRUE(other.tick(Today)) << "those under way at the next look";
    EXPECT_FALSE(other.tick(Today));
    EXPECT_FALSE(one.tick(Today));
    EXPECT_EQ(one.report(Gold, 1).passed, 1u);
    EXPECT_EQ(one.report(Gold, 1).most[0].bytes, 1000);
    EXPECT_TRUE(one.charge(Silver, "ann", 500));
    EXPECT_TRUE(other.charge(Gold, "bob", 1)) << "by what the other has found";
}

TEST_F(SharedQuotas, WhoIsKilledAndStartsAgainFindsWhatWasCounted)
{
    one.charge(Gold, "ann", 900);
    other.charge(Gold, "ann", 50);
    one.loaded();
    Quotas again(*table, Chain(), Today + 1);
    EXPECT_FALSE(again.toLoad()) << "or it would count twice what the file has";
    EXPECT_EQ(again.report(Gold, 1).most[0].bytes, 950);
    EXPECT_TRUE(again.charge(Gold, "ann", 50));
    EXPECT_TRUE(other.tick(Today + 1));
}

TEST_F(SharedQuotas, WhatWasKeptIsAddedOnceWhoeverReadsIt)
{
    OwnQuotas before(Chain(), Today - 60);
    before.charge(Gold, "ann", 700);
    before.charge(Silver, "bob", 500);
    const auto text = before.save();
    Quotas third(*table, Chain(), Today);
    third.charge(Gold, "ann", 100); // the others are still starting
    EXPECT_TRUE(one.toLoad() && other.toLoad());
    one.load(text); // and is killed before it confirms that
    other.load(text);
    EXPECT_EQ(one.report(Gold, 1).most[0].bytes, 800);
    EXPECT_EQ(one.report(Silver, 1).passed, 0u) << "nobody has passed it now";
    EXPECT_TRUE(third.tick(Today)) << "but bob's requests here are in the wrong class";
    EXPECT_EQ(one.classOf(Silver, "bob"), size_t(Bulk));
}

TEST_F(SharedQuotas, APeriodEndsOnce)
{
    constexpr auto midnight = Today + 9 * Hour - 100;
    one.charge(Gold, "ann", 1000);
    EXPECT_TRUE(other.tick(Today));
    EXPECT_TRUE(one.tick(midnight));
    one.charge(Gold, "ann", 10);
    EXPECT_TRUE(other.tick(midnight - 1)) << "has looked a little before";
    EXPECT_FALSE(other.tick(midnight));
    EXPECT_FALSE(one.tick(midnight));
    EXPECT_EQ(one.report(Gold, 1).most[0].bytes, 10);
}

TEST_F(SharedQuotas, OneOfThemSavesWhenItIsTime)
{
    EXPECT_FALSE(one.toSave(30));
    one.charge(Gold, "ann", 1);
    EXPECT_FALSE(one.toSave(30)) << "not yet";
    one.tick(Today + 30);
    other.tick(Today + 30);
    EXPECT_TRUE(one.toSave(30));
    EXPECT_FALSE(other.toSave(30));
    one.tick(Today + 60);
    EXPECT_FALSE(one.toSave(30)) << "nothing has changed";
    ledger::CountBytes(*table, ledger::UserKey("gold", "ann"), 5);
    EXPECT_TRUE(one.toSave(30)) << "by whoever counts";
    other.charge(Gold, "ann", 1);
    other.tick(Today - Hour);
    EXPECT_TRUE(other.toSave(30)) << "the clock was set back";
}

TEST_F(SharedQuotas, WhoSeesPacketsAloneCountsAndFollows)
{
    using ledger::ClassKey, ledger::UserKey;
    const ledger::Owner ann{ClassKey("gold"), UserKey("gold", "ann")};
    ledger::CountBytes(*table, ann.user, 5000);
    EXPECT_EQ(one.report(Gold, 1).users, 0u) << "whom nobody has told of";
    one.enroll(Gold, "ann");
    EXPECT_EQ(ServedAs(*table, ann).user, ann.user);
    EXPECT_EQ(one.report(Gold, 1).users, 0u) << "who had nothing yet";
    ledger::CountBytes(*table, ann.user, 1000);
    EXPECT_TRUE(one.tick(Today) && other.tick(Today));
    EXPECT_EQ(one.report(Gold, 1).passed, 1u);
    EXPECT_EQ(ServedAs(*table, ann).cls, ClassKey("silver"));
    EXPECT_EQ(ServedAs(*table, ann).user, UserKey("silver", "ann"));
    ledger::CountBytes(*table, UserKey("silver", "ann"), 500);
    EXPECT_EQ(ServedAs(*table, ann).cls, ClassKey("bulk"));
    EXPECT_EQ(ServedAs(*table, ann).user, UserKey("bulk", "ann"));
    EXPECT_EQ(ServedAs(*table, {0, ann.user}).cls, ClassKey("bulk")) << "known by its address alone";
    one.configure({{"gold", 500, QuotaPeriod::Day, "bulk"}, {"silver", 0, {}, ""}, {"bulk", 0, {}, ""}}, Today);
    EXPECT_EQ(ServedAs(*table, ann).user, UserKey("bulk", "ann")) << "at once";
    one.tick(Today + 9 * Hour);
    EXPECT_EQ(ServedAs(*table, ann).cls, ClassKey("gold"));
    one.configure({{"gold", 0, {}, ""}}, Today + 9 * Hour);
    ledger::CountBytes(*table, ann.user, 1000);
    EXPECT_EQ(ServedAs(*table, ann).cls, ClassKey("gold"));
}

/// Four processes at once.
TEST_F(SharedQuotas, NothingIsLostOrCountedTwiceBetweenThreads)
{
    constexpr int Users = 200, Rounds = 500;
    std::vector<std::thread> threads;
    for (int n = 0; n < 4; ++n) {
        threads.emplace_back([this] {
            Quotas own(*table, Chain(), Today);
            for (int round = 0; round < Rounds; ++round) {
                for (int user = 0; user < Users; ++user)
                    own.charge(Gold, "u" + std::to_string(user), 1);
            }
        });
    }
    for (auto &thread : threads)
        thread.join();
    const auto r = one.report(Gold, Users);
    EXPECT_EQ(r.users, size_t(Users));
    EXPECT_EQ(r.passed, uint64_t(Users)) << "each once";
    for (const auto &user : r.most)
        EXPECT_EQ(user.bytes, 4 * Rounds);
}

/// Against a plain count of everything.
TEST(Quotas, Property)
{
    Random random(5);
    for (int round = 0; round < 20; ++round) {
        auto local = Today + random.between(0, 1000) * Hour;
        auto q = std::make_unique<OwnQuotas>(Chain(), local);
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
                q = std::make_unique<OwnQuotas>(Chain(), local);
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
