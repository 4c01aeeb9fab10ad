// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A full buffer: whose packet is dropped, and the effect on shares.
#include "engine/push_out.h"

#include "support/audit.h"
#include "support/engine_driver.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>

namespace msfrs::test {
namespace {

constexpr int64_t Full = 1500;

Driver::Setup Buffer(const uint32_t limit, const int64_t packet = Full)
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    setup.limit = limit;
    setup.pushOut = packet;
    return setup;
}

/// Names of queued items, sorted.
std::vector<std::string> Waiting(const Driver &d)
{
    std::vector<std::string> names;
    for (const auto *t : d.queued())
        names.push_back(t->name);
    std::sort(names.begin(), names.end());
    return names;
}

using Names = std::vector<std::string>;

TEST(PushOut, TheLongestFlowLosesItsLast)
{
    Driver d(ParseVariant("fifo"), Buffer(4));
    auto &c = d.addClass("c", 1);
    for (const char *const name : {"a1", "a2", "a3"})
        d.arrive(c, "a", Full, name);
    d.arrive(c, "b", Full, "b1");
    EXPECT_TRUE(d.arrive(c, "c", Full, "c1"));
    EXPECT_EQ(Waiting(d), (Names{"a1", "a2", "b1", "c1"}));
    EXPECT_FALSE(d.arrive(c, "a", Full, "a4")) << "it would be the longest itself";
    EXPECT_FALSE(d.arrive(c, "b", Full, "b2")) << "of two that are as long, the arrival goes";
}

TEST(PushOut, OfALoneFlowTheTailDrops)
{
    Driver d(ParseVariant("fifo"), Buffer(3));
    auto &c = d.addClass("c", 1);
    for (int n = 0; n < 3; ++n)
        EXPECT_TRUE(d.arrive(c, "a", Full));
    EXPECT_FALSE(d.arrive(c, "a", Full));
    d.finish(*d.pick());
    EXPECT_TRUE(d.arrive(c, "a", Full));
}

TEST(PushOut, AClassHasRoomByItsWeight)
{
    Driver d(ParseVariant("fifo"), Buffer(70));
    auto &gold = d.addClass("gold", 4), &silver = d.addClass("silver", 2), &bronze = d.addClass("bronze", 1);
    for (int n = 0; n < 300; ++n) {
        d.arrive(bronze, std::to_string(n), Full); // a separate flow for each packet does not help
        d.arrive(gold, "g", Full);
        d.arrive(silver, "s", Full);
    }
    EXPECT_EQ(gold.backlog, 40u);
    EXPECT_EQ(silver.backlog, 20u);
    EXPECT_EQ(bronze.backlog, 10u);
    d.engine().setWeight(bronze, 16);
    for (int n = 0; n < 300; ++n)
        d.arrive(bronze, "b", Full);
    EXPECT_NEAR(bronze.backlog, 70 * 16 / 22, 1);
}

TEST(PushOut, SmallPacketsTakeAPlaceEach)
{
    Driver d(ParseVariant("fifo"), Buffer(100));
    auto &small = d.addClass("small", 1), &large = d.addClass("large", 1);
    for (int n = 0; n < 300; ++n) {
        d.arrive(small, "s", 60);
        d.arrive(large, "l", Full);
    }
    EXPECT_EQ(small.backlog, 50u);
    EXPECT_EQ(large.backlog, 50u) << "by bytes it would have 4 places";
}

TEST(PushOut, SegmentsThatTravelTogetherCountTheirBytes)
{
    Driver d(ParseVariant("fifo"), Buffer(100));
    auto &single = d.addClass("single", 1), &joined = d.addClass("joined", 1);
    for (int n = 0; n < 300; ++n) {
        d.arrive(joined, "j", 40 * Full);
        d.arrive(single, "s", Full);
    }
    EXPECT_GT(single.backlog, 95u);
    EXPECT_NEAR(static_cast<double>(joined.backlog_cost), static_cast<double>(single.backlog_cost), 40 * Full);
}

TEST(PushOut, WhatTheHostKeepsStays)
{
    Host host(1);
    Engine engine(ParseVariant("fifo").load(), {}, Engine::Cost::Exact, 1, 2, host.engine());
    engine.pushOut(Full);
    auto &c = *engine.addClass("c", 1);
    msfrs_item *item = nullptr;
    const auto offer = [&](const char *flow, const bool mayGo) {
        return engine.offer(engine.flow(c, flow), &Full, nullptr, 0, item, [&](msfrs_item &) { return mayGo; });
    };
    offer("a", false);
    offer("a", false);
    EXPECT_EQ(offer("b", false), Engine::Offer::Dropped);
    EXPECT_EQ(offer("b", true), Engine::Offer::Queued);
    EXPECT_EQ(engine.totals().dropped.items, 2u);
    EXPECT_EQ(AuditLaws(engine), "");
}

/// A link of 1 byte/us with a full buffer. \returns bytes of each class that were sent in 20 s
struct Sender {
    const char *cls;
    double weight;
    int64_t size;
    double load;   ///< of the link
    int flows = 1;
};
struct Outcome {
    std::map<std::string, double> sent;
    std::map<std::string, int> lost;
};

Outcome Overload(const std::string &scheduler, const uint32_t limit, const std::vector<Sender> &senders)
{
    Driver d(ParseVariant(scheduler), Buffer(limit));
    struct State {
        msfrs_class *cls;
        msfrs_time next = 0;
        int count = 0;
    };
    std::vector<State> states;
    for (const auto &s : senders)
        states.push_back({&d.addClass(s.cls, s.weight)});
    Outcome found;
    constexpr msfrs_time WarmUp = Second, End = 6 * Second;
    msfrs_time free = 0;
    std::map<const msfrs_class *, int> offered;
    std::map<const msfrs_class *, int64_t> before;
    while (d.clock.now() < End) {
        size_t first = 0;
        for (size_t n = 1; n < states.size(); ++n)
            first = states[n].next < states[first].next ? n : first;
        auto &state = states[first];
        if (state.next < free || d.queued().empty()) {
            d.clock.advance(std::max<msfrs_time>(state.next - d.clock.now(), 0));
            d.arrive(*state.cls, std::to_string(state.count++ % senders[first].flows), senders[first].size);
            state.next += static_cast<msfrs_time>(1000.0 * static_cast<double>(senders[first].size) /
                                                  senders[first].load);
            ++offered[state.cls];
        } else {
            d.clock.advance(std::max<msfrs_time>(free - d.clock.now(), 0));
            auto *const t = d.pickInTime();
            free = d.clock.now() + 1000 * t->size;
            if (d.clock.now() >= WarmUp)
                found.sent[t->cls->name] += static_cast<double>(t->size);
            d.finish(*t);
        }
    }
    for (const auto &s : states)
        found.lost[s.cls->name] = offered[s.cls] - static_cast<int>(s.cls->backlog) -
            static_cast<int>(d.bytesOf(*s.cls) / senders[static_cast<size_t>(&s - states.data())].size);
    return found;
}

class PushOutShares : public ::testing::TestWithParam<const char *> {};

TEST_P(PushOutShares, WeightsHoldWhateverIsSent)
{
    // Each class alone exceeds the link's rate; the one with least weight sends the most, in the most packets.
    const auto found = Overload(GetParam(), 200, {{"gold", 4, 1500, 1.1}, {"silver", 2, 1500, 1.5, 5},
                                                  {"bronze", 1, 300, 4, 50}});
    const double all = 5e6;
    EXPECT_NEAR(found.sent.at("gold") / all, 4.0 / 7, 0.02);
    EXPECT_NEAR(found.sent.at("silver") / all, 2.0 / 7, 0.02);
    EXPECT_NEAR(found.sent.at("bronze") / all, 1.0 / 7, 0.02);
}

TEST_P(PushOutShares, WhoSendsLessThanTheirShareLosesNothing)
{
    const auto found = Overload(GetParam(), 100, {{"ef", 32, 200, 0.15}, {"be", 1, 1500, 3, 40}, {"af", 2, 100, 2}});
    EXPECT_EQ(found.lost.at("ef"), 0);
    EXPECT_GT(found.lost.at("be"), 1000);
    EXPECT_GT(found.lost.at("af"), 1000);
}

INSTANTIATE_TEST_SUITE_P(Schedulers, PushOutShares, ::testing::ValuesIn(Built({"drr", "msfq", "sfq", "diffserv"})),
                         [](const auto &of) { return std::string(of.param); });

double LengthOf(const double items, const double bytes, const double weight, const int64_t packet)
{
    return std::max(bytes, items * static_cast<double>(packet)) / weight;
}

/// Every scheduler under random calls, with a buffer that is mostly full: the flow that loses a packet had the longest
/// queue, by linear search. Driver checks the laws.
class PushOutLife : public ::testing::TestWithParam<Variant> {
protected:
    static constexpr int64_t Packet = 1000;
    static constexpr size_t Limit = 12;

