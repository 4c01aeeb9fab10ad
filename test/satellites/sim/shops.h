// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Shops for tests, and measurements in them.
#pragma once

#include "satellites/sim/shop/shop.h"
#include "support/backlog.h"
#include "support/engine_driver.h"
#include "support/plugins.h"

#include <gtest/gtest.h>
#include <numeric>

namespace msfrs::test {

/// A byte takes one tick on this link, so that needs on it are as exact as on other resources.
constexpr int64_t ByteATick = 8 * TicksPerSecond;

inline sim::Shop NewShop(const std::string &scheduler, const uint32_t resources, const int64_t rate = ByteATick)
{
    const auto variant = ParseVariant(scheduler);
    return {variant.load().plugin, variant.settings, resources, rate};
}

/// The same time on each of m resources.
inline Times Uniform(const uint32_t m, const Ticks time)
{
    Times t{};
    std::fill_n(t.on, m, time);
    return t;
}

/// The need of a packet with these times, at ByteATick.
inline sim::Need NeedOf(const Times &times, const uint32_t m)
{
    sim::Need need{};
    need[0] = times.on[m - 1];
    for (uint32_t j = 1; j < m; ++j)
        need[j] = times.on[j - 1];
    return need;
}

/// Random times up to `most` on each of m resources; occasionally 0.
inline Times RandomTimes(Random &random, const uint32_t m, const Ticks most)
{
    Times times{};
    for (uint32_t j = 0; j < m; ++j)
        times.on[j] = random.chance(0.1) ? 0 : random.between(1, most);
    return times;
}

/// The message with which settings are refused.
inline std::string WhatIsSaidTo(const std::string &scheduler)
{
    try {
        ParseVariant(scheduler).load();
    } catch (const ConfigError &e) {
        return e.what();
    }
    return "";
}

/// Of two flows one is far ahead because the host took its packets out of turn. A third becomes active.
/// \returns how many of the next 40 packets are the third's
inline int PicksOfOneThatWakes(const std::string &scheduler)
{
    Host host;
    Engine engine(ParseVariant(scheduler).load(), {}, Engine::Cost::Exact, 1, 0, host.engine());
    auto *const c = engine.addClass("c", 1);
    auto &ahead = engine.flow(*c, "ahead"), &behind = engine.flow(*c, "behind"), &woken = engine.flow(*c, "woken");
    const int64_t est[MSFRS_RESOURCES] = {1000};
    const auto arrive = [&](msfrs_flow &f) {
        msfrs_item *item;
        engine.offer(f, est, nullptr, 0, item);
    };
    for (int n = 0; n < 60; ++n) {
        arrive(ahead);
        arrive(behind);
    }
    for (int n = 0; n < 50; ++n) {
        auto *const item = ahead.head;
        engine.pickThis(*item, 0);
        engine.done(*item, 0);
    }
    int picks = 0;
    for (int n = 0; n < 40; ++n) {
        arrive(woken);
        msfrs_time wake;
        auto *const item = engine.pick(0, MSFRS_PICK_ANY, wake);
        picks += item->flow == &woken;
        engine.done(*item, 0);
    }
    return picks;
}

/// Whether a flow that is ahead is remembered while it is idle, until the others have caught up.
inline void RemembersWhoIsAhead(const std::string &scheduler)
{
    Driver::Setup setup;
    setup.cost = Engine::Cost::Exact;
    Driver d(ParseVariant(scheduler), setup);
    auto &c = d.addClass("c", 1);
    const auto serve = [&](const char *const flow, const int packets) {
        for (int n = 0; n < packets; ++n)
            d.arrive(c, flow, 1000);
        d.drain();
        d.engine().forgetIdleFlows(Second, 0);
    };
    const auto known = [&](const std::string &name) {
        bool found = false;
        d.engine().eachFlow(c, [&](const NamedFlow &f) { found = found || f.name() == name; });
        return found;
    };
    d.arrive(c, "other", 1000);
    d.arrive(c, "other", 1000);
    d.engine().chargeFlow(d.engine().flow(c, "ahead"), 3000, 0);
    serve("other", 0);
    EXPECT_TRUE(known("ahead"));
    serve("other", 10);
    EXPECT_FALSE(known("ahead"));
}

/// A flow that has the box for itself: the departures of its packets, resource by resource, not by the formula.
class Alone {
public:
    explicit Alone(const uint32_t m): m_(m) {}
    /// \returns the packet's active time: by how much it leaves later than the previous one
    Ticks add(const Times &times)
    {
        Ticks start = 0, reached = 0;
        for (uint32_t j = 0; j < m_; ++j) {
            start = std::max(start, free_[j] - reached);
            reached += times.on[j];
        }
        const auto before = free_[m_ - 1];
        for (uint32_t j = 0; j < m_; ++j)
            free_[j] = start += times.on[j];
        return free_[m_ - 1] - before;
    }

private:
    uint32_t m_;
    Ticks free_[MSFRS_RESOURCES] = {};
};

} // namespace msfrs::test
