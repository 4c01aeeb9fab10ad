// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/requests.h"

#include "support/audit.h"

namespace msfrs::test {

void TestOwner::granted()
{
    EXPECT_FALSE(ended) << name << " was granted after its end";
    EXPECT_FALSE(served) << name << " was granted while it was served";
    EXPECT_FALSE(inReadMore) << name << " was granted from inside its own readMore()";
    served = true;
    ++grants;
    test_.granted_ += (test_.granted_.empty() ? "" : " ") + name;
    if (onGranted)
        onGranted();
}

void TestOwner::expired()
{
    EXPECT_FALSE(ended) << name;
    EXPECT_FALSE(served) << name << " expired while it was served";
    EXPECT_EQ(grants, 0) << name << " expired after it had been granted once";
    ++expiries;
    if (onExpired)
        onExpired();
    else
        test_.done(*this);
}

bool TestOwner::silent(msfrs_time)
{
    EXPECT_TRUE(served) << name << " was asked for silence while it was not served";
    if (isSilent) {
        resting = true;
        served = false;
    }
    return isSilent;
}

bool TestOwner::asked() const
{
    EXPECT_TRUE(served) << name << " was asked about its server while it was not served";
    return isAsked;
}

PathSample TestOwner::path(msfrs_time)
{
    EXPECT_TRUE(served) << name << " was asked about its path while it was not served";
    ++looks;
    return sees;
}

RequestTest::~RequestTest()
{
    if (!s)
        return;
    for (auto &o : owners)
        o.onGranted = o.onExpired = nullptr; // they may belong to a derived fixture that is destroyed already
    for (auto &o : owners) {
        if (o.request && !o.ended)
            done(o);
    }
    EXPECT_EQ(s->window().outstanding, 0);
}

void RequestTest::start(const uint32_t wplus)
{
    s = std::make_unique<RequestScheduler>(config, host.requests(), clock.now());
    if (wplus > 0)
        FixWindow(*s, wplus, clock.now());
    clock.advance(2);
}

TestOwner &RequestTest::hold(const uint32_t cls, const std::string &user, const std::string &name,
                             const msfrs_time since)
{
    auto &o = owners.emplace_back(*this, name);
    o.request = s->hold(o, cls, user, clock.now(), o.refusal, -1, since);
    EXPECT_EQ(o.request == nullptr, o.refusal != Refusal::None);
    o.ended = !o.request;
    return o;
}

TestOwner &RequestTest::adopt(const uint32_t cls, const std::string &user, const std::string &name)
{
    auto &o = owners.emplace_back(*this, name);
    o.request = s->adopt(o, cls, user, clock.now());
    EXPECT_EQ(o.grants, 0) << "adopt() is the grant";
    o.served = true;
    return o;
}

bool RequestTest::read(TestOwner &o, const int64_t bytes)
{
    s->charge(*o.request, bytes, clock.now());
    if (o.ended || !o.served)
        return false; // another owner was granted meanwhile, and has ended or read this one
    o.inReadMore = true;
    const bool more = s->readMore(*o.request, clock.now());
    o.inReadMore = false;
    if (!o.ended)
        o.served = more;
    return more;
}

void RequestTest::charge(TestOwner &o, const int64_t bytes) { s->charge(*o.request, bytes, clock.now()); }

void RequestTest::askedMore(TestOwner &owner)
{
    s->askedMore(*owner.request, clock.now());
    check();
}

bool RequestTest::again(TestOwner &o)
{
    o.resting = false;
    o.inReadMore = true; // granted directly, as in read()
    const bool now = s->again(*o.request, clock.now());
    o.inReadMore = false;
    o.served = now;
    if (now)
        granted_ += (granted_.empty() ? "" : " ") + o.name;
    return now;
}

void RequestTest::done(TestOwner &o)
{
    o.ended = true;
    o.served = false;
    s->done(o.request, clock.now());
}

void RequestTest::rest(TestOwner &o)
{
    o.isSilent = true;
    pass(50 * Ms);
    o.isSilent = false;
    EXPECT_FALSE(o.served);
}

void RequestTest::pass(const msfrs_time time)
{
    const auto end = clock.now() + time;
    for (auto next = s->tick(clock.now()); next <= end; next = s->tick(clock.now())) {
        ASSERT_GT(next, clock.now());
        clock.set(next);
    }
    clock.set(end);
    check();
}

ClassReport RequestTest::report(const std::string &cls)
{
    const auto all = s->classes(clock.now());
    return all.at(s->classIndex(cls));
}

std::string RequestTest::granted()
{
    check();
    return std::exchange(granted_, "");
}

void RequestTest::check()
{
    size_t served = 0, waiting = 0;
    for (const auto &o : owners) {
        served += o.served;
        waiting += o.request && !o.ended && !o.served && !o.resting && o.expiries == 0;
    }
    size_t inFlight = 0, queued = 0;
    for (const auto &c : s->classes(clock.now())) {
        inFlight += c.inFlight;
        queued += c.queued + c.paused;
    }
    EXPECT_EQ(inFlight, served);
    EXPECT_EQ(queued, waiting);
    EXPECT_EQ(s->window().here, served) << "W is the number of those served";
    EXPECT_EQ(AuditLaws(*s), "");
}

std::string RequestTest::refusal(const RequestConfig &c)
{
    try {
        RequestScheduler scheduler(c, host.requests(), 0);
    } catch (const ConfigError &error) {
        return error.what();
    }
    return "accepted";
}

} // namespace msfrs::test
