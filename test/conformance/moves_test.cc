// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A scheduler that saves its state continues in another instance as if it had not moved. Of two instances with the
/// same calls one moves now and then; their picks are identical.
#include "support/engine_driver.h"

#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

/// Every plugin of the build that has state to keep, with modes that are not CHOICE parameters.
std::vector<Variant> Keepers()
{
    auto all = AllVariants(MSFRS_SCHED);
    for (const char *const text : {"msf favour=2", "msf lag=0 ahead=0", "msf lead=0 debt=1000",
                                   "msf lead=4000 lead_time=2 lead_floor=0", "drr quantum=100", "fq quantum=100"})
        all.push_back(ParseVariant(text));
    all.erase(std::remove_if(all.begin(), all.end(), [](const Variant &v) { return !v.load().plugin->ops().keeps; }),
              all.end());
    return all;
}

class Keeper : public ::testing::TestWithParam<Variant> {};

/// The host's next call, for either instance.
struct Step {
    uint64_t what, which;
    std::string cls, user;
    int64_t size;

    explicit Step(Random &random):
        what(random.below(12)), which(random.bits()), cls("c" + std::to_string(random.below(3))),
        user(std::to_string(random.below(4))), size(random.chance(0.1) ? random.between(0, 1) : random.between(1, 3000))
    {}

    /// \returns the scheduler's pick, if it was called for one
    std::string on(Driver &d, const bool measured) const
    {
        const auto any = [&](const std::vector<Tracked *> &list) -> Tracked & { return *list[which % list.size()]; };
        const auto choose = [&](const msfrs_pick mode) {
            const auto *const t = d.pick(mode);
            return t ? t->name : std::string("-");
        };
        auto &c = d.classOf(cls);
        switch (what) {
        case 0: case 1: case 2: case 3: d.arrive(c, user, size); return {};
        case 4: case 5: return choose(MSFRS_PICK_ANY);
        case 6: return choose(MSFRS_PICK_FRESH);
        case 7:
            if (!d.served().empty())
                d.finish(any(d.served()));
            return {};
        case 8:
            if (!d.served().empty()) {
                auto &t = any(d.served());
                d.charge(t, std::min(size, std::max<int64_t>(t.size - t.charged, 0)));
                if (which % 3)
                    d.requeue(t);
            }
            return {};
        case 9:
            if (!d.queued().empty())
                d.remove(any(d.queued()));
            return {};
        case 10:
            if (measured && !d.served().empty())
                d.expect(any(d.served()), which % 4 ? size : MSFRS_UNKNOWN);
            return {};
        default:
            if (which % 2)
                d.engine().setWeight(c, static_cast<double>(1 + which % 5));
            else
                d.engine().chargeFlow(d.engine().flow(c, which % 4 ? user : "excess"), size, d.clock.now());
            return {};
        }
    }
};

TEST_P(Keeper, GoesOnInAnotherInstanceAsIfItHadNotMoved)
{
    for (const bool measured : {false, true}) {
        for (uint64_t seed = 1; seed <= 8; ++seed) {
            SCOPED_TRACE((measured ? "measured, seed " : "exact, seed ") + std::to_string(seed));
            Driver::Setup setup;
            setup.cost = measured ? Engine::Cost::Measured : Engine::Cost::Exact;
            setup.estimate = [](int64_t) { return int64_t(700); };
            Driver stays(GetParam(), setup), moves(GetParam(), setup);
            for (auto *const d : {&stays, &moves}) {
                d->clock.set(1000 * Second);
                for (int n = 0; n < 3; ++n)
                    d->addClass("c" + std::to_string(n), n + 1);
            }
            Random random(seed);
            uint64_t picks = 0;
            for (int step = 0; step < 800; ++step) {
                const auto time = random.chance(0.02) ? random.between(0, 40 * Second) : random.between(0, 20 * Ms);
                stays.clock.advance(time);
                moves.clock.advance(time);
                if (random.chance(0.05))
                    moves.migrate();
                const Step next(random);
                const auto chosen = next.on(stays, measured);
                picks += !chosen.empty() && chosen != "-";
                ASSERT_EQ(next.on(moves, measured), chosen) << "step " << step;
                for (const auto *const c : stays.engine().classes()) {
                    const auto wanted = stays.engine().gauges(c);
                    const auto found = moves.engine().gauges(&moves.classOf(c->name));
                    for (size_t g = 0; g < wanted.size(); ++g)
                        ASSERT_NEAR(found[g], wanted[g], 1e-6) << "step " << step << ", gauge " << g << ", " << c->name;
                }
            }
            EXPECT_GT(picks, 50u) << "else nothing was compared";
            EXPECT_EQ(moves.host.logged(0), "");
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Build, Keeper, ::testing::ValuesIn(Keepers()),
                         [](const ::testing::TestParamInfo<Variant> &test) {
                             return test.param.testName() + "_" + std::to_string(test.index);
                         });

} // namespace
} // namespace msfrs::test
