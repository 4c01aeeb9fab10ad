// SPDX-License-Identifier: GPL-2.0-or-later
#include "engine/engine_records.h"

#include "engine/push_out.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace msfrs {

namespace {

constexpr size_t Aligned(const size_t size)
{
    constexpr size_t unit = alignof(std::max_align_t);
    return (size + unit - 1) / unit * unit;
}

/// Zeroed and aligned for any type; null if the plugin needs none.
State NewState(const size_t size)
{
    static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= alignof(std::max_align_t));
    return size ? std::make_unique<unsigned char[]>(Aligned(size)) : nullptr;
}

/// Calls visit() with a flow, its class and the classes above.
template <class Visit>
void EachLevel(msfrs_flow &f, const Visit &visit)
{
    visit(f);
    for (auto c = f.cls; c; c = c->parent)
        visit(*c);
}

std::vector<double> Read(const msfrs_plugin &plugin, void (*const gauges)(void *, const msfrs_class *, double *),
                         void *const state, const msfrs_class *const c)
{
    std::vector<double> values(plugin.n_gauges);
    if (gauges && !values.empty())
        gauges(state, c, values.data());
    return values;
}

} // namespace

struct Engine::Instance {
    Instance(Engine &engine, const Part &part): plugin(part.plugin->ops()), state(NewState(plugin.inst_size))
    {
        table.ctx = &engine.host_;
        table.random = [](void *ctx) { return static_cast<EngineHost *>(ctx)->random(); };
        table.log = [](void *ctx, int level, const char *text) { static_cast<EngineHost *>(ctx)->log(level, text); };
        table.resources = engine.resources_;
        table.virtual_time = &engine.virtualTime_;
        table.exact = engine.cost_ == Cost::Exact;
        table.limit = engine.limit_;
        table.elsewhere = &engine.elsewhere_;
        table.sharers = &engine.sharers_;
        const auto init = plugin.kind == MSFRS_AQM ? plugin.aqm->init : plugin.sched->init;
        char error[256] = "";
        if (init && init(state.get(), &table, part.params.data(), error, sizeof(error)) != 0) {
            error[sizeof(error) - 1] = 0;
            throw ConfigError(std::string(plugin.name) + ": " + (*error ? error : "refuses to start without a reason"));
        }
    }
    ~Instance()
    {
        if (const auto fini = plugin.kind == MSFRS_AQM ? plugin.aqm->fini : plugin.sched->fini)
            fini(state.get());
    }
    Instance(const Instance &) = delete;

    bool sees(const msfrs_class &c) const { return !(c.flags & MSFRS_INTERIOR) || (plugin.flags & MSFRS_HIERARCHY); }

    const msfrs_plugin &plugin; ///< the Part that loaded it outlives this
    State state;
    msfrs_host table{};
};

Engine::Engine(Part sched, Part aqm, const Cost cost, const uint32_t resources, const uint32_t limit,
               EngineHost host):
    sched_(std::move(sched)), aqm_(std::move(aqm)), cost_(cost), resources_(resources), limit_(limit),
    host_(std::move(host)), schedOps_(scheduler().sched),
    draws_(aqm_.plugin && (this->aqm()->flags & MSFRS_DROPS_QUEUED)),
    itemPool_(sizeof(ItemRecord) + statesSize() + offsetof(ItemCosts, used) + resources * sizeof(int64_t)),
    flowPool_(Aligned(sizeof(NamedFlow)) + Aligned(scheduler().flow_size) +
              (aqm_.plugin ? Aligned(this->aqm()->flow_size) : 0))
{
    assert(resources_ >= 1 && resources_ <= MSFRS_RESOURCES);
    const auto refuse = [this](const msfrs_plugin *const p, const char *const kind, const char *const why) {
        if (cost_ == Cost::Measured && p && (p->flags & MSFRS_NEEDS_COST))
            throw ConfigError(std::string(kind) + " " + p->name + " must know " + why);
    };
    refuse(&scheduler(), "scheduler",
           "the cost of an item before it is served, which is unknown for a request; it can schedule packets");
    refuse(this->aqm(), "AQM", "the size of an item that arrives, which is unknown for a request");
    schedInst_ = std::make_unique<Instance>(*this, sched_);
    schedState_ = schedInst_->state.get();
    schedItem_ = scheduler().item_size ? sizeof(ItemRecord) : 0;
    costsAt_ = sizeof(ItemRecord) + statesSize();
    if (aqm_.plugin) {
        aqmInst_ = std::make_unique<Instance>(*this, aqm_);
        aqmOps_ = this->aqm()->aqm;
        aqmState_ = aqmInst_->state.get();
        aqmItem_ = this->aqm()->item_size ? sizeof(ItemRecord) + Aligned(scheduler().item_size) : 0;
    }
}

