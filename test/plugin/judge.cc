// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// An AQM with verdicts by count, so that a test knows them beforehand. Like the checker, it logs the engine's errors
/// at level 0: calls out of order, memory that is not its own, an inconsistent queue view.
#include "plugin/msfrs_plugin.h"

namespace {

struct ItemState {
    uint64_t mark; ///< Admitted while it lives
    unsigned char zero[24];
};

struct Instance {
    const msfrs_host *host;
    int64_t every, verdict, rash, turn;
    uint64_t arrivals, turns;
    msfrs_time latest;
};

constexpr uint64_t Admitted = 0x61646d69;
constexpr uint64_t Left = 0x6c656674;

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ItemState &Of(const msfrs_item *const i) { return *static_cast<ItemState *>(i->aqm_state); }

void Demand(const Instance &self, const bool holds, const char *const what)
{
    if (!holds)
        self.host->log(self.host->ctx, 0, what);
}

void CheckView(Instance &self, const msfrs_queue_view &q, const msfrs_time now)
{
    Demand(self, now >= self.latest, "time went back");
    self.latest = now;
    int64_t bytes = 0;
    for (uint32_t n = 0; n < q.length; ++n) {
        const auto *const i = q.nth(q.ctx, n);
        Demand(self, i, "queue view: nth() has nothing within the length");
        if (i)
            bytes += i->est[0];
    }
    Demand(self, !q.nth(q.ctx, q.length), "queue view: nth() has something beyond the length");
    Demand(self, bytes == q.bytes, "queue view: bytes is not the sum of est[0]");
    Demand(self, q.length == 0 || q.idle_since == 0, "queue view: not empty, and idle");
}

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *, size_t)
{
    Self(inst).host = host;
    Self(inst).every = params[0].i;
    Self(inst).verdict = params[1].i;
    Self(inst).rash = params[3].i;
    Self(inst).turn = params[4].i;
    return params[2].i ? -1 : 0;
}

/// The verdict on the n-th item.
msfrs_verdict Judged(const Instance &self, const msfrs_item &i, const uint64_t n, const bool here)
{
    const bool judged = here && self.every && n % static_cast<uint64_t>(self.every) == 0;
    const auto verdict = judged ? static_cast<msfrs_verdict>(self.verdict) : MSFRS_ACCEPT;
    return verdict == MSFRS_MARK && !self.rash && !(i.flags & MSFRS_ECN_CAPABLE) ? MSFRS_DROP : verdict;
}

msfrs_verdict Admit(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now,
                    msfrs_item **const victim)
{
    auto &self = Self(inst);
    CheckView(self, *q, now);
    Demand(self, Of(i).mark == 0, "admit: the item's state is not zeroed");
    for (const auto b : Of(i).zero)
        Demand(self, b == 0, "admit: the item's state is not zeroed");
    Of(i).mark = Admitted;
    const auto verdict = Judged(self, *i, ++self.arrivals, !self.turn);
    if (verdict == MSFRS_DROP_BOTH && q->length > 0)
        *victim = q->nth(q->ctx, static_cast<uint32_t>(self.host->random(self.host->ctx) % q->length));
    return verdict;
}

msfrs_verdict Dequeued(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now)
{
    auto &self = Self(inst);
    CheckView(self, *q, now);
    Demand(self, Of(i).mark == Admitted, "dequeued: not admitted, left before, or its state was written over");
    Of(i).mark = Left;
    return Judged(self, *i, ++self.turns, self.turn);
}

void Removed(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now, msfrs_reason)
{
    CheckView(Self(inst), *q, now);
    Demand(Self(inst), Of(i).mark == Admitted, "removed: not admitted, left before, or its state was written over");
    Of(i).mark = Left;
}

const msfrs_param Params[] = {
    {"every", MSFRS_INT, "items", "3", 0, 1e6, nullptr, "judges every n-th; 0: none"},
    {"verdict", MSFRS_CHOICE, "", "both", 0, 0, "accept|drop|mark|both", "what becomes of it"},
    {"refuse", MSFRS_BOOL, "", "off", 0, 0, nullptr, "whether to refuse to start"},
    {"rash", MSFRS_BOOL, "", "off", 0, 0, nullptr, "whether to mark what cannot be marked"},
    {"when", MSFRS_CHOICE, "", "arrival", 0, 0, "arrival|turn", "whether they come or go"},
};

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, Dequeued, Removed, nullptr,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin), MSFRS_AQM,
    MSFRS_DROPS_QUEUED | MSFRS_MAY_MARK, "judge", "judges every n-th arrival", "none: a test",
    sizeof(Instance), 0, 0, sizeof(ItemState),
    Params, sizeof(Params) / sizeof(*Params), nullptr, 0, nullptr, &Ops, sizeof(Ops),
};
