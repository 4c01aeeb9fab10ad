// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The classifier against linear search: it finds the same rule for all rule sets.
#include "edge/classifier.h"

#include "edge/block.h"
#include "support/flow_rules.h"

#include <gtest/gtest.h>
#include <stdexcept>

namespace msfrs::test {
namespace {

using namespace edge;

void ExpectAsLinear(const std::vector<Match> &rules, const std::vector<FlowKey> &keys)
{
    const LinearSearch linear(rules);
    std::vector<uint32_t> wanted;
    for (const auto &k : keys)
        wanted.push_back(linear.find(k));
    const Classifier classifier(rules);
    std::vector<uint32_t> found(keys.size());
    classifier.find(keys.data(), keys.size(), found.data());
    for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(found[i], wanted[i]) << "packet " << i << " of a batch";
        ASSERT_EQ(Find(classifier, keys[i]), wanted[i]) << "packet " << i << " alone";
    }
}

FlowKey Key4(const uint64_t source, const uint64_t destination, const uint32_t from, const uint32_t to,
             const uint8_t protocol)
{
    return {{0, source}, {0, destination}, from, to, Family::V4, protocol};
}

TEST(Classifier, NoRulesMatchNothing)
{
    const Classifier none({});
    EXPECT_EQ(Find(none, Key4(1, 2, 3, 4, 6)), NoMatch);
}

TEST(Classifier, TheFirstOfSeveralRulesWins)
{
    Match any, host;
    host.family = Family::V4;
    host.source = {{0, 7}, {0, 7}};
    EXPECT_EQ(Find(Classifier({host, any}), Key4(7, 0, 0, 0, 0)), 0u);
    EXPECT_EQ(Find(Classifier({host, any}), Key4(8, 0, 0, 0, 0)), 1u);
    EXPECT_EQ(Find(Classifier({any, host}), Key4(7, 0, 0, 0, 0)), 0u);
}

TEST(Classifier, RangesAreClosedAndMayTouch)
{
    std::vector<Match> rules(5);
    rules[0].destinationPort = {10, 19};
    rules[1].destinationPort = {20, 20}; // a point, adjacent on both sides
    rules[2].destinationPort = {21, 30};
    rules[3].destinationPort = {0, 0};
    rules[4].destinationPort = {65535, 65535};
    const Classifier c(rules);
    const std::pair<uint32_t, uint32_t> wanted[] = {{0, 3}, {1, NoMatch}, {9, NoMatch}, {10, 0}, {19, 0}, {20, 1},
        {21, 2}, {30, 2}, {31, NoMatch}, {65534, NoMatch}, {65535, 4}, {NoPort, NoMatch}};
    for (const auto &[port, rule] : wanted)
        EXPECT_EQ(Find(c, Key4(0, 0, 0, port, 0)), rule) << port;
}

TEST(Classifier, EndsOfBothFamilies)
{
    std::vector<Match> rules(4);
    rules[0].family = rules[1].family = Family::V4;
    rules[2].family = rules[3].family = Family::V6;
    rules[0].source = {{0, 0}, {0, 0}};
    rules[1].source = {{0, LastAddress4}, {0, LastAddress4}};
    rules[2].source = {{0, UINT64_MAX}, {1, 0}}; // across the middle
    rules[3].source = {LastAddress, LastAddress};
    const Classifier c(rules);
    const auto of6 = [&](const Address a) { return Find(c, {a, {}, 0, 0, Family::V6, 0}); };
    EXPECT_EQ(Find(c, Key4(0, 9, 0, 0, 0)), 0u);
    EXPECT_EQ(Find(c, Key4(1, 9, 0, 0, 0)), NoMatch);
    EXPECT_EQ(Find(c, Key4(LastAddress4, 9, 0, 0, 0)), 1u);
    EXPECT_EQ(of6({0, 0}), NoMatch) << "no IPv4 address";
    EXPECT_EQ(of6({0, UINT64_MAX - 1}), NoMatch);
    EXPECT_EQ(of6({0, UINT64_MAX}), 2u);
    EXPECT_EQ(of6({1, 0}), 2u);
    EXPECT_EQ(of6({1, 1}), NoMatch);
    EXPECT_EQ(of6(LastAddress), 3u);
}

TEST(Classifier, ARuleThatNamesPortsDoesNotMatchWhatHasNone)
{
    std::vector<Match> rules(2);
    rules[0].sourcePort = {0, 65535};
    const Classifier c(rules);
    EXPECT_EQ(Find(c, Key4(0, 0, 0, NoPort, 17)), 0u);
    EXPECT_EQ(Find(c, Key4(0, 0, NoPort, NoPort, 1)), 1u);
}

TEST(Classifier, IsLinearSearchForOddRules)
{
    Random random(1);
    for (const size_t rules : {1, 2, 3, 7, 63, 64, 65, 200, 511, 512, 513, 1000}) {
        for (int round = 0; round < (rules < 100 ? 20 : 3); ++round) {
            SCOPED_TRACE(std::to_string(rules) + " rules, round " + std::to_string(round));
            const auto odd = OddRules(rules, random);
            ExpectAsLinear(odd, OddTraffic(odd, 400, random));
            ASSERT_FALSE(HasFatalFailure());
        }
    }
}

TEST(Classifier, IsLinearSearchForAccessLists)
{
    for (const auto family : {Family::V4, Family::V6}) {
        for (const size_t rules : {512, 4096}) {
            SCOPED_TRACE(std::to_string(rules) + " rules of IPv" + (family == Family::V4 ? "4" : "6"));
            const auto list = AccessList(rules, family, rules);
            const auto keys = Traffic(list, 3000, family, 2);
            ExpectAsLinear(list, keys);
            const LinearSearch linear(list);
            size_t matched = 0;
            for (const auto &k : keys)
                matched += linear.find(k) != NoMatch;
            EXPECT_GT(matched, keys.size() / 2) << "the traffic is for the rules";
        }
    }
}

TEST(Classifier, MoreRulesThanABlockHolds)
{
    // Both families share the rule numbers, so the last block of one family is not aligned with that of the other.
    const auto four = AccessList(2 * BlockRules + 100, Family::V4, 5), six = AccessList(BlockRules + 1, Family::V6, 6);
    auto rules = four;
    for (size_t r = 0; r < six.size(); ++r)
        rules.insert(rules.begin() + static_cast<std::ptrdiff_t>(2 * r), six[r]);
    Random random(8);
    auto keys = OddTraffic(rules, 500, random);
    for (const auto &some : {Traffic(four, 500, Family::V4, 7), Traffic(six, 500, Family::V6, 9)})
        keys.insert(keys.end(), some.begin(), some.end());
    for (size_t i = keys.size(); i > 1; --i)
        std::swap(keys[i - 1], keys[random.below(i)]);
    ExpectAsLinear(rules, keys);
}

TEST(Classifier, TooManyServicesToPair)
{
    // So many different port ranges that no two dimensions can be merged.
    Random random(3);
    const auto range = [&] {
        const auto a = static_cast<uint32_t>(random.below(65536)), b = static_cast<uint32_t>(random.below(65536));
        return Range<uint32_t>{std::min(a, b), std::max(a, b)};
    };
    for (const uint32_t protocols : {1, 2, 64}) { // pairs: both, none of source port, none
        SCOPED_TRACE(std::to_string(protocols) + " protocols");
        std::vector<Match> rules(1500);
        for (auto &m : rules) {
            m.sourcePort = protocols == 1 ? Range<uint32_t>{0, NoPort} : range();
            m.destinationPort = range();
            const auto p = static_cast<uint32_t>(random.below(protocols));
            m.protocol = {p, p};
        }
        std::vector<uint32_t> numbers(rules.size());
        for (uint32_t n = 0; n < numbers.size(); ++n)
            numbers[n] = n;
        const Block block(rules, numbers, Family::V4);
        EXPECT_EQ(block.axes.size(), protocols == 1 ? 3u : protocols == 2 ? 4u : 5u);
        ExpectAsLinear(rules, OddTraffic(rules, 2000, random));
        ASSERT_FALSE(HasFatalFailure());
    }
}

TEST(Classifier, WorstCaseOfMemory)
{
    // Every range begins and ends where no other does: the greatest possible number of intervals, vectors and lines.
    std::vector<Match> rules(BlockRules);
    std::vector<uint32_t> numbers(BlockRules);
    for (uint32_t r = 0; r < BlockRules; ++r) {
        auto &m = rules[r];
        numbers[r] = r;
        m.family = Family::V4;
        m.source = {{0, uint64_t(r) << 19}, {0, (uint64_t(r) << 19) + 1}};
        m.destination = {{0, uint64_t(2 * r) << 18}, {0, uint64_t(2 * r + 2001) << 18}};
        m.sourcePort = {4 * r, 4 * r + 1};
        m.destinationPort = {r + 1, 65535 - 2 * r};
    }
    const Block block(rules, numbers, Family::V4);
    ASSERT_EQ(block.axes.size(), 4u);
    for (const auto &axis : block.axes)
        EXPECT_LE(axis.bytes(), VectorSet::Most * 48 + (VectorSet::Most + 7) * 64);
    EXPECT_EQ(block.axes[1].size(), VectorSet::Most - 1) << "or this tests little";
    EXPECT_LE(block.bytes(), size_t(2 * 13 + 4) << 20);
    Random random(4);
    ExpectAsLinear(rules, OddTraffic(rules, 1000, random));
}

TEST(Classifier, RefusesRangesThatAreNone)
{
    const auto message = [](const Match &m) -> std::string {
        try {
            Classifier({Match(), m});
        } catch (const std::invalid_argument &e) {
            return e.what();
        }
        return "accepted";
    };
    Match m;
    m.sourcePort = {2, 1};
    EXPECT_EQ(message(m), "rule 1: a port range that is reversed or beyond 65536, which stands for no port");
    m = Match();
    m.protocol = {0, 256};
    EXPECT_EQ(message(m), "rule 1: a protocol range that is reversed or beyond 255");
    m = Match();
    m.source = {{0, 1}, {0, 2}};
    EXPECT_EQ(message(m), "rule 1: an address range of no family");
    m.family = Family::V4;
    EXPECT_EQ(message(m), "accepted");
    m.source.last = {1, 0};
    EXPECT_EQ(message(m), "rule 1: an address range beyond IPv4's");
    m.source = {{0, 2}, {0, 1}};
    EXPECT_EQ(message(m), "rule 1: an address range whose last is before its first");
}

} // namespace
} // namespace msfrs::test
