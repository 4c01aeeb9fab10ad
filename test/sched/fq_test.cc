// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// fq against RFC 8290: which flows are new, and the order of its two lists. Shares of classes, debts and items of any
/// size are tested beside those of drr (turns_test.cc).
#include "support/engine_driver.h"

#include <gtest/gtest.h>
#include <list>

namespace msfrs::test {
namespace {

constexpr int64_t Quantum = 1514;

class Fq : public ::testing::Test {
protected:
    Fq(): d(ParseVariant("fq"), [] {
        Driver::Setup setup;
        setup.cost = Engine::Cost::Exact;
        return setup;
    }()), c(d.addClass("c", 1)) {}

    void arrive(const std::string &flow, const int packets = 1)
    {
        for (int n = 0; n < packets; ++n)
            d.arrive(c, flow, Quantum, flow);
    }
    /// Names of the flows of the next n packets.
    std::string serve(const int n)
    {
        std::string flows;
        for (int k = 0; k < n; ++k) {
            auto *const t = d.pick();
            flows += t->name;
            d.finish(*t);
        }
        return flows;
    }

    Driver d;
    msfrs_class &c;
};

TEST_F(Fq, AFlowThatHasJustBegunGoesFirst)
{
    arrive("a", 9);
    arrive("b", 9);
    EXPECT_EQ(serve(5), "ababa");
    arrive("n");
    EXPECT_EQ(serve(3), "nba");
}

TEST_F(Fq, WhoSendsOneAtATimeIsNotNewAgainWhileOthersWait)
{
    arrive("a", 40);
    arrive("b", 40);
    serve(5);
    std::string order;
    for (int n = 0; n < 8; ++n) {
        arrive("n");
        while (order.empty() || order.back() != 'n')
            order += serve(1);
        order += '.';
    }
    EXPECT_EQ(order.substr(0, 2), "n.");
    EXPECT_EQ(order.find(".n"), std::string::npos) << order;
}

TEST_F(Fq, WhoWasIdleForARoundIsNewAgain)
{
    arrive("a", 40);
    arrive("b", 40);
    serve(5);
    for (int n = 0; n < 4; ++n) {
        arrive("n");
        EXPECT_EQ(serve(1), "n");
        serve(8); // it has left both lists
    }
}

TEST_F(Fq, AFlowThatIsForgottenInEitherListLeavesTheOthersInTheirOrder)
{
    arrive("a", 9);
    arrive("n");
    EXPECT_EQ(serve(2), "an"); // n is still in a list
    d.clock.advance(100);
    d.engine().forgetIdleFlows(d.clock.now(), 0);
    EXPECT_FALSE(d.engine().knownFlow(c, "n"));
    arrive("b", 3);
    EXPECT_EQ(serve(6), "bababa");
}

/// The two lists of the RFC's section 4.2, for one class.
class Lists {
public:
    void arrive(const std::string &flow, const int64_t size)
    {
        auto &f = flows_[flow];
        f.items.push_back(size);
        if (f.where)
            return;
        f.credit = Quantum;
        f.where = &new_;
        new_.push_back(flow);
    }
    std::string next()
    {
        for (;;) {
            auto &list = new_.empty() ? old_ : new_;
            const auto name = list.front();
            auto &f = flows_[name];
            const bool spent = f.credit <= 0;
            if (!spent && !f.items.empty()) {
                f.credit -= f.items.front();
                f.items.pop_front();
                return name;
            }
            f.credit += spent ? Quantum : 0;
            list.pop_front();
            f.where = spent || &list == &new_ ? &old_ : nullptr;
            if (f.where)
                old_.push_back(name);
        }
    }

private:
    struct Flow {
        std::list<int64_t> items;
        int64_t credit = 0;
        std::list<std::string> *where = nullptr;
    };
    std::map<std::string, Flow> flows_;
    std::list<std::string> new_, old_;
};

TEST(FqLists, ServesInTheOrderOfTheRfc)
{
    for (uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
        Random random(seed);
        Driver::Setup setup;
        setup.cost = Engine::Cost::Exact;
        Driver d(ParseVariant("fq"), setup);
        auto &c = d.addClass("c", 1);
        Lists wanted;
        const auto flows = 2 + random.below(8);
        for (int step = 0; step < 2000 && !HasFailure(); ++step) {
            if (random.chance(0.49)) {
                const auto flow = std::to_string(random.below(flows));
                const auto size = random.between(1, random.chance(0.1) ? 9000 : Quantum);
                wanted.arrive(flow, size);
                d.arrive(c, flow, size, flow);
            } else if (!d.queued().empty()) {
                auto *const t = d.pick();
                EXPECT_EQ(t->name, wanted.next()) << "seed " << seed << ", step " << step;
                d.finish(*t);
            }
        }
    }
}

} // namespace
} // namespace msfrs::test
