// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The papers' bounds, checked exactly, in whole numbers: MSFQ's on fairness (6) and, over one to three links, on delay
/// (5); DRR's on fairness. Each at both levels: flows of one class, and classes of one flow.
///
/// (5) as printed does not hold for v = min S: a waiting flow with the least S holds v back, by up to its l / r, and
/// flows that become active meanwhile go before one whose tags are ahead of v. What holds here is (5) plus that much
/// for each link.
#include "sched/packet_net.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr int64_t Common = 720720; ///< a multiple of all rates 1..16, so that quotients by a rate are whole numbers

struct Case {
    const char *scheduler;
    bool classes; ///< each flow is in a class of its own
    uint64_t seed;
};

void PrintTo(const Case &c, std::ostream *const out)
{
    *out << c.scheduler << (c.classes ? ", classes, " : ", flows, ") << c.seed;
}

std::vector<Case> Cases(const char *const scheduler, const uint64_t seeds)
{
    std::vector<Case> all;
    for (uint64_t seed = 1; IsBuilt(scheduler) && seed <= seeds; ++seed) {
        all.push_back({scheduler, false, seed});
        all.push_back({scheduler, true, seed});
    }
    return all;
}

/// Two flows are compared while both are backlogged; others come and go. \returns the greatest difference of their
/// service over any interval, in bytes / rate * Common, and its upper limit as `bound`
struct Followed {
    int64_t greatest = 0, bound = 0;
    int served = 0;
};

/// \param always both always have packets queued: for DRR a flow whose last packet is in service is idle
template <class Bound>
Followed FollowTwo(const Case &c, const bool always, const Bound &bound)
{
    Random random(c.seed);
    const auto count = static_cast<size_t>(random.between(2, 6));
    std::vector<PacketFlow> flows(count);
    std::vector<int64_t> longest(count);
    for (size_t n = 0; n < count; ++n) {
        flows[n].rate = random.between(1, 16);
        flows[n].ownClass = c.classes;
        longest[n] = random.between(1, 1500);
    }
    PacketNet net(c.scheduler, {1}, flows);
    Followed result;
    int64_t difference = 0, high = 0, low = 0, since = 0; ///< both are backlogged since
    const auto reset = [&](const int64_t now) {
        difference = high = low = 0;
        since = now;
    };
    net.onLeft = [&](const NetPacket &p) {
        if (p.flow > 1)
            return;
        if (always && net.backlog(0, p.flow) < 4)
            net.send(p.flow, random.between(1, longest[p.flow]), net.now());
        if (net.backlog(0, 1 - p.flow) == 0)
            return reset(net.now());
        const auto bytes = std::min(p.length, net.now() - since); // of the first packet the part in the interval
        difference += (p.flow == 0 ? 1 : -1) * bytes * Common / flows[p.flow].rate;
        high = std::max(high, difference);
        low = std::min(low, difference);
        result.greatest = std::max(result.greatest, high - low);
        ++result.served;
        if (net.backlog(0, p.flow) == 0)
            reset(net.now());
    };
    for (size_t n = 0; n < 8 && always; ++n)
        net.send(n % 2, random.between(1, longest[n % 2]), 0);
    for (int64_t at = 0; at < 3'000'000; at += random.between(1, 3000)) {
        for (size_t n = 0; n < count; ++n) {
            net.runTo(at);
            const bool idle = net.backlog(0, n) == 0;
            // The two are mostly backlogged; the others come and go.
            if (n < 2 && always)
                continue;
            if (n < 2 ? net.backlog(0, n) < 4 && random.chance(0.95) : random.chance(idle ? 0.1 : 0.5)) {
                for (auto burst = random.between(1, 8); burst > 0; --burst)
                    net.send(n, random.between(1, longest[n]), at);
                if (n < 2 && idle)
                    reset(at);
            }
        }
    }
    net.onLeft = nullptr;
    net.runOut();
    result.bound = bound(flows, longest);
    return result;
}

class Msfq : public ::testing::TestWithParam<Case> {};

TEST_P(Msfq, KeepsTheFairnessBound)
{
    const auto f = FollowTwo(GetParam(), false, [](const auto &flows, const auto &longest) {
        int64_t all = 0;
        for (size_t n = 0; n < flows.size(); ++n)
            all = std::max(all, longest[n] * Common / flows[n].rate);
        return all + std::max(longest[0] * Common / flows[0].rate, longest[1] * Common / flows[1].rate); // (6)
    });
    EXPECT_LE(f.greatest, f.bound);
    EXPECT_GT(f.served, 100);
}

/// A source behind a leaky bucket of sigma bytes and its flow's rate: sends as soon as it may, with pauses.
struct LeakyBucket {
    int64_t sigma, longest, rate;
    int64_t tokens, at = 0; ///< in bytes / Scale, and their time
    int64_t length = 0;     ///< of the next packet

