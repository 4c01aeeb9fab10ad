// SPDX-License-Identifier: GPL-2.0-or-later
#include "satellites/middlebox/box.h"

#include "plugin/number.h"

#include <algorithm>
#include <sstream>

namespace msfrs::middlebox {

Box::Box(std::unique_ptr<edge::Schedule> schedule, const CpuConfig &config, const std::function<uint64_t()> &random,
         std::function<int64_t()> cpuTime, edge::Verdicts &verdicts, const msfrs_time now):
    schedule_(std::move(schedule)), config_(config), cpu_(config, random, std::move(cpuTime), now),
    verdicts_(verdicts), pacer_(schedule_->config().link.rate, schedule_->config().link.burst, now),
    counts_(schedule_->config().classes.size()), functions_(counts_.size()),
    victim_([this](msfrs_item &item) {
        lose(*static_cast<Packet *>(item.host));
        return true;
    }),
    lost_([this](void *const packet) { lose(*static_cast<Packet *>(packet)); })
{
    for (size_t n = 0; n < config_.functions.size(); ++n)
        functions_[config_.functions[n].cls] = n;
}

Box::~Box()
{
    for (auto *const item : processed_) // the engine requires items in service to be completed
        schedule_->engine().done(*item, schedule_->engine().latest());
}

std::optional<size_t> Box::functionOf(const Packet &p) const
{
    return p.traits.readable ? functions_[p.cls] : std::nullopt;
}

void Box::lose(Packet &p)
{
    counts_[p.cls].dropped.add(p.traits.length);
    verdicts_.give(p.id, false, {});
    packets_.erase(p.self);
}

void Box::arrive(const edge::Arrival &a, const msfrs_time now)
{
    auto &p = packets_.emplace_back();
    p.self = --packets_.end();
    p.id = a.id;
    edge::ReadTraits(a, p.traits);
    p.cls = schedule_->classOf(p.traits);
    counts_[p.cls].offered.add(p.traits.length);
    int64_t cost[MSFRS_RESOURCES] = {edge::PacketPath::onLink(schedule_->config().link, p.traits)};
    if (const auto function = functionOf(p)) {
        p.bytes.assign(a.data, a.data + a.captured);
        cost[1] = config_.estimate(*function, p.traits.length);
    }
    msfrs_item *item = nullptr;
    const auto offered =
        schedule_->engine().offer(schedule_->flowOf(p.traits, p.cls), cost, &p, now, item, victim_);
    if (offered == Engine::Offer::Dropped)
        lose(p);
    service(now);
}

/// Idle time of one resource that the other caused is not compensated.
void Box::service(const msfrs_time now)
{
    auto &engine = schedule_->engine();
    retry_.reset();
    for (;;) {
        while (!processed_.empty() && pacer_.ready(now)) {
            release(*processed_.front(), now);
            processed_.pop_front();
        }
        if (engine.totals().queued.items == 0 || processed_.size() >= MostProcessed) {
            processorIdle_ = true;
            return;
        }
        if (processorIdle_)
            cpu_.wake(now);
        processorIdle_ = false;
        if (!cpu_.ready(now))
            return;
        auto *const item = schedule_->pick(now, lost_, retry_);
        if (!item && !retry_)
            continue;
        if (!item)
            return;
        if (processed_.empty())
            pacer_.wake(now);
        process(*item, now);
        processed_.push_back(item);
    }
}

void Box::process(msfrs_item &item, const msfrs_time now)
{
    auto &p = *static_cast<Packet *>(item.host);
    if (const auto function = functionOf(p))
        cpu_.process(*function, {{p.bytes.data(), p.bytes.size()}, p.traits.key}, now);
    p.bytes = {};
}

void Box::release(msfrs_item &item, const msfrs_time now)
{
    auto &p = *static_cast<Packet *>(item.host);
    pacer_.sent(item.est[0], now);
    counts_[p.cls].passed.add(p.traits.length);
    verdicts_.give(p.id, true, {});
    schedule_->engine().done(item, now);
    packets_.erase(p.self);
}

std::optional<msfrs_time> Box::next() const
{
    const bool queued = schedule_->engine().totals().queued.items != 0;
    if (!processed_.empty() && (!queued || processed_.size() >= MostProcessed))
        return pacer_.next();
    if (!queued)
        return {};
    const auto processor = retry_ ? *retry_ : cpu_.next();
    return processed_.empty() ? processor : std::min(pacer_.next(), processor);
}

void Box::flush(const msfrs_time now)
{
    for (auto *const item : processed_)
        release(*item, now);
    processed_.clear();
    schedule_->pickAll(now, lost_, [this](msfrs_item &item, const msfrs_time at) { release(item, at); });
}

std::string Box::report() const
{
    const auto &classes = schedule_->config().classes;
    std::ostringstream out;
    for (size_t n = 0; n < classes.size(); ++n) {
        if (classes[n].interior)
            continue;
        const auto &c = counts_[n];
        out << "class " << classes[n].name << ": offered " << c.offered.packets << " packets " << c.offered.bytes
            << " bytes, dropped " << c.dropped.packets << " packets, passed " << c.passed.packets << " packets "
            << c.passed.bytes << " bytes\n";
    }
    for (size_t n = 0; n < config_.functions.size(); ++n) {
        const auto &f = config_.functions[n];
        const auto &use = cpu_.use(n);
        out << "function " << f.kind->name << " of class " << classes[f.cls].name << ": packets " << use.packets
            << ", bytes " << use.bytes << ", estimated_seconds " << Number(static_cast<double>(use.estimated) * 1e-9)
            << ", processor_seconds " << Number(static_cast<double>(use.measured) * 1e-9);
        for (const auto &count : cpu_.function(n).counts())
            out << ", " << count.name << " " << count.value;
        out << "\n";
    }
    return out.str();
}

} // namespace msfrs::middlebox
