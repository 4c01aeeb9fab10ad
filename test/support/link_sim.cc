// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/link_sim.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <gtest/gtest.h>

namespace msfrs::test {

namespace {
constexpr double Slack = 1e-6; ///< bytes; allows for rounding to nanoseconds and of doubles
} // namespace

struct LinkSim::Owner final : RequestOwner {
    Owner(LinkSim &s, const size_t n): sim(s), number(n) {}

    void granted() override
    {
        auto &t = sim.transfers_[number];
        EXPECT_FALSE(receiving) << "granted twice";
        EXPECT_LT(t.ended, 0) << "granted after its end";
        receiving = true;
        if (t.grants++ == 0) {
            t.granted = sim.now();
            if (sim.options_.latency > 0) {
                sim.at(sim.now() + sim.options_.latency, [&s = sim, n = number] {
                    if (const auto found = s.owners_.find(n); found != s.owners_.end())
                        s.expectPiece(*found->second, s.each_);
                });
                return;
            }
        }
        sim.expectPiece(*this, sim.each_);
    }

    void expired() override
    {
        sim.transfers_[number].expired = true;
        sim.end(*this);
    }

    LinkSim &sim;
    size_t number;
    Request *request = nullptr;
    std::function<void(const Transfer &)> onEnd;
    bool receiving = false;
    std::set<Due>::iterator due;
    bool isDue = false;
};

void FixWindow(RequestScheduler &scheduler, const uint32_t wplus, const msfrs_time now)
{
    struct Dummy : RequestOwner {
        void granted() override { served = true; }
        void expired() override {}
        Request *request = nullptr;
        bool served = false;
    };
    RequestConfig wanted = scheduler.config();
    wanted.window.law = WindowLaw::Paper; // W+ limits no bytes
    FakeInterface meter("fix-window"); // bytes that are charged to no class
    auto config = wanted;
    config.interface = meter.name();
    config.quantum = 0; // the paper's window
    config.window = WindowParams();
    config.window.law = wanted.window.law;
    config.window.interval = 1;
    config.window.reserve = 0;
    config.window.growth = std::max(wplus, 2u);
    config.maxPerUser = config.maxQueued = UINT32_MAX;
    config.arbiter = {"fifo", {}};
    config.admission = {"none", {}}; // the test's own requests are not affected,
    config.classes.push_back({"opener", 1}); // and reports do not show it
    const auto cls = static_cast<uint32_t>(config.classes.size() - 1);
    scheduler.reconfigure(config, now);

    std::deque<Dummy> dummies;
    Refusal why;
    do {
        dummies.emplace_back();
        dummies.back().request = scheduler.hold(dummies.back(), cls, "opener", now, why);
    } while (dummies.back().served);
    const auto end = now + 1;
    meter.bytes = wplus > 1 ? 0 : 1000; // either U is 0 and W+ grows by K, or the link is overloaded
    scheduler.tick(end);
    for (auto &dummy : dummies)
        scheduler.done(dummy.request, end);
    config = wanted;
    config.window.interval = Never;
    scheduler.reconfigure(config, end);
    EXPECT_DOUBLE_EQ(scheduler.window().limit, wplus);
    EXPECT_EQ(scheduler.window().outstanding, 0);
}

LinkSim::LinkSim(const RequestConfig &config, const LinkOptions &options):
    host_(options.seed), options_(options), rate_(config.rate)
{
    if (!config.interface.empty())
        interface_ = std::make_unique<FakeInterface>(config.interface);
    scheduler_ = std::make_unique<RequestScheduler>(config, host_.requests(), clock_.now());
    if (options.fixedWindow > 0) {
        FixWindow(*scheduler_, options.fixedWindow, clock_.now());
        clock_.run(2);
    }
    nextTick_ = scheduler_->tick(clock_.now());
}

LinkSim::~LinkSim()
{
    for (auto &named : owners_)
        scheduler_->done(named.second->request, clock_.now());
}

double LinkSim::rateOfOne() const
{
    if (due_.empty())
        return 0;
    return std::min(options_.perResponse, std::max(rate_ - cbr_, 0.0) / static_cast<double>(due_.size()));
}

void LinkSim::pass(const msfrs_time until)
{
    const double bytesPerBit = static_cast<double>(until - clock_.now()) * 1e-9 / 8;
    const double each = rateOfOne() * bytesPerBit;
    each_ += each;
    carried_ += each * static_cast<double>(due_.size()) + std::min(cbr_, rate_) * bytesPerBit;
    if (interface_) {
        interface_->packets = static_cast<uint64_t>(carried_ / static_cast<double>(options_.packet));
        interface_->bytes = static_cast<uint64_t>(carried_);
    }
    clock_.run(until);
}

void LinkSim::setCbr(const double rate) { cbr_ = rate; }

msfrs_time LinkSim::nextPiece() const
{
    const double rate = rateOfOne();
    if (!(rate > 0))
        return Never;
    const double seconds = std::max(due_.begin()->target - each_ - Slack, 0.0) * 8 / rate;
    return clock_.now() + static_cast<msfrs_time>(std::ceil(seconds * 1e9));
}

void LinkSim::expectPiece(Owner &o, const double from)
{
    const auto &t = transfers_[o.number];
    const auto bytes = std::min(options_.piece, t.size - t.received);
    o.due = due_.insert({from + static_cast<double>(bytes), order_++, &o}).first;
    o.isDue = true;
}

void LinkSim::deliver(Owner &o)
{
    auto &t = transfers_[o.number];
    const double reached = o.due->target;
    const auto bytes = std::min(options_.piece, t.size - t.received);
    const auto cls = t.cls;
    due_.erase(o.due);
    o.isDue = false;
    t.received += bytes;
    bytes_[cls][t.user] += bytes;
    scheduler_->charge(*o.request, bytes, now());
    if (options_.says)
        scheduler_->expect(*o.request, options_.says(t), now());
    const bool last = t.received >= t.size;
    if (onPiece)
        onPiece(cls, bytes);
    if (last) {
        end(o);
    } else if (scheduler_->readMore(*o.request, now())) {
        expectPiece(o, reached);
    } else {
        // granted() may have been called for other requests meanwhile, never for this one.
        EXPECT_FALSE(o.isDue) << "granted() from inside its own readMore()";
        o.receiving = false;
    }
}

void LinkSim::end(Owner &o)
{
    if (o.isDue)
        due_.erase(o.due);
    const auto found = owners_.find(o.number);
    const auto keep = std::move(found->second);
    owners_.erase(found);
    transfers_[o.number].ended = now();
    scheduler_->done(o.request, now());
    if (o.onEnd) {
        const auto copy = transfers_[o.number]; // a new arrival may move the original
        o.onEnd(copy);
    }
}

size_t LinkSim::arrive(const uint32_t cls, const std::string &user, const int64_t size,
                       std::function<void(const Transfer &)> onEnd)
{
    const auto number = transfers_.size();
    Transfer t;
    t.cls = cls;
    t.user = user;
    t.size = size;
    t.arrived = now();
    transfers_.push_back(t);
    auto &owner = *owners_.emplace(number, std::make_unique<Owner>(*this, number)).first->second;
    owner.onEnd = std::move(onEnd);
    Refusal why = Refusal::None;
    owner.request = scheduler_->hold(owner, cls, user, now(), why);
    if (!owner.request) {
        const auto keep = std::move(owners_[number]);
        owners_.erase(number);
        transfers_[number].refusal = why;
        transfers_[number].ended = now();
        if (keep->onEnd) {
            const auto copy = transfers_[number];
            keep->onEnd(copy);
        }
    }
    return number;
}

void LinkSim::abort(const size_t number)
{
    const auto found = owners_.find(number);
    if (found == owners_.end())
        return;
    transfers_[number].aborted = true;
    end(*found->second);
}

bool LinkSim::step(const msfrs_time until)
{
    const auto event = clock_.next().value_or(Never);
    const auto piece = nextPiece();
    const auto next = std::max(std::min({event, piece, nextTick_}), now());
    if (next > until) {
        pass(until);
        return false;
    }
    pass(next); // events at this time come first
    if (event <= next)
        return true;
    if (piece <= next) {
        while (!due_.empty() && due_.begin()->target <= each_ + Slack)
            deliver(*due_.begin()->owner);
    } else {
        nextTick_ = scheduler_->tick(now());
        EXPECT_GT(nextTick_, now());
        EXPECT_LE(nextTick_, now() + scheduler_->config().window.interval) << "a tick is wanted too late";
    }
    return true;
}

void LinkSim::run(const msfrs_time until)
{
    while (step(until)) {
    }
}

void LinkSim::runOut()
{
    const auto giveUp = now() + 100'000 * Second;
    while ((!owners_.empty() || clock_.next()) && step(giveUp)) {
    }
    EXPECT_TRUE(owners_.empty()) << owners_.size() << " requests never ended";
}

int64_t LinkSim::bytes(const uint32_t cls) const
{
    int64_t sum = 0;
    if (const auto found = bytes_.find(cls); found != bytes_.end()) {
        for (const auto &user : found->second)
            sum += user.second;
    }
    return sum;
}

int64_t LinkSim::bytes(const uint32_t cls, const std::string &user) const
{
    const auto found = bytes_.find(cls);
    if (found == bytes_.end())
        return 0;
    const auto one = found->second.find(user);
    return one == found->second.end() ? 0 : one->second;
}

} // namespace msfrs::test
