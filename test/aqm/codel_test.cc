// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// codel against RFC 8289: its law of drop times, standing queues and short ones, whose queue counts, and marks.
#include "aqm/aqm_queue.h"

#include <cmath>
#include <deque>
#include <gtest/gtest.h>

namespace msfrs::test {
namespace {

constexpr int64_t Full = 1000; ///< bytes
const std::string Codel = "codel packet=1000";

/// Times in ms of drops from a queue that never empties, with a departure each ms from `from` ms on.
std::vector<int> Drops(AqmQueue &q, msfrs_class &c, const int from, const int until)
{
    std::vector<int> times;
    for (int ms = from; ms < until; ++ms) {
        q.clock.set(ms * Ms);
        for (const char sign : q.turn())
            times.push_back(sign == '!' ? ms : -1);
        while (c.backlog < 400) // arrivals now will have waited for 400 ms: the queue keeps its length
            q.offer(c, "a", Full);
    }
    return times;
}

TEST(Codel, DropsAfterAnIntervalAboveTargetAndThenByTheSquareRoot)
{
    AqmQueue q(Codel);
    auto &c = q.addClass("c", 1);
    for (int n = 0; n < 400; ++n)
        q.offer(c, "a", Full);
    std::vector<int> wanted;
    double next = 105; // 5 ms: the first packet that has waited for the target
    for (int count = 1; next < 1000; ++count) {
        wanted.push_back(static_cast<int>(std::ceil(next - 1e-6)));
        next += 100 / std::sqrt(count);
    }
    EXPECT_EQ(Drops(q, c, 0, 1000), wanted);
    EXPECT_EQ(wanted[0], 105);
    EXPECT_EQ(wanted[1], 205);
    EXPECT_EQ(wanted[2], 276); // 205 + 100 / sqrt(2)
    EXPECT_EQ(q.gauge("judged"), static_cast<double>(wanted.size()));
}

TEST(Codel, ABurstThatPassesWithinAnIntervalLosesNothing)
{
    AqmQueue q(Codel);
    auto &c = q.addClass("c", 1);
    for (int round = 0; round < 5; ++round) {
        for (int n = 0; n < 99; ++n)
            q.offer(c, "a", Full);
        for (int n = 0; n < 99; ++n) {
            q.clock.advance(Ms);
            EXPECT_EQ(q.turn(), "");
        }
    }
}

TEST(Codel, OneThatHasNotWaitedForTheTargetEndsTheInterval)
{
    AqmQueue q(Codel);
    auto &c = q.addClass("c", 1);
    for (int ms = 0; ms < 1000; ++ms) {
        q.clock.set(ms * Ms);
        if (ms % 90 == 0) { // the queue empties, and the last packets have only just arrived
            for (int n = 0; n < 3; ++n)
                q.offer(c, "a", Full);
            while (c.backlog > 1)
                EXPECT_EQ(q.turn(), "");
        }
        while (c.backlog < 50)
            q.offer(c, "a", Full);
        EXPECT_EQ(q.turn(), "") << ms;
    }
}

TEST(Codel, AFullPacketThatIsLeftIsNoQueue)
{
    AqmQueue q(Codel);
    auto &c = q.addClass("c", 1);
    q.offer(c, "a", Full);
    for (int n = 0; n < 50; ++n) { // two wait for long, on a link slower than a packet per target
        q.offer(c, "a", Full);
        q.clock.advance(50 * Ms);
        EXPECT_EQ(q.turn(), "");
    }
    q.offer(c, "a", 1); // one byte more
    std::string signs;
    for (int n = 0; n < 50; ++n) {
        q.offer(c, "a", Full);
        q.clock.advance(50 * Ms);
        signs += q.turn();
        while (c.backlog < 2)
            q.offer(c, "a", Full);
    }
    EXPECT_NE(signs, "");
}

TEST(Codel, GoesOnWithTheRateThatHadHeldTheQueueIfThatWasLately)
{
    for (const int pause : {1500, 1700}) { // ms; 16 intervals from the time of the next drop
        AqmQueue q(Codel);
        auto &c = q.addClass("c", 1);
        for (int n = 0; n < 400; ++n)
            q.offer(c, "a", Full);
        const auto before = Drops(q, c, 0, 1000);
        while (c.backlog)
            q.turn();
        q.clock.advance(pause * Ms);
        for (int n = 0; n < 400; ++n)
            q.offer(c, "a", Full);
        const int from = 1000 + pause;
        const auto after = Drops(q, c, from, from + 400);
        ASSERT_GE(after.size(), 2u);
        EXPECT_EQ(after[0], from + 104) << "the clock was at 999 when they came";
        if (pause < 1600)
            EXPECT_LT(after[1] - after[0], 40) << "count " << before.size();
        else
            EXPECT_EQ(after[1] - after[0], 100);
    }
}

TEST(Codel, MarksWhatCanCarryAMark)
{
    for (const std::string ecn : {"on", "off"}) {
        AqmQueue q(Codel + " ecn=" + ecn);
        auto &c = q.addClass("c", 1);
        q.itemFlags = MSFRS_ECN_CAPABLE;
        for (int n = 0; n < 200; ++n)
            q.offer(c, "a", Full);
        std::string signs;
        for (int n = 0; n < 60; ++n) {
            q.clock.advance(5 * Ms);
            signs += q.turn();
        }
        EXPECT_EQ(signs, ecn == "on" ? "mmm" : "!!!");
        EXPECT_EQ(q.engine().totals().dropped.items, ecn == "on" ? 0u : 3u);
    }
}

TEST(Codel, WatchesTheQueuesThatItIsToldOf)
{
    // Two flows of one class and one of another. Of the flows only a has a standing queue; each class has one, and all.
    const auto judged = [](const std::string &who, const uint32_t flags) {
        AqmQueue q(Codel + " queue=" + who);
        auto &c = q.addClass("c", 1, flags), &d = q.addClass("d", 1);
        std::string flows;
        for (int n = 0; n < 300; ++n) {
            q.clock.advance(10 * Ms);
            if (n % 4 < 2)
                q.offer(c, "a", Full), q.offer(c, "a", Full);
            else
                q.offer(n % 4 == 2 ? c : d, "b", Full);
            if (n >= 40)
                flows += q.turn();
        }
        return flows.size();
    };
    const auto flow = judged("flow", 0), cls = judged("class", 0), all = judged("all", 0);
    EXPECT_GT(flow, 0u);
    EXPECT_GT(all, 0u);
    EXPECT_NE(cls, flow);
    EXPECT_NE(cls, all);
    EXPECT_EQ(judged("flow", MSFRS_AGGREGATE), cls) << "the flows of an aggregate are one, and those of d are";
}

/// The RFC's dequeue, literally: one call removes all packets to be dropped, and the one to be sent.
class Reference {
public:
    void arrive(const std::string &name, const int64_t size, const msfrs_time now)
    {
        queue_.push_back({name, size, now});
        bytes_ += size;
    }

