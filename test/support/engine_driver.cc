// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/engine_driver.h"

#include "engine/migrate.h"
#include "support/audit.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace msfrs::test {

Driver::Driver(const Variant &sched, Setup setup):
    host(setup.seed), sched_(sched), setup_(std::move(setup)), engine_(makeEngine())
{
}

std::unique_ptr<Engine> Driver::makeEngine()
{
    auto engine = std::make_unique<Engine>(sched_.load(), setup_.aqm ? setup_.aqm->load() : Engine::Part(), setup_.cost,
                                           setup_.resources, setup_.limit, host.engine());
    if (setup_.pushOut)
        engine->pushOut(setup_.pushOut);
    return engine;
}

Driver::~Driver()
{
    while (!served_.empty())
        done(*served_.back());
    engine_.reset(); // frees queued items, and the plugins see that, too
}

msfrs_class &Driver::addClass(const std::string &name, const double weight, const uint32_t flags,
                              msfrs_class *const parent)
{
    auto *const c = engine_->addClass(name, weight, flags, parent);
    audit("addClass");
    return *c;
}

void Driver::estimate(const Tracked &t, int64_t *const est) const
{
    const auto left = std::max<int64_t>(t.size - t.charged, 0);
    for (uint32_t r = 0; r < setup_.resources; ++r)
        est[r] = setup_.cost == Engine::Cost::Exact ? left : setup_.estimate(left);
    for (size_t r = 0; r < t.processing.size() && setup_.cost == Engine::Cost::Exact; ++r)
        est[r + 1] = t.processing[r];
}

void Driver::enter(std::vector<Tracked *> &list, Tracked &t)
{
    t.inService = &list == &served_;
    t.place = list.size();
    list.push_back(&t);
}

void Driver::leave(Tracked &t)
{
    auto &list = t.inService ? served_ : queued_;
    list[t.place] = list.back();
    list[t.place]->place = t.place;
    list.pop_back();
}

void Driver::forget(Tracked &t)
{
    leave(t);
    all_.erase(&t);
}

Tracked *Driver::arrive(msfrs_class &c, const std::string &user, const int64_t size, const std::string &name)
{
    auto t = std::make_unique<Tracked>();
    t->cls = &c;
    t->size = size;
    t->processing = processing;
    t->name = name.empty() ? std::to_string(++number_) : name;
    int64_t est[MSFRS_RESOURCES] = {};
    estimate(*t, est);
    ++offered_;
    const auto verdict = engine_->offer(engine_->flow(c, user), est, t.get(), clock.now(), t->item, [&](msfrs_item &i) {
        ++victims_;
        ++dropped_;
        auto &victim = *static_cast<Tracked *>(i.host);
        EXPECT_FALSE(victim.inService) << "an item in service was dropped";
        forget(victim);
        return true;
    }, itemFlags);
    EXPECT_EQ(verdict == Engine::Offer::Dropped, t->item == nullptr);
    t->marked = verdict == Engine::Offer::Marked;
    EXPECT_TRUE(!t->marked || (itemFlags & MSFRS_ECN_CAPABLE)) << "marked what cannot be marked";
    if (verdict == Engine::Offer::Dropped) {
        ++dropped_;
        audit("offer (dropped)");
        return nullptr;
    }
    auto *const raw = t.get();
    all_.emplace(raw, std::move(t));
    enter(queued_, *raw);
    audit("offer");
    return raw;
}

Tracked *Driver::pick(const msfrs_pick mode)
{
    wakeAt_ = 0;
    auto *const item = engine_->pick(clock.now(), mode, wakeAt_, [&](void *const tracked) {
        auto &t = *static_cast<Tracked *>(tracked);
        EXPECT_TRUE(all_.count(&t) && !t.inService) << "dropped an item that is not queued";
        ++dropped_;
        ++lost_;
        forget(t);
    });
    if (!item) {
        if (mode == MSFRS_PICK_ANY && !queued_.empty()) {
            EXPECT_GT(wakeAt_, clock.now()) << "law 2: a backlog of " << queued_.size()
                                            << ", and neither an item nor a time";
        }
        audit("pick (nothing)");
        return nullptr;
    }
    auto &t = *static_cast<Tracked *>(item->host);
    EXPECT_TRUE(all_.count(&t)) << "picked an item that has ended";
    EXPECT_FALSE(t.inService) << "picked an item that is in service";
    t.markedInTurn = !t.marked && engine_->isMarked(*item);
    t.marked = engine_->isMarked(*item);
    EXPECT_TRUE(!t.marked || (item->flags & MSFRS_ECN_CAPABLE)) << "marked what cannot be marked";
    if (engine_->scheduler().flags & MSFRS_FLOW_ORDER) {
        for (const auto *other : queued_)
            EXPECT_TRUE(other->item->flow != item->flow || other->item->seq >= item->seq)
                << "law 6: the flow's order is not kept";
    }
    if (mode == MSFRS_PICK_FRESH) {
        EXPECT_EQ(item->attained, 0) << "a continuation was given a fresh item's place";
    }
    leave(t);
    enter(served_, t);
    audit("pick");
    return &t;
}

