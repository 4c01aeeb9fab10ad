// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The cost of open, idle connections. A separate program, since it counts allocations.
#include "engine/request_scheduler.h"
#include "exchange/exchange.h"
#include "support/host.h"
#include "support/plugins.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>
#include <new>
#include <vector>

namespace {

size_t inUse = 0; ///< bytes of the heap, as malloc counts

void *Take(void *const memory)
{
    if (!memory)
        throw std::bad_alloc();
    inUse += malloc_usable_size(memory);
    return memory;
}

void GiveBack(void *const memory) noexcept
{
    inUse -= memory ? malloc_usable_size(memory) : 0;
    std::free(memory);
}

size_t RoundedUp(const size_t bytes, const std::align_val_t alignment)
{
    const auto to = static_cast<size_t>(alignment);
    return (bytes + to - 1) / to * to;
}

} // namespace

void *operator new(const size_t bytes) { return Take(std::malloc(bytes)); }
void *operator new(const size_t bytes, const std::align_val_t alignment)
{
    return Take(std::aligned_alloc(static_cast<size_t>(alignment), RoundedUp(bytes, alignment)));
}
void operator delete(void *const memory) noexcept { GiveBack(memory); }
void operator delete(void *const memory, size_t) noexcept { GiveBack(memory); }
void operator delete(void *const memory, std::align_val_t) noexcept { GiveBack(memory); }
void operator delete(void *const memory, size_t, std::align_val_t) noexcept { GiveBack(memory); }

namespace msfrs {
namespace {

using namespace test;

constexpr int Connections = 10'000, Users = 100;

struct Connection final : RequestOwner {
    void granted() override {}
    void expired() override {}
    bool silent(const msfrs_time now) override
    {
        ++asked;
        if (exchange.silentAt(0) > now)
            return false;
        exchange.end();
        return true;
    }

    Exchange exchange;
    Request *request = nullptr;
    int asked = 0; ///< number of calls of silent()
};

class IdleTest : public ::testing::Test {
protected:
    IdleTest()
    {
        RequestConfig config;
        config.rate = 1e9;
        config.pluginDir = PluginDir();
        config.classes = {{"gold", 2}, {"bronze", 1}};
        config.defaultClass = 1;
        s = std::make_unique<RequestScheduler>(config, host.requests(), now);
    }

    static std::string user(const int n) { return "2001:db8:1234:5678:9abc:def0:1234:" + std::to_string(n % Users); }

    /// Advances the time, with ticks when the scheduler asks for them. \returns the number of ticks
    int pass(const msfrs_time time)
    {
        int ticks = 0;
        for (const auto end = now + time; now < end; ++ticks) {
            const auto next = s->tick(now);
            now = std::min(end, next);
        }
        return ticks;
    }

    /// A request and its response, after which the connection is idle.
    std::unique_ptr<Connection> open(const int n)
    {
        auto c = std::make_unique<Connection>();
        Refusal why;
        c->exchange.begin(now);
        c->request = s->hold(*c, static_cast<uint32_t>(n % 2), user(n), now, why);
        c->exchange.serverSays(nullptr, 1000, now);
        s->charge(*c->request, 1000, now);
        return c;
    }

    Host host;
    msfrs_time now = 1'000'000 * Ms;
    std::unique_ptr<RequestScheduler> s;
};

TEST_F(IdleTest, TenThousandHoldNoPlaceAndLittleMemory)
{
    std::vector<std::unique_ptr<Connection>> open;
    open.reserve(Connections);
    for (int n = 0; n < 2 * Users; ++n)
        open.push_back(this->open(n));
    pass(1000 * Ms);
    const auto before = inUse;
    for (int n = 2 * Users; n < Connections; ++n) {
        open.push_back(this->open(n));
        if (n % 10 == 0)
            pass(300 * Ms); // so that few are under way at once
    }
    pass(1000 * Ms);
    EXPECT_EQ(s->window().outstanding, 0);
    const auto each = static_cast<double>(inUse - before) / (Connections - 2 * Users);
    RecordProperty("bytes", std::to_string(each));
    EXPECT_LT(each, 1024) << "the rest of 4 KB is for what a host has of its own";
    for (const auto &c : open)
        s->done(c->request, now);
}

TEST_F(IdleTest, NobodyAsksThemAnything)
{
    std::vector<std::unique_ptr<Connection>> open;
    for (int n = 0; n < 1000; ++n)
        open.push_back(this->open(n));
    pass(3000 * Ms);
    EXPECT_EQ(s->window().outstanding, 0);
    EXPECT_EQ(s->wakeAt(), 0) << "nobody is in service";
    for (const auto &c : open)
        c->asked = 0;
    EXPECT_LE(pass(60'000 * Ms), 61) << "the window's intervals, and nothing else";
    int asked = 0;
    for (const auto &c : open) {
        asked += c->asked;
        s->done(c->request, now);
    }
    EXPECT_EQ(asked, 0);
}

} // namespace
} // namespace msfrs