    /// Names of those dropped, each with a '!', and of the one sent.
    std::string leave(const msfrs_time now)
    {
        std::string out;
        auto head = take(now);
        const auto drop = [&] {
            out += head.name + "! ";
            head = take(now);
        };
        if (dropping_) {
            dropping_ = head.ripe;
            while (dropping_ && now >= next_) {
                ++count_;
                drop();
                dropping_ = head.ripe;
                if (dropping_)
                    next_ = law(next_);
            }
        } else if (head.ripe) {
            drop();
            dropping_ = true;
            const auto more = count_ - begun_;
            count_ = begun_ = more > 1 && now - next_ < 16 * Interval ? more : 1;
            next_ = law(now);
        }
        return out + head.name;
    }

private:
    static constexpr msfrs_time Target = 5 * Ms, Interval = 100 * Ms;
    struct Packet {
        std::string name;
        int64_t size;
        msfrs_time since;
        bool ripe = false;
    };

    Packet take(const msfrs_time now)
    {
        if (queue_.empty()) {
            above_ = 0;
            return {};
        }
        auto p = queue_.front();
        queue_.pop_front();
        bytes_ -= p.size;
        if (now - p.since < Target || bytes_ <= Full)
            above_ = 0;
        else if (!above_)
            above_ = now + Interval;
        else
            p.ripe = now >= above_;
        return p;
    }
    msfrs_time law(const msfrs_time t) const
    {
        return t + static_cast<msfrs_time>(static_cast<double>(Interval) / std::sqrt(count_));
    }

    std::deque<Packet> queue_;
    int64_t bytes_ = 0;
    msfrs_time above_ = 0, next_ = 0;
    uint32_t count_ = 0, begun_ = 0;
    bool dropping_ = false;
};

TEST(Codel, DropsWhatTheRfcsDequeueDrops)
{
    uint64_t drops = 0;
    for (uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
        Random random(seed);
        AqmQueue q(Codel, 0, seed);
        Reference wanted;
        auto &c = q.addClass("c", 1);
        int number = 0;
        double load = 1;
        for (int step = 0; step < 5000 && !HasFailure(); ++step) {
            if (random.chance(0.002))
                load = 0.2 + 0.1 * static_cast<double>(random.below(30));
            q.clock.advance(random.chance(0.001) ? random.between(0, 3 * Second) : random.between(0, 2 * Ms));
            while (random.chance(load / (1 + load))) {
                const auto size = random.between(1, 1500);
                wanted.arrive(std::to_string(++number), size, q.clock.now());
                q.arrive(c, "a", size, std::to_string(number));
            }
            if (q.queued().empty())
                continue;
            std::vector<std::string> gone;
            for (auto *i = q.engine().flow(c, "a").head; i; i = i->next)
                gone.push_back(static_cast<Tracked *>(i->host)->name);
            const auto before = q.lost();
            auto *const t = q.pick();
            std::string said;
            for (uint64_t n = 0; n < q.lost() - before; ++n, ++drops)
                said += gone[n] + "! ";
            EXPECT_EQ(said + (t ? t->name : ""), wanted.leave(q.clock.now())) << "seed " << seed << ", step " << step;
            if (t)
                q.finish(*t);
        }
    }
    EXPECT_GT(drops, 1000u) << "nothing was compared";
}

} // namespace
} // namespace msfrs::test
