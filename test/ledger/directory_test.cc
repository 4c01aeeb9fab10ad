// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The directory: classes published by Squid, queries for addresses and their answers.
#include "ledger/directory.h"
#include "support/host.h"

#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>

namespace msfrs::ledger {
namespace {

using test::Second;

class DirectoryTest : public ::testing::Test {
protected:
    /// Squid's turn: it answers by address alone. \returns the number of queries
    size_t answer()
    {
        size_t count = 0;
        answers.answer(now, [&](const IpBits &address) {
            ++count;
            return byAddress[address.low];
        });
        return count;
    }
    /// "CLASS/USER" of an address, or "unknown".
    std::string whose(const IpBits &address)
    {
        const auto owner = OwnerOf(directory, address, now);
        return owner ? std::to_string(owner->cls) + "/" + std::to_string(owner->user) : "unknown";
    }

    std::unique_ptr<Segment> segment = std::make_unique<Segment>();
    Directory &directory = segment->directory;
    Answers answers{directory};
    std::map<uint64_t, Owner> byAddress;
    msfrs_time now = 5 * Second; ///< a machine that has just booted
    const IpBits first = IpBits4(0x0a000001), second{0x20010db8ull << 32, 1};
};

TEST_F(DirectoryTest, AnswersComeOnceTheyWereAskedFor)
{
    byAddress[first.low] = {10, 11};
    byAddress[second.low] = {20, 21};
    EXPECT_EQ(answer(), 0u);
    EXPECT_EQ(whose(first), "unknown");
    EXPECT_EQ(whose(first), "unknown");
    EXPECT_EQ(whose(second), "unknown");
    EXPECT_EQ(answer(), 2u) << "each is asked for once";
    EXPECT_EQ(whose(first), "10/11");
    EXPECT_EQ(whose(second), "20/21");
    EXPECT_EQ(answer(), 0u);
}

TEST_F(DirectoryTest, AnUnansweredQuestionIsRepeated)
{
    byAddress[first.low] = {10, 11};
    EXPECT_EQ(answer(), 0u);
    whose(first);
    directory.asked = 0; // as if two parties had asked at once, and one query was lost
    EXPECT_EQ(answer(), 0u);
    EXPECT_EQ(whose(first), "unknown");
    EXPECT_EQ(answer(), 0u) << "not with each packet";
    now += AskSoon;
    whose(first);
    EXPECT_EQ(answer(), 1u);
    EXPECT_EQ(whose(first), "10/11");
}

TEST_F(DirectoryTest, ARequestSaysMoreThanAnAddress)
{
    byAddress[first.low] = {10, 11};
    Requested(directory, first, {30, 31}, now);
    EXPECT_EQ(whose(first), "unknown") << "no party has asked, and the table is for those that have";
    answer();
    EXPECT_EQ(whose(first), "10/11");
    Requested(directory, first, {30, 31}, now);
    EXPECT_EQ(whose(first), "30/31") << "at once";
    now += AskAgain + SeenEvery;
    whose(first);
    EXPECT_EQ(answer(), 0u) << "what a request said stays";
    EXPECT_EQ(whose(first), "30/31");
    now += ForgetAddress;
    whose(first);
    EXPECT_EQ(answer(), 1u);
    EXPECT_EQ(whose(first), "10/11");
}

TEST_F(DirectoryTest, AnAnswerIsAskedForAgainAfterAWhile)
{
    byAddress[first.low] = {10, 11};
    whose(first);
    answer();
    byAddress[first.low] = {20, 11};
    now += AskAgain - Second;
    whose(first);
    EXPECT_EQ(answer(), 0u);
    now += SeenEvery;
    EXPECT_EQ(whose(first), "10/11");
    EXPECT_EQ(answer(), 1u);
    EXPECT_EQ(whose(first), "20/11");
}

TEST_F(DirectoryTest, OfAnotherConfigurationNothingIsRemembered)
{
    byAddress[first.low] = {10, 11};
    whose(first);
    answer();
    Requested(directory, first, {30, 31}, now);
    answers.forget();
    EXPECT_EQ(answer(), 1u);
    EXPECT_EQ(whose(first), "10/11");
    EXPECT_EQ(answer(), 0u);
}

TEST_F(DirectoryTest, MoreQuestionsThanTheRingHasAreAllAnswered)
{
    const uint32_t count = 3 * Directory::Questions;
    for (uint32_t n = 1; n <= count; ++n) {
        byAddress[IpBits4(n).low] = {1 + n, 2 + n};
        whose(IpBits4(n));
    }
    EXPECT_GE(answer(), count);
    for (uint32_t n = 1; n <= count; ++n)
        ASSERT_EQ(whose(IpBits4(n)), std::to_string(1 + n) + "/" + std::to_string(2 + n));
}

TEST_F(DirectoryTest, EntriesWithoutTrafficGoToOthersAndTheTableMayBeFull)
{
    for (auto &entry : directory.addresses) {
        entry.key = 7;
        entry.seen = static_cast<uint64_t>(now);
    }
    EXPECT_EQ(whose(first), "unknown");
    EXPECT_EQ(FindAddress(directory, first), NoEntry);
    EXPECT_EQ(directory.asked, 0u);
    now += ForgetAddress;
    whose(first);
    EXPECT_NE(FindAddress(directory, first), NoEntry);
    for (auto &entry : directory.addresses)
        entry.key = BusyAddress;
    EXPECT_EQ(whose(second), "unknown");
}

TEST_F(DirectoryTest, ClassesAreToldWhole)
{
    EXPECT_FALSE(ReadClasses(directory));
    const std::string longest(32, 'x');
    TellClasses(directory, {{"gold", 4}, {longest, 0.5}}, 1);
    auto read = ReadClasses(directory);
    ASSERT_TRUE(read);
    ASSERT_EQ(read->classes.size(), 2u);
    EXPECT_EQ(read->classes[0].name, "gold");
    EXPECT_EQ(read->classes[0].weight, 4);
    EXPECT_EQ(read->classes[1].name, longest);
    EXPECT_EQ(read->other, 1u);
    const auto before = read->revision;
    TellClasses(directory, {{"all", 1}}, 0);
    read = ReadClasses(directory);
    ASSERT_TRUE(read);
    EXPECT_NE(read->revision, before);
    EXPECT_EQ(read->classes.size(), 1u);
}

TEST_F(DirectoryTest, NonsenseIsNoListOfClasses)
{
    const auto broken = [&](Word &field, const uint64_t value) {
        TellClasses(directory, {{"gold", 4}, {"silver", 2}}, 0);
        EXPECT_TRUE(ReadClasses(directory));
        const auto was = field.exchange(value);
        const bool refused = !ReadClasses(directory);
        field = was;
        return refused;
    };
    EXPECT_TRUE(broken(directory.revision, 7)) << "somebody writes";
    EXPECT_TRUE(broken(directory.count, 0));
    EXPECT_TRUE(broken(directory.count, Directory::Classes + 1));
    EXPECT_TRUE(broken(directory.other, 1));
    EXPECT_TRUE(broken(directory.classes[1].key, 1));
    EXPECT_TRUE(broken(directory.classes[1].name[0], 1)) << "not the name that the key is of";
    for (const double weight : {0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_TRUE(broken(directory.classes[1].weight, Bits(weight)));
}

} // namespace
} // namespace msfrs::ledger