    /// Earliest time of the next packet.
    int64_t next(Random &random)
    {
        length = random.between(1, longest);
        const auto wanted = length * Scale;
        auto wait = wanted > tokens ? (wanted - tokens + rate - 1) / rate : 0;
        if (random.chance(0.05))
            wait += random.between(0, 2 * sigma * Scale / rate); // the bucket fills
        return at + wait;
    }
    void sent(const int64_t now)
    {
        tokens = std::min(sigma * Scale, tokens + (now - at) * rate) - length * Scale;
        at = now;
        ASSERT_GE(tokens, 0) << "the test's own source is not what it says";
    }
};

/// \returns the number of packets that were later than (5) as printed
uint64_t LaterThanPrinted(const Case &c)
{
    uint64_t later = 0;
    for (size_t links = 1; links <= 3; ++links) {
        SCOPED_TRACE(std::to_string(links) + " links");
        Random random(c.seed * 31 + links);
        std::vector<int64_t> ticks;
        for (size_t n = 0; n < links; ++n)
            ticks.push_back(random.between(1, 2));
        std::vector<PacketFlow> flows;
        std::vector<LeakyBucket> sources;
        std::vector<int64_t> rateOf(links, 0), longestOf(links, 0);
        std::vector<int64_t> heldBack(links, 0); // max l / r, in ticks, rounded up
        const auto add = [&](const size_t first, const size_t last, const int64_t most) {
            int64_t rate = most;
            for (size_t n = first; n <= last; ++n)
                rate = std::min(rate, Scale / ticks[n] - rateOf[n]); // the sum of the rates is at most C
            if (rate < 1)
                return;
            const auto longest = random.between(40, 1500), sigma = longest * random.between(1, 4);
            flows.push_back({rate, first, last, c.classes});
            sources.push_back({sigma, longest, rate, sigma * Scale});
            for (size_t n = first; n <= last; ++n) {
                rateOf[n] += rate;
                longestOf[n] = std::max(longestOf[n], longest);
                heldBack[n] = std::max(heldBack[n], longest * Scale / rate + 1);
            }
        };
        for (int n = 0; n < 3; ++n)
            add(0, links - 1, random.between(1, 8)); // over all links
        for (size_t link = 0; link < links; ++link) {
            for (int n = 0; n < 6; ++n)
                add(link, link, random.between(1, 16)); // cross traffic, until the link is full
            add(link, link, Scale);
        }

        PacketNet net(c.scheduler, ticks, flows);
        uint64_t arrived = 0;
        int64_t tightest = 0; // slack of the bound, in thousandths
        net.onArrived = [&](const NetPacket &p) {
            const auto &f = flows[p.flow];
            const auto &s = sources[p.flow];
            // (5), times the rate
            int64_t bound = (s.sigma + static_cast<int64_t>(f.last - f.first) * s.longest) * Scale;
            for (size_t n = f.first; n <= f.last; ++n)
                bound += longestOf[n] * ticks[n] * f.rate;
            const auto delay = (net.now() - p.arrived) * f.rate;
            later += delay > bound;
            tightest = std::max(tightest, delay * 1000 / bound);
            for (size_t n = f.first; n <= f.last; ++n)
                bound += heldBack[n] * f.rate;
            EXPECT_LE(delay, bound) << "flow " << p.flow << " of rate " << f.rate;
            ++arrived;
        };
        std::vector<int64_t> due;
        for (auto &s : sources)
            due.push_back(s.next(random));
        uint64_t sent = 0;
        for (; sent < 4000; ++sent) {
            const auto n = static_cast<size_t>(std::min_element(due.begin(), due.end()) - due.begin());
            net.send(n, sources[n].length, due[n]);
            sources[n].sent(due[n]);
            due[n] = sources[n].next(random);
        }
        net.runOut();
        EXPECT_EQ(arrived, sent);
        EXPECT_GT(tightest, 100) << "a bound that is never approached is not tested";
    }
    return later;
}

TEST_P(Msfq, IsNotLaterThanWhatHoldsVirtualTimeBackAllows)
{
    const auto later = LaterThanPrinted(GetParam());
    EXPECT_LT(later, 120u) << "of 12,000 packets: (5) as printed is seldom exceeded";
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Msfq); // the core alone has no msfq
INSTANTIATE_TEST_SUITE_P(Seeds, Msfq, ::testing::ValuesIn(Cases("msfq", 12)));

class Drr : public ::testing::TestWithParam<Case> {};

/// quantum + Max_i / w_i + Max_j / w_j, with the longest packets of the two
TEST_P(Drr, KeepsTheFairnessBound)
{
    const auto f = FollowTwo(GetParam(), true, [](const auto &flows, const auto &longest) {
        return 1514 * Common + longest[0] * Common / flows[0].rate + longest[1] * Common / flows[1].rate;
    });
    EXPECT_LE(f.greatest, f.bound);
    EXPECT_GT(f.served, 100);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Drr, ::testing::ValuesIn(Cases("drr", 12)));

/// The check itself: an unfair scheduler exceeds the bounds.
TEST(Bounds, AreNotKeptByFifo)
{
    bool broken = false;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const auto f = FollowTwo({"fifo", false, seed}, false,
                                 [](const auto &, const auto &) { return 1514 * Common; });
        broken = broken || f.greatest > 4 * f.bound;
    }
    EXPECT_TRUE(broken);
}

} // namespace
} // namespace msfrs::test
