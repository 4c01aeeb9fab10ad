// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Asks the plugins (may it queue, which is next, may it go), checks their answers and carries them out.
#include "engine/engine_records.h"
#include "engine/push_out.h"

#include <cassert>

namespace msfrs {

namespace {

/// \param verdict as a number: a value outside the enum must not be taken for one inside
std::string UnknownVerdict(const int verdict, const char *const call, const char *const allowed)
{
    return std::string(call) + " answered with verdict " + std::to_string(verdict) + "; allowed are " + allowed;
}

} // namespace

void FailPlugin(const msfrs_plugin &p, const std::string &answer)
{
    throw PluginError((p.kind == MSFRS_AQM ? "AQM " : "scheduler ") + std::string(p.name) + " is wrong: " + answer);
}

void Engine::pushOut(const int64_t packet)
{
    assert(classList_.empty() && (!aqmOps_ || (aqm()->flags & MSFRS_NO_LIMIT)));
    pushOut_ = std::make_unique<PushOut>(packet);
}

bool Engine::makeRoom(msfrs_flow &f, const int64_t cost, const msfrs_time now,
                      const std::function<bool(msfrs_item &)> &victim)
{
    if (!pushOut_)
        return false;
    const auto &longest = pushOut_->longest(static_cast<NamedFlow &>(f), cost);
    auto *const last = longest.tail;
    if (&longest == &f || (victim && !victim(*last)))
        return false;
    remove(*last, now, MSFRS_DROPPED);
    return true;
}

Engine::Offer Engine::offer(msfrs_flow &f, const int64_t *const est, void *const host, msfrs_time now,
                            msfrs_item *&item, const std::function<bool(msfrs_item &)> &victim, const uint32_t flags,
                            const int64_t remaining)
{
    assert(remaining >= MSFRS_UNKNOWN);
    item = nullptr;
    now = at(now);
    const auto record = createItem(f, est, host, now);
    record->flags = flags;
    record->remaining = remaining;
    const bool room = !limit_ || totals_.queued.items < limit_ || makeRoom(f, est[0], now, victim);
    const auto turnAway = [&] {
        Count(totals_.dropped, offeredCost(*record));
        freeItem(*record);
    };
    int verdict = room ? MSFRS_ACCEPT : MSFRS_DROP;
    if (aqmOps_ && room) {
        const auto v = view();
        msfrs_item *chosen = nullptr;
        verdict = aqmOps_->admit(aqmState_, record, &v, now, &chosen);
        if (verdict < MSFRS_ACCEPT || verdict > MSFRS_DROP_BOTH) {
            turnAway();
            FailPlugin(*aqm(), UnknownVerdict(verdict, "admit", "0 (ACCEPT) to 3 (DROP_BOTH)"));
        }
        if (verdict == MSFRS_DROP_BOTH && chosen) {
            if (!isQueued(*chosen)) {
                turnAway();
                FailPlugin(*aqm(), "admit named a victim that is not queued");
            }
            if (!victim || victim(*chosen))
                remove(*chosen, now, MSFRS_DROPPED);
        }
    }
    const bool marked = verdict == MSFRS_MARK && (flags & MSFRS_ECN_CAPABLE);
    if (verdict != MSFRS_ACCEPT && !marked) {
        turnAway();
        return Offer::Dropped;
    }
    if (aqmOps_) {
        record->set(ItemRecord::Marked, marked);
        record->set(ItemRecord::Judged, true);
    }
    enterQueue(*record, now);
    schedOps_->enqueued(schedState_, record, now);
    item = record;
    return marked ? Offer::Marked : Offer::Queued;
}

/// Asks the AQM whether an item that was taken out of its queue may go.
/// \throws PluginError; the item is in service
bool Engine::letsGo(ItemRecord &item, const msfrs_time now)
{
    // Adopted items and continuations were never admitted: an AQM that counts would see them leave twice.
    if (!item.is(ItemRecord::Judged))
        return true;
    item.set(ItemRecord::Judged, false);
    if (!aqmOps_->dequeued)
        return true;
    const auto v = view();
    const int verdict = aqmOps_->dequeued(aqmState_, &item, &v, now);
    switch (verdict) {
    case MSFRS_ACCEPT: return true;
    case MSFRS_DROP: return false;
    case MSFRS_MARK: item.set(ItemRecord::Marked, item.flags & MSFRS_ECN_CAPABLE); return isMarked(item);
    }
    enterService(item, now);
    FailPlugin(*aqm(), UnknownVerdict(verdict, "dequeued", "0 (ACCEPT), 1 (DROP) and 2 (MARK)"));
}

msfrs_item *Engine::pick(msfrs_time now, const msfrs_pick mode, msfrs_time &wakeAt, const Lost &lost)
{
    if (mode == MSFRS_PICK_FRESH && !(scheduler().flags & MSFRS_HAS_RESERVE))
        return nullptr;
    while (totals_.queued.items > 0) {
        now = at(now);
        if (mode == MSFRS_PICK_ANY)
            wakeAt = 0;
        const auto chosen = schedOps_->pick(schedState_, now, mode, &wakeAt);
        if (!chosen) {
            if (mode == MSFRS_PICK_ANY && wakeAt <= now)
                FailPlugin(scheduler(), "pick named neither an item, of a backlog, nor a time to come");
            return nullptr;
        }
        if (!isQueued(*chosen) || (mode == MSFRS_PICK_FRESH && chosen->attained > 0))
            FailPlugin(scheduler(), isQueued(*chosen)
                                        ? "pick named an item that has had service, asked for a fresh one"
                                        : "pick named an item that is not queued");
        auto &record = static_cast<ItemRecord &>(*chosen);
        leaveQueue(record, now);
        if (letsGo(record, now)) {
            enterService(record, now);
            return chosen;
        }
        void *const host = record.host;
        drop(record, now, MSFRS_DROPPED);
        if (lost)
            lost(host);
    }
    return nullptr;
}

void Engine::pickThis(msfrs_item &item, msfrs_time now)
{
    auto &record = static_cast<ItemRecord &>(item);
    now = at(now);
    leaveQueue(record, now);
    letsGo(record, now);
    enterService(record, now);
}

} // namespace msfrs
