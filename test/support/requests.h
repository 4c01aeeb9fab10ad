// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Request owners controlled by a test, and the fixture that holds them.
#pragma once

#include "engine/request_scheduler.h"
#include "support/host.h"
#include "support/link_sim.h"
#include "support/plugins.h"

#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace msfrs::test {

class RequestTest;

class TestOwner final : public RequestOwner {
public:
    TestOwner(RequestTest &test, std::string n): name(std::move(n)), test_(test) {}
    void granted() override;
    void expired() override;
    bool silent(msfrs_time now) override;
    bool asked() const override;
    PathSample path(msfrs_time now) override;
    std::string host() const override { return "host of " + name; }
    uint64_t id() const override { return 7; }

    std::string name;
    Request *request = nullptr;
    bool served = false, resting = false, ended = false;
    bool isSilent = false;   ///< result of silent()
    bool isAsked = false;    ///< result of asked()
    PathSample sees;         ///< result of path()
    int grants = 0, expiries = 0, looks = 0;
    Refusal refusal = Refusal::None;
    /// Called by granted() and expired(); without onExpired, expired() calls done().
    std::function<void()> onGranted, onExpired;
    bool inReadMore = false; ///< granted() must not be called meanwhile

private:
    RequestTest &test_;
};

/// Two classes 2:1, quanta of 1000 bytes, no reserve, no lead, lag or service out of turn; start() sets W+.
class RequestTest : public ::testing::Test {
protected:
    RequestTest()
    {
        config.rate = 8e6;
        config.pluginDir = PluginDir();
        config.classes = {{"gold", 2}, {"bronze", 1}};
        config.defaultClass = 1;
        config.quantum = 1000;
        config.window.law = WindowLaw::Paper; // so that the number of grants fills the window
        config.window.reserve = 0;
        config.arbiter = {"msf", {{"ahead", "0"}, {"lag", "0"}, {"favour", "0"}}};
        config.maxWait = 60 * Second;
    }
    ~RequestTest() override;

    /// \param wplus constant W+; 0: set by the rate controller, from 1
    void start(uint32_t wplus = 1);
    TestOwner &hold(uint32_t cls, const std::string &user, const std::string &name, msfrs_time since = 0);
    TestOwner &adopt(uint32_t cls, const std::string &user, const std::string &name);
    /// Bytes arrive; \returns whether the owner may continue to read
    bool read(TestOwner &, int64_t bytes);
    void charge(TestOwner &, int64_t bytes);
    /// A new exchange; \returns whether it is granted at once.
    bool again(TestOwner &);
    void askedMore(TestOwner &);
    void done(TestOwner &);
    /// Its server falls silent, and the scheduler notices: the request becomes idle.
    void rest(TestOwner &);
    /// Advances the time, with ticks when the scheduler asks for them.
    void pass(msfrs_time time);
    ClassReport report(const std::string &cls);
    /// Names in the order of their grants since the previous call.
    std::string granted();
    /// Compares the scheduler's counts with the owners' state. Every call above does so.
    void check();
    std::string refusal(const RequestConfig &);

    RequestConfig config;
    Host host;
    SimClock clock{1000 * Second};
    std::unique_ptr<RequestScheduler> s;
    std::deque<TestOwner> owners;

private:
    friend class TestOwner;
    std::string granted_;
};

} // namespace msfrs::test
