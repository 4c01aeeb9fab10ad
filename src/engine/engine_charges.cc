// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Charges items and flows, and tracks what remains of items: the part of the engine that counts bytes.
#include "engine/engine_records.h"

#include <algorithm>
#include <cassert>

namespace msfrs {

void Engine::expect(msfrs_item &item, const int64_t remaining, msfrs_time now)
{
    assert(remaining >= MSFRS_UNKNOWN && cost_ == Cost::Measured);
    if (item.remaining == remaining)
        return;
    now = at(now);
    const auto old = item.remaining;
    const bool sorted = isQueued(item) && schedOps_->before;
    if (sorted)
        unlink(item);
    item.remaining = remaining;
    if (sorted)
        link(item);
    if (schedOps_->expected)
        schedOps_->expected(schedState_, &item, old, now);
}

void Engine::charge(msfrs_item &item, const uint32_t resource, const int64_t amount, msfrs_time now)
{
    assert(!isQueued(item) && amount >= 0 && resource < resources_ && cost_ == Cost::Measured);
    use(item, resource, amount, at(now));
    if (resource == 0)
        static_cast<NamedFlow &>(*item.flow).account->bytes += static_cast<uint64_t>(amount);
}

/// Charges the scheduler for the bytes beyond the estimate.
void Engine::use(msfrs_item &item, const uint32_t resource, const int64_t amount, const msfrs_time now)
{
    auto &used = costsOf(static_cast<ItemRecord &>(item)).used[resource];
    const auto covered = std::max<int64_t>(item.est[resource] - used, 0);
    used += amount;
    if (resource == 0)
        item.attained += amount;
    if (amount > covered && schedOps_->charged)
        schedOps_->charged(schedState_, item.flow, &item, resource, amount - covered, now);
}

void Engine::forfeit(msfrs_item &item)
{
    auto &used = costsOf(item).used[0];
    used = std::max(used, item.est[0]);
}

void Engine::chargeQueued(msfrs_item &item, const int64_t amount, const msfrs_time now)
{
    auto &record = static_cast<ItemRecord &>(item);
    assert(record.is(ItemRecord::Queued) && amount >= 0);
    auto &used = costsOf(record).used[0];
    const auto covered = record.is(ItemRecord::Requeued) ? std::min(std::max<int64_t>(-used, 0), amount) : 0;
    used += covered;
    static_cast<NamedFlow &>(*item.flow).account->bytes += static_cast<uint64_t>(covered);
    if (amount > covered)
        chargeFlow(*item.flow, amount - covered, now);
}

void Engine::chargeFlow(msfrs_flow &f, const int64_t amount, msfrs_time now)
{
    assert(amount >= 0);
    static_cast<NamedFlow &>(f).account->bytes += static_cast<uint64_t>(amount);
    static_cast<NamedFlow &>(f).idleSince = at(now);
    chargeElsewhere(f, amount, now);
}

void Engine::chargeElsewhere(msfrs_flow &f, const int64_t amount, msfrs_time now, const bool served)
{
    now = at(now);
    if (served)
        f.elsewhere = now;
    if (schedOps_->charged)
        schedOps_->charged(schedState_, &f, nullptr, 0, amount, now);
}

} // namespace msfrs
