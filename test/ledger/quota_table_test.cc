// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The table of quotas: which users have an entry, what is counted, and the effect of nonsense in the memory.
#include "ledger/quota_table.h"
#include "ledger/users.h"

#include <gtest/gtest.h>

namespace msfrs::ledger {
namespace {

class QuotaTableTest : public ::testing::Test {
protected:
    QuotaTableTest()
    {
        table->limited = 1;
        auto &mine = table->accounts[account];
        mine.limit = 1000;
        mine.over = 77;
        mine.period = PeriodWord{1, 2, 20779}.word();
    }
    QuotaEntry &of(const uint64_t user) { return table->entries[TakeCount(*table, user, account, user + 1, "ann")]; }
    int64_t had(const uint64_t user)
    {
        const auto place = Find(table->entries, user);
        return place == NoEntry ? -1 : BytesIn(*table, table->entries[place]);
    }

    OwnQuotaTable table = MakeQuotaTable();
    const uint32_t account = AccountOf(*table, 5);
};

TEST(QuotaWords, HoldWhatTheySay)
{
    constexpr auto most = (int64_t(1) << 50) - 1;
    for (const int64_t number : {int64_t(0), int64_t(-1), int64_t(493'000), -most - 1, most}) {
        const auto period = PeriodWord::Of(PeriodWord{2047, 3, number}.word());
        EXPECT_EQ(period.generation, 2047u);
        EXPECT_EQ(period.kind, 3u);
        EXPECT_EQ(period.number, number);
        EXPECT_EQ(period.next(1, 5).generation, 1u) << "0 is that of nothing";
    }
    for (const bool kept : {false, true}) {
        const auto count = CountWord::Of(CountWord{2047, kept, MostQuotaBytes}.word());
        EXPECT_EQ(count.generation, 2047u);
        EXPECT_EQ(count.kept, kept);
        EXPECT_EQ(count.bytes, MostQuotaBytes);
    }
}

TEST_F(QuotaTableTest, ACountStaysAtTheMost)
{
    EXPECT_TRUE(AddBytes(*table, of(50), INT64_MAX));
    EXPECT_FALSE(AddBytes(*table, of(50), INT64_MAX));
    EXPECT_FALSE(AddBytes(*table, of(50), -1));
    EXPECT_EQ(had(50), static_cast<int64_t>(MostQuotaBytes));
    EXPECT_EQ(table->moves, 1u);
}

TEST_F(QuotaTableTest, WhoHasHadLeastMakesRoom)
{
    for (uint64_t n = 0; n < Probes; ++n)
        AddBytes(*table, of(100 + n * QuotaTable::Entries), n == 7 ? 3 : 500);
    EXPECT_EQ(had(100 + Probes * QuotaTable::Entries), -1);
    AddBytes(*table, of(100 + Probes * QuotaTable::Entries), 20);
    EXPECT_EQ(had(100 + Probes * QuotaTable::Entries), 20) << "from 0";
    EXPECT_EQ(had(100 + 7 * QuotaTable::Entries), -1);
    EXPECT_EQ(had(100), 500);
    uint64_t users = 0;
    EachCount(*table, [&](uint32_t, const QuotaEntry &) { ++users; });
    EXPECT_EQ(users, Probes);
}

TEST_F(QuotaTableTest, AnAccountOfAClassThatIsGoneIsUsedAgain)
{
    for (uint32_t n = 0; n < QuotaTable::Accounts - 1; ++n)
        EXPECT_EQ(AccountOf(*table, 100 + n), n + 1);
    EXPECT_EQ(AccountOf(*table, 100), 1u);
    for (auto &used : table->accounts)
        used.limit = 1;
    EXPECT_EQ(AccountOf(*table, 999), NoAccount);
    AddBytes(*table, of(50), 10);
    table->accounts[account].limit = 0;
    EXPECT_EQ(AccountOf(*table, 999), account);
    EXPECT_EQ(had(50), 0) << "another period";
}

TEST_F(QuotaTableTest, NonsenseLeadsNowhere)
{
    auto &entry = of(50);
    AddBytes(*table, entry, 1000);
    EXPECT_EQ(ServedAs(*table, {5, 50}).cls, 77u);
    EXPECT_EQ(ServedAs(*table, {5, 50}).user, 51u);
    entry.next = 50;
    EXPECT_EQ(ServedAs(*table, {5, 50}).user, 50u) << "a circle";
    entry.next = 0;
    EXPECT_EQ(ServedAs(*table, {5, 50}).cls, 5u);
    entry.next = 51;
    entry.account = QuotaTable::Accounts + 1;
    EXPECT_EQ(ServedAs(*table, {5, 50}).cls, 5u);
    EXPECT_EQ(had(50), 0);
    EXPECT_FALSE(AddBytes(*table, entry, 5000));
    entry.length = 1 << 20;
    EXPECT_EQ(NameOf(entry).size(), QuotaEntry::LongestName);
    EXPECT_EQ(ServedAs(*table, {5, 50}).user, 50u);
    of(50); // which has a newer count
    EXPECT_EQ(had(50), 1000);
}

} // namespace
} // namespace msfrs::ledger