Tracked *Driver::pickInTime()
{
    for (int wakes = 0; wakes < 1000; ++wakes) {
        if (auto *const t = pick())
            return t;
        if (queued_.empty() || wakeAt_ <= clock.now())
            return nullptr; // the AQM has dropped all items, or pick() has failed the test
        clock.set(wakeAt_);
    }
    ADD_FAILURE() << "law 2: woken 1000 times, a backlog of " << queued_.size() << ", nothing picked";
    return nullptr;
}

void Driver::charge(Tracked &t, const int64_t amount)
{
    t.charged += amount;
    if (setup_.cost == Engine::Cost::Measured)
        engine_->charge(*t.item, 0, amount, clock.now());
    audit("charge");
}

void Driver::expect(Tracked &t, const int64_t remaining)
{
    engine_->expect(*t.item, remaining, clock.now());
    audit("expect");
}

void Driver::requeue(Tracked &t)
{
    int64_t est[MSFRS_RESOURCES] = {};
    estimate(t, est);
    leave(t);
    engine_->requeue(*t.item, est, clock.now());
    enter(queued_, t);
    audit("requeue");
}

void Driver::move(Tracked &t, msfrs_class &c, const std::string &user)
{
    const auto before = *t.item;
    t.item = engine_->move(*t.item, engine_->flow(c, user), clock.now());
    t.cls = &c;
    ++offered_;
    ++(t.inService ? done_ : dropped_);
    EXPECT_EQ(engine_->isQueued(*t.item), !t.inService);
    EXPECT_EQ(t.item->host, &t);
    EXPECT_EQ(t.item->flow->cls, &c);
    EXPECT_EQ(t.item->attained, before.attained);
    EXPECT_EQ(t.item->remaining, before.remaining);
    EXPECT_EQ(t.item->flags, before.flags);
    audit("move");
}

void Driver::done(Tracked &t)
{
    bytes_[t.cls->name] += t.charged;
    ++done_;
    engine_->done(*t.item, clock.now());
    forget(t);
    audit("done");
}

void Driver::remove(Tracked &t, const msfrs_reason why)
{
    ++dropped_;
    engine_->remove(*t.item, clock.now(), why);
    forget(t);
    audit("remove");
}

void Driver::finish(Tracked &t)
{
    if (t.size > t.charged)
        charge(t, t.size - t.charged);
    done(t);
}

void Driver::drain()
{
    while (!served_.empty())
        finish(*served_.back());
    while (auto *const t = pickInTime())
        finish(*t);
    EXPECT_TRUE(queued_.empty());
}

msfrs_class &Driver::classOf(const std::string &name) const
{
    const auto &all = engine_->classes();
    return **std::find_if(all.begin(), all.end(), [&](const msfrs_class *const c) { return c->name == name; });
}

void Driver::migrate()
{
    auto next = makeEngine();
    for (const auto *const c : engine_->classes())
        next->addClass(c->name, c->weight, c->flags);
    std::swap(engine_, next);
    MigrationPlan plan;
    for (const auto *const t : served_)
        plan.served.push_back(t->item);
    plan.place = [&](const msfrs_item &i) {
        const auto &flow = static_cast<const NamedFlow &>(*i.flow);
        MigrationPlan::Place place{&engine_->flow(classOf(flow.cls->name), flow.name()), {}};
        std::copy(std::begin(i.est), std::end(i.est), place.est.begin());
        return place;
    };
    plan.moved = [&](msfrs_item &i) {
        auto &t = *static_cast<Tracked *>(i.host);
        t.item = &i;
        t.cls = i.flow->cls;
    };
    Migrate(*next, *engine_, plan, clock.now());
    EXPECT_EQ(AuditLaws(*next), "") << "of the engine that was left";
    next.reset();
    offered_ = queued_.size() + served_.size();
    dropped_ = done_ = 0;
    audit("migrate");
}

int64_t Driver::bytesOf(const msfrs_class &c) const
{
    const auto found = bytes_.find(c.name);
    return found == bytes_.end() ? 0 : found->second;
}

void Driver::audit(const char *const after)
{
    const auto &totals = engine_->totals();
    EXPECT_EQ(AuditLaws(*engine_), "") << "after " << after;
    EXPECT_EQ(totals.offered.items, offered_) << "after " << after;
    EXPECT_EQ(totals.dropped.items, dropped_) << "after " << after;
    EXPECT_EQ(totals.queued.items, queued_.size()) << "after " << after;
    EXPECT_EQ(totals.inService.items, served_.size()) << "after " << after;
    EXPECT_EQ(totals.done.items, done_) << "after " << after;
    for (const auto *c : engine_->classes()) {
        uint32_t inService = 0;
        for (const auto *t : served_) {
            for (const auto *part = t->cls; part; part = part->parent)
                inService += part == c;
        }
        EXPECT_EQ(c->in_service, inService) << "class " << c->name << " after " << after;
    }
}

} // namespace msfrs::test