Engine::~Engine()
{
    // End the plugins in order, so that they can free what they hold.
    for (auto &record : records_) {
        if (!record)
            continue;
        for (auto &named : record->flows) {
            while (named.second->flow->head)
                remove(*named.second->flow->head, latest_, MSFRS_SHUTDOWN);
        }
    }
    while (!classList_.empty()) // a class is added after its parent
        freeClass(*classList_.back());
    schedInst_.reset();
    aqmInst_.reset();
}

msfrs_class *Engine::addClass(const std::string &name, const double weight, const uint32_t flags,
                              msfrs_class *const parent)
{
    assert(weight > 0);
    if (parent && !(parent->flags & MSFRS_INTERIOR)) {
        throw ConfigError("class '" + name + "' cannot be part of class '" + parent->name +
                          "', which has flows of its own; allowed is an interior class");
    }
    uint32_t index = 0;
    while (index < records_.size() && records_[index])
        ++index;
    if (index == records_.size())
        records_.emplace_back();

    auto record = std::make_unique<ClassRecord>();
    static_cast<msfrs_class &>(*record) = msfrs_class{};
    record->storedName = name;
    record->name = record->storedName.c_str();
    record->index = index;
    record->flags = flags;
    record->parent = parent;
    record->weight = weight;
    record->service = &record->served;
    if (schedInst_->sees(*record)) {
        record->schedState = NewState(scheduler().class_size);
        record->state = record->schedState.get();
        const auto added = scheduler().sched->class_added;
        if (added && added(schedInst_->state.get(), record.get()) != 0)
            throw std::bad_alloc();
    }
    if (aqmInst_ && aqmInst_->sees(*record)) {
        record->aqmState = NewState(aqm()->class_size);
        record->aqm_state = record->aqmState.get();
        const auto added = aqm()->aqm->class_added;
        if (added && added(aqmInst_->state.get(), record.get()) != 0)
            throw std::bad_alloc();
    }
    records_[index] = std::move(record);
    classList_.push_back(records_[index].get());
    return records_[index].get();
}

void Engine::setWeight(msfrs_class &c, const double weight)
{
    assert(weight > 0);
    const double old = c.weight;
    c.weight = weight;
    if (pushOut_ && !(c.flags & MSFRS_INTERIOR))
        pushOut_->reweigh(c);
    if (scheduler().sched->class_changed && schedInst_->sees(c))
        scheduler().sched->class_changed(schedInst_->state.get(), &c, old);
    if (aqmInst_ && aqm()->aqm->class_changed && aqmInst_->sees(c))
        aqm()->aqm->class_changed(aqmInst_->state.get(), &c, old);
}

bool Engine::removeClass(msfrs_class &c)
{
    const auto isChild = [&c](const msfrs_class *const other) { return other->parent == &c; };
    if (c.backlog || c.in_service || std::any_of(classList_.begin(), classList_.end(), isChild))
        return false;
    freeClass(c);
    return true;
}

void Engine::freeClass(msfrs_class &c)
{
    auto &record = *records_[c.index];
    while (!record.flows.empty())
        freeFlow(record, *record.flows.begin()->second->flow);
    if (scheduler().sched->class_removed && schedInst_->sees(c))
        scheduler().sched->class_removed(schedInst_->state.get(), &c);
    if (aqmInst_ && aqm()->aqm->class_removed && aqmInst_->sees(c))
        aqm()->aqm->class_removed(aqmInst_->state.get(), &c);
    if (pushOut_)
        pushOut_->removed(c);
    classList_.erase(std::find(classList_.begin(), classList_.end(), &c));
    records_[c.index].reset();
}

