// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/sim/shop/shop.h"

#include <algorithm>
#include <cassert>

namespace msfrs::sim {

namespace {

/// The link's rate is given once: the scheduler must weigh bytes as the shop does.
std::vector<msfrs_value> Parameters(const msfrs_plugin &plugin, std::vector<Setting> settings, const int64_t rate)
{
    const auto named = [](const std::string &name) { return [&name](const auto &s) { return name == s.name; }; };
    const std::string key = "rate";
    if (std::any_of(plugin.params, plugin.params + plugin.n_params, named(key)) &&
            std::none_of(settings.begin(), settings.end(), named(key)))
        settings.push_back({key, std::to_string(rate)});
    return ParseParams(plugin, settings);
}

constexpr msfrs_time Nanoseconds(const Ticks t) { return t / (TicksPerSecond / 1'000'000'000); }

} // namespace

Shop::Shop(PluginPtr plugin, std::vector<Setting> settings, const uint32_t resources, const int64_t rate,
           const uint64_t seed): resources_(resources), rate_(rate), random_(seed)
{
    assert(rate > 0);
    auto params = Parameters(plugin->ops(), std::move(settings), rate);
    engine_ = std::make_unique<Engine>(Engine::Part{std::move(plugin), std::move(params)}, Engine::Part{},
                                       Engine::Cost::Exact, resources, 0,
                                       EngineHost{[](int, const std::string &) {}, [this] { return random_(); }});
}

Shop::~Shop() { clock_.run(Forever); } // the engine's host must complete all items in service

uint32_t Shop::addFlow(const double weight)
{
    const auto number = static_cast<uint32_t>(flows_.size());
    auto *const c = engine_->addClass("flow " + std::to_string(number + 1), weight);
    flows_.push_back({&engine_->flow(*c, "")});
    return number;
}

void Shop::setWeight(const uint32_t flow, const double weight) { engine_->setWeight(*flows_[flow].flow->cls, weight); }

void Shop::keep(const uint32_t flow, const Need &need, const uint32_t depth)
{
    flows_[flow].need = need;
    flows_[flow].depth = depth;
    refill(flow);
}

void Shop::arrive(const uint32_t flow, const Ticks when, const Need &need)
{
    assert(when >= clock_.now());
    ++coming_;
    clock_.at(when, [this, flow, when, need] {
        --coming_;
        offer(flow, need, when);
    });
}

void Shop::offer(const uint32_t flow, const Need &need, const Ticks when)
{
    if (spare_.empty())
        spare_.push_back(&packets_.emplace_back());
    auto *const packet = spare_.back();
    spare_.pop_back();
    *packet = {flow, when};
    msfrs_item *item = nullptr;
    engine_->offer(*flows_[flow].flow, need.data(), packet, Nanoseconds(when), item);
    assert(item); // there is no AQM and no limit
}

void Shop::refill(const uint32_t flow)
{
    auto &f = flows_[flow];
    while (f.flow->backlog < f.depth)
        offer(flow, f.need, clock_.now());
}

void Shop::begin(msfrs_item &item)
{
    const auto &packet = *static_cast<Packet *>(item.host);
    Visit visit{packet.flow, item.id, packet.arrived, 0, 0, TimesOf(item, resources_, rate_)};
    visit.start = std::max(clock_.now(), firstFree_ + Gap(last_, visit.times, resources_));
    visit.finish = visit.start + visit.times.sum(0, resources_);
    firstFree_ = visit.start + visit.times.on[0];
    last_ = visit.times;
    clock_.at(visit.finish, [this, &item, finish = visit.finish] {
        spare_.push_back(static_cast<Packet *>(item.host));
        engine_->done(item, Nanoseconds(finish));
    });
    refill(visit.flow);
    if (served)
        served(visit);
}

uint64_t Shop::run(const Ticks until, const uint64_t packets)
{
    uint64_t begun = 0;
    const auto waiting = [this] { return engine_->totals().queued.items > 0; };
    while (begun < packets) {
        while (!waiting() && coming_ > 0 && *clock_.next() <= until)
            clock_.run(*clock_.next());
        if (!waiting() && coming_ == 0)
            break;
        const auto next = std::max(clock_.now(), firstFree_);
        clock_.run(std::min(next, until));
        if (!waiting() || next > until)
            break;
        msfrs_time wake = 0;
        auto *const item = engine_->pick(Nanoseconds(clock_.now()), MSFRS_PICK_ANY, wake);
        if (!item) { // the scheduler paces itself
            assert(wake > Nanoseconds(clock_.now()));
            firstFree_ = std::max(firstFree_, wake * (TicksPerSecond / 1'000'000'000));
            continue;
        }
        begin(*item);
        ++begun;
    }
    return begun;
}

} // namespace msfrs::sim