    /// Offers an item to the full buffer.
    static void offer(Driver &d, msfrs_class &c, const std::string &user, const int64_t size)
    {
        const auto &arriving = d.engine().flow(c, user);
        std::map<const msfrs_class *, double> classes;
        std::map<const NamedFlow *, std::pair<uint32_t, double>> flows; // backlog and length
        double most = 0;
        for (const auto *k : d.engine().classes()) {
            if (k->flags & MSFRS_INTERIOR)
                continue;
            const bool own = k == &c;
            classes[k] = LengthOf(k->backlog + own, static_cast<double>(k->backlog_cost + own * size), k->weight,
                                  Packet);
            most = std::max(most, classes[k]);
            d.engine().eachFlow(*k, [&](const NamedFlow &f) {
                const bool self = &f == &arriving;
                flows[&f] = {f.backlog, LengthOf(f.backlog + self, static_cast<double>(f.backlog_cost + self * size),
                                                 f.weight, Packet)};
            });
        }
        const bool admitted = d.arrive(c, user, size);
        EXPECT_EQ(d.queued().size(), Limit);
        const NamedFlow *loser = nullptr;
        for (const auto &[f, was] : flows) {
            if (f->backlog < was.first + (admitted && f == &arriving))
                loser = f;
        }
        ASSERT_EQ(admitted, loser != nullptr);
        loser = admitted ? loser : &arriving;
        EXPECT_EQ(classes[loser->cls], most) << "another class had more";
        for (const auto &[f, was] : flows)
            EXPECT_TRUE(f->cls != loser->cls || was.second <= flows[loser].second) << "another flow had more";
    }
};

TEST_P(PushOutLife, NobodyHadMoreThanWhoLoses)
{
    Driver d(GetParam(), Buffer(Limit, Packet));
    Random random(7);
    auto &campus = d.addClass("campus", 5, MSFRS_INTERIOR);
    std::vector<msfrs_class *> classes = {&d.addClass("a", 3), &d.addClass("b", 1), &d.addClass("c", 2, 0, &campus)};
    for (int step = 0; step < 3000 && !HasFailure(); ++step) {
        d.clock.advance(random.between(0, 2 * Ms));
        if (random.chance(0.3)) {
            d.pick();
        } else if (random.chance(0.2) && !d.served().empty()) {
            d.finish(*d.served().front());
        } else if (random.chance(0.02)) {
            d.engine().setWeight(*classes[random.below(3)], static_cast<double>(random.between(1, 9)));
        } else if (random.chance(0.02)) {
            d.engine().forgetIdleFlows(d.clock.now(), d.clock.now());
        } else if (random.chance(0.02) && classes[0]->backlog + classes[0]->in_service == 0) {
            d.engine().removeClass(*classes[0]);
            classes[0] = &d.addClass("a", 3);
        } else {
            auto &c = *classes[random.below(3)];
            const auto user = std::to_string(random.below(4));
            const auto size = random.between(40, 4000);
            if (d.queued().size() == Limit)
                offer(d, c, user, size);
            else
                EXPECT_TRUE(d.arrive(c, user, size));
        }
    }
    EXPECT_GT(d.victims(), 50u);
}

INSTANTIATE_TEST_SUITE_P(Schedulers, PushOutLife, ::testing::ValuesIn(AllVariants(MSFRS_SCHED)),
                         [](const auto &of) { return of.param.testName(); });

} // namespace
} // namespace msfrs::test