NamedFlow &Engine::flow(msfrs_class &c, const std::string_view name, const double weight)
{
    assert(!(c.flags & MSFRS_INTERIOR));
    if (const auto known = knownFlow(c, name))
        return *known;
    auto &record = *records_[c.index];
    auto account = std::make_unique<FlowAccount>();
    account->name = name;
    const auto memory = static_cast<char *>(flowPool_.get());
    std::memset(memory, 0, flowPool_.stride());
    const auto f = new (memory) NamedFlow();
    account->flow = f;
    f->account = account.get();
    f->cls = &c;
    f->key = std::hash<std::string_view>()(name);
    f->weight = weight;
    const auto states = memory + Aligned(sizeof(NamedFlow));
    if (scheduler().flow_size)
        f->state = states;
    if (aqmOps_ && aqm()->flow_size)
        f->aqm_state = states + Aligned(scheduler().flow_size);
    const bool known = !schedOps_->flow_added || schedOps_->flow_added(schedState_, f) == 0;
    if (!known || (aqmOps_ && aqmOps_->flow_added && aqmOps_->flow_added(aqmState_, f) != 0)) {
        if (known && schedOps_->flow_removed)
            schedOps_->flow_removed(schedState_, f);
        flowPool_.put(memory);
        throw std::bad_alloc();
    }
    record.flows.emplace(account->name, std::move(account));
    ++flows_;
    return *f;
}

NamedFlow *Engine::knownFlow(const msfrs_class &c, const std::string_view name) const
{
    const auto &flows = records_[c.index]->flows;
    const auto found = flows.find(name);
    return found == flows.end() ? nullptr : found->second->flow;
}

const std::string &NamedFlow::name() const { return account->name; }
uint64_t NamedFlow::bytes() const { return account->bytes; }

void Engine::eachFlow(const msfrs_class &c, const std::function<void(const NamedFlow &)> &visit) const
{
    for (const auto &named : records_[c.index]->flows)
        visit(*named.second->flow);
}

void Engine::freeFlow(ClassRecord &record, NamedFlow &f)
{
    if (schedOps_->flow_removed)
        schedOps_->flow_removed(schedState_, &f);
    if (aqmOps_ && aqmOps_->flow_removed)
        aqmOps_->flow_removed(aqmState_, &f);
    record.flows.erase(record.flows.find(f.name()));
    --flows_;
    flowPool_.put(&f);
}

void Engine::forgetIdleFlows(const msfrs_time before, const msfrs_time anyway)
{
    const auto forgettable = scheduler().sched->flow_forgettable;
    for (auto &record : records_) {
        if (!record)
            continue;
        for (auto it = record->flows.begin(); it != record->flows.end();) {
            auto &f = *(it++)->second->flow; // freeFlow() erases the element just passed
            if (f.backlog || f.in_service || f.idleSince >= before)
                continue;
            if (f.idleSince < anyway || !forgettable || forgettable(schedInst_->state.get(), &f))
                freeFlow(*record, f);
        }
    }
}

Engine::ItemCosts &Engine::costsOf(const msfrs_item &item) const
{
    return *reinterpret_cast<ItemCosts *>(reinterpret_cast<uintptr_t>(&item) + costsAt_);
}

int64_t Engine::offeredCost(const ItemRecord &item) const
{
    return item.is(ItemRecord::Requeued) ? costsOf(item).offered : item.est[0];
}

size_t Engine::statesSize() const { return Aligned(scheduler().item_size) + (aqm() ? Aligned(aqm()->item_size) : 0); }

Engine::ItemRecord *Engine::createItem(msfrs_flow &f, const int64_t *const est, void *const host, const msfrs_time now)
{
    static_assert(sizeof(ItemRecord) == 128, "two cache lines");
    const auto memory = static_cast<char *>(itemPool_.get());
    const auto item = new (memory) ItemRecord{}; // zeroed
    if (costsAt_ > sizeof(ItemRecord))
        std::memset(memory + sizeof(ItemRecord), 0, costsAt_ - sizeof(ItemRecord));
    item->flow = &f;
    item->id = nextId_++;
    item->enqueued = now;
    item->host = host;
    item->remaining = MSFRS_UNKNOWN;
    for (uint32_t r = 0; r < resources_; ++r) {
        assert(est[r] >= 0);
        item->est[r] = est[r];
    }
    if (schedItem_)
        item->state = memory + schedItem_;
    if (aqmItem_)
        item->aqm_state = memory + aqmItem_;
    Count(totals_.offered, est[0]);
    return item;
}

size_t Engine::itemSize() const { return itemPool_.stride(); }

