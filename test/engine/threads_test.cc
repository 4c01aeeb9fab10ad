// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Engines share no state: several of them, each in a thread, behave like one alone. The thread sanitizer detects
/// globals of a plugin or of the library.
#include "support/engine_driver.h"

#include <gtest/gtest.h>
#include <thread>

namespace msfrs::test {
namespace {

/// The order in which a scheduler, behind an AQM, releases random arrivals of a seed; classes, flows and items come and
/// go.
std::string OrderOf(const Variant &sched, const Variant &aqm, const uint64_t seed)
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    setup.aqm = aqm;
    setup.limit = 100;
    setup.seed = seed;
    Driver d(sched, setup);
    Random random(seed);
    std::string order;
    msfrs_class *classes[] = {&d.addClass("a", 3), &d.addClass("b", 1)};
    for (int step = 0; step < 300; ++step) {
        d.clock.advance(random.between(0, 2 * Ms));
        if (random.chance(0.6)) {
            d.arrive(*classes[random.below(2)], std::to_string(random.below(20)), random.between(1, 3000));
        } else if (auto *const t = d.pick()) {
            order += t->name + " ";
            d.finish(*t);
        }
        if (step % 100 == 99) {
            d.drain();
            EXPECT_TRUE(d.engine().removeClass(*classes[1]));
            classes[1] = &d.addClass("b", 2);
        }
    }
    return order;
}

TEST(Threads, EnginesDoNotMeet)
{
    const auto aqms = AllVariants(MSFRS_AQM);
    ASSERT_FALSE(aqms.empty());
    const auto scheds = AllVariants(MSFRS_SCHED);
    const auto all = [&] { // every scheduler with one AQM, every AQM with one scheduler
        std::vector<std::string> orders;
        for (size_t n = 0; n < std::max(scheds.size(), aqms.size()); ++n)
            orders.push_back(OrderOf(scheds[n % scheds.size()], aqms[n % aqms.size()], n));
        return orders;
    };
    // The sanitizer does not see the dynamic linker's locks: nothing may be unloaded meanwhile.
    std::vector<Engine::Part> loaded;
    for (const auto &variants : {scheds, aqms}) {
        for (const auto &variant : variants)
            loaded.push_back(variant.load());
    }
    const auto alone = all();
    constexpr size_t Threads = 4;
    std::vector<std::vector<std::string>> orders(Threads);
    std::vector<std::thread> threads;
    for (auto &mine : orders)
        threads.emplace_back([&mine, &all] { mine = all(); });
    for (auto &thread : threads)
        thread.join();
    for (const auto &mine : orders)
        EXPECT_EQ(mine, alone);
}

} // namespace
} // namespace msfrs::test