void Engine::freeItem(ItemRecord &item)
{
    auto &f = static_cast<NamedFlow &>(*item.flow);
    // not later than now, and exact enough to forget flows after minutes
    f.idleSince = std::max(f.idleSince, item.enqueued);
    itemPool_.put(&item);
}

void Engine::link(msfrs_item &item)
{
    auto &f = *item.flow;
    msfrs_item *after = f.tail; // the new item's predecessor
    if (const auto before = schedOps_->before) {
        while (after && before(schedState_, &item, after))
            after = after->prev;
    }
    item.prev = after;
    item.next = after ? after->next : f.head;
    (item.prev ? item.prev->next : f.head) = &item;
    (item.next ? item.next->prev : f.tail) = &item;
}

void Engine::unlink(msfrs_item &item)
{
    auto &f = *item.flow;
    (item.prev ? item.prev->next : f.head) = item.next;
    (item.next ? item.next->prev : f.tail) = item.prev;
    item.prev = item.next = nullptr;
}

void Engine::enterQueue(ItemRecord &item, const msfrs_time now)
{
    auto &f = *item.flow;
    item.set(ItemRecord::Queued, true);
    item.seq = item.seq ? nextId_++ : item.id; // one counter for both: a continuation's seq exceeds every id so far
    item.enqueued = now;
    link(item);
    countUser(f, 1);
    EachLevel(f, [cost = item.est[0], fresh = item.attained == 0](auto &of) {
        ++of.backlog;
        of.backlog_cost += cost;
        of.fresh += fresh;
    });
    backlogCost_ += item.est[0];
    if (pushOut_)
        pushOut_->changed(static_cast<NamedFlow &>(f));
    if (draws_) {
        assert(drawable_.size() < ItemRecord::MostDrawable);
        item.drawIndex(drawable_.size());
        drawable_.push_back(&item);
    }
    idleSince_ = 0;
    Count(totals_.queued, offeredCost(item));
}

void Engine::leaveQueue(ItemRecord &item, const msfrs_time now)
{
    auto &f = *item.flow;
    assert(item.is(ItemRecord::Queued));
    item.set(ItemRecord::Queued, false);
    unlink(item);
    EachLevel(f, [cost = item.est[0], fresh = item.attained == 0](auto &of) {
        --of.backlog;
        of.backlog_cost -= cost;
        of.fresh -= fresh;
    });
    backlogCost_ -= item.est[0];
    if (pushOut_)
        pushOut_->changed(static_cast<NamedFlow &>(f));
    if (draws_) {
        drawable_[item.drawIndex()] = drawable_.back();
        drawable_[item.drawIndex()]->drawIndex(item.drawIndex());
        drawable_.pop_back();
    }
    Uncount(totals_.queued, offeredCost(item));
    if (totals_.queued.items == 0)
        idleSince_ = now;
}

/// The engine's part of taking an item into service; the caller tells the scheduler.
void Engine::beginService(ItemRecord &item)
{
    EachLevel(*item.flow, [](auto &of) { ++of.in_service; });
    if (cost_ == Cost::Measured && !(item.is(ItemRecord::Requeued) && costsOf(item).used[0] < 0))
        std::fill_n(costsOf(item).used, resources_, 0);
    Count(totals_.inService, offeredCost(item));
}

void Engine::enterService(ItemRecord &item, const msfrs_time now)
{
    beginService(item);
    schedOps_->picked(schedState_, &item, now);
}

/// Ends an item that has left its queue unserved.
void Engine::drop(ItemRecord &item, const msfrs_time now, const msfrs_reason why)
{
    countUser(*item.flow, -1);
    schedOps_->removed(schedState_, &item, now, why);
    if (item.is(ItemRecord::Judged) && aqmOps_->removed) {
        const auto v = view();
        aqmOps_->removed(aqmState_, &item, &v, now, why);
    }
    Count(totals_.dropped, offeredCost(item));
    freeItem(item);
}

void Engine::leaveService(msfrs_item &item)
{
    EachLevel(*item.flow, [](auto &of) { --of.in_service; });
    countUser(*item.flow, -1);
}

/// Counts a flow among the users of its classes before its first item, or takes it out (by = -1) after its last.
void Engine::countUser(const msfrs_flow &f, const int by)
{
    if (f.backlog + f.in_service > 0)
        return;
    for (auto c = f.cls; c; c = c->parent)
        c->users += static_cast<uint32_t>(by);
}

msfrs_queue_view Engine::view() const
{
    msfrs_queue_view v{};
    v.length = static_cast<uint32_t>(totals_.queued.items);
    v.bytes = backlogCost_;
    v.idle_since = idleSince_;
    v.ctx = this;
    v.nth = [](const void *ctx, const uint32_t n) -> msfrs_item * {
        const auto &items = static_cast<const Engine *>(ctx)->drawable_;
        return n < items.size() ? items[n] : nullptr;
    };
    return v;
}

msfrs_item *Engine::adopt(msfrs_flow &f, const int64_t *const est, void *const host, msfrs_time now,
                          const int64_t attained, const bool inService, const int64_t remaining)
{
    assert(remaining >= MSFRS_UNKNOWN);
    now = at(now);
    const auto record = createItem(f, est, host, now);
    record->attained = attained;
    record->remaining = remaining;
    enterQueue(*record, now);
    schedOps_->enqueued(schedState_, record, now);
    if (inService)
        pickThis(*record, now);
    return record;
}

void Engine::settle(ItemRecord &item, const msfrs_time now)
{
    if (cost_ == Cost::Exact || !schedOps_->charged)
        return;
    const auto &used = costsOf(item).used;
    for (uint32_t r = 0; r < resources_; ++r) {
        if (used[r] < item.est[r])
            schedOps_->charged(schedState_, item.flow, &item, r, used[r] - item.est[r], now);
    }
}

void Engine::requeue(msfrs_item &item, const int64_t *const est, msfrs_time now, const int64_t coming)
{
    auto &record = static_cast<ItemRecord &>(item);
    assert(!record.is(ItemRecord::Queued) && coming >= 0 && (coming == 0 || cost_ == Cost::Measured));
    now = at(now);
    if (coming > 0)
        use(item, 0, coming, now);
    settle(record, now);
    if (cost_ == Cost::Measured) {
        std::fill_n(costsOf(record).used, resources_, 0);
        costsOf(record).used[0] = -coming;
    }
    leaveService(item); // enterQueue() counts the user again
    Uncount(totals_.inService, offeredCost(record));
    if (!record.is(ItemRecord::Requeued)) {
        costsOf(record).offered = item.est[0];
        record.set(ItemRecord::Requeued, true);
    }
    for (uint32_t r = 0; r < resources_; ++r)
        item.est[r] = est[r];
    enterQueue(record, now);
    schedOps_->enqueued(schedState_, &item, now);
}

void Engine::remove(msfrs_item &item, msfrs_time now, const msfrs_reason why)
{
    auto &record = static_cast<ItemRecord &>(item);
    now = at(now);
    if (cost_ == Cost::Measured && record.is(ItemRecord::Requeued) && costsOf(record).used[0] < 0 && schedOps_->charged)
        schedOps_->charged(schedState_, item.flow, nullptr, 0, costsOf(record).used[0], now);
    leaveQueue(record, now);
    drop(record, now, why);
}

void Engine::done(msfrs_item &item, msfrs_time now)
{
    auto &record = static_cast<ItemRecord &>(item);
    assert(!record.is(ItemRecord::Queued));
    now = at(now);
    settle(record, now);
    leaveService(item);
    if (schedOps_->done)
        schedOps_->done(schedState_, &item, now);
    Uncount(totals_.inService, offeredCost(record));
    Count(totals_.done, offeredCost(record));
    item.enqueued = now;
    freeItem(record);
}

int64_t Engine::unused(const msfrs_item &item, const uint32_t resource) const
{
    const auto used = cost_ == Cost::Measured ? costsOf(item).used[resource] : 0;
    return std::max<int64_t>(item.est[resource] - used, 0);
}

bool Engine::isQueued(const msfrs_item &item) const
{
    return static_cast<const ItemRecord &>(item).is(ItemRecord::Queued);
}

bool Engine::isMarked(const msfrs_item &item) const
{
    return static_cast<const ItemRecord &>(item).is(ItemRecord::Marked);
}

std::vector<double> Engine::gauges(const msfrs_class *const c) const
{
    return Read(scheduler(), schedOps_->gauges, schedState_, c);
}

std::vector<double> Engine::aqmGauges(const msfrs_class *const c) const
{
    return aqmOps_ ? Read(*aqm(), aqmOps_->gauges, aqmState_, c) : std::vector<double>();
}

} // namespace msfrs
