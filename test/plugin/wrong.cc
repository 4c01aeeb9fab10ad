// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A scheduler, or with -DWRONG_AQM an AQM, whose answers are invalid from the n-th call on.
#include "plugin/msfrs_plugin.h"

namespace {

struct Instance {
    int64_t after, fault, asked;
    msfrs_flow *flow;   ///< the latest with a queued item
    msfrs_item *served; ///< the latest that was picked
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }

int Init(void *const inst, const msfrs_host *, const msfrs_value *const params, char *, size_t)
{
    Self(inst).after = params[0].i;
    Self(inst).fault = params[1].i;
    return 0;
}

bool Wrong(Instance &self) { return ++self.asked > self.after; }

#ifdef WRONG_AQM
enum { Verdict, Victim, Turn, TurnBoth };
constexpr const char *Faults = "verdict|victim|turn|turn-both", *Default = "verdict";

msfrs_verdict Admit(void *const inst, msfrs_item *, const msfrs_queue_view *, msfrs_time, msfrs_item **const victim)
{
    auto &self = Self(inst);
    if (self.fault > Victim || !Wrong(self))
        return MSFRS_ACCEPT;
    if (self.fault == Verdict)
        return static_cast<msfrs_verdict>(17);
    *victim = self.served;
    return MSFRS_DROP_BOTH;
}

msfrs_verdict Dequeued(void *const inst, msfrs_item *const i, const msfrs_queue_view *, msfrs_time)
{
    auto &self = Self(inst);
    self.served = i;
    if (self.fault < Turn || !Wrong(self))
        return MSFRS_ACCEPT;
    return self.fault == Turn ? static_cast<msfrs_verdict>(-1) : MSFRS_DROP_BOTH;
}

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, Dequeued, nullptr, nullptr,
};
#else
enum { Served, Continued, Silence, Past, Many, None, NotANumber, Stranger, Two, Flood, Refuse, RefuseItem };
constexpr const char *Default = "served",
                     *Faults = "served|continued|silence|past|many|none|nan|stranger|two|flood|refuse|refuse-item";

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time) { Self(inst).flow = i->flow; }

msfrs_item *Pick(void *const inst, const msfrs_time now, const msfrs_pick mode, msfrs_time *const wakeAt)
{
    auto &self = Self(inst);
    if (mode == MSFRS_PICK_FRESH)
        return self.fault == Continued && Wrong(self) ? self.flow->head : nullptr;
    if (self.fault == Continued || self.fault > Past || !Wrong(self))
        return self.flow->head;
    if (self.fault == Past)
        *wakeAt = now;
    return self.fault == Served ? self.served : nullptr;
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time) { Self(inst).served = i; }
void Removed(void *, msfrs_item *, msfrs_time, msfrs_reason) {}

void Save(void *const inst, const msfrs_move *const move, msfrs_time)
{
    auto &self = Self(inst);
    const auto fault = self.fault >= Many && Wrong(self) ? self.fault : -1;
    double figures[MSFRS_MOST_KEPT + 1] = {fault == NotANumber ? __builtin_nan("") : 1};
    msfrs_owner whose{};
    if (fault == Two)
        whose = {move->classes[0], move->flows[0], nullptr};
    else if (fault == Stranger)
        whose.flow = reinterpret_cast<msfrs_flow *>(&self);
    else if (fault == RefuseItem)
        whose.item = move->served[0];
    const uint32_t n = fault == Many ? MSFRS_MOST_KEPT + 1 : fault == None ? 0 : 1;
    for (int times = fault == Flood ? 1000 : 1; times > 0; --times)
        move->put(move->ctx, &whose, figures, n);
}

int Restore(void *const inst, const msfrs_owner *const whose, const double *, uint32_t, msfrs_time)
{
    const auto fault = Self(inst).fault;
    return (fault == Refuse && Wrong(Self(inst))) || (fault == RefuseItem && whose->item) ? -1 : 0;
}

void Resumed(void *const inst, msfrs_item *const i, const int served, msfrs_time)
{
    if (served)
        Self(inst).served = i;
    Self(inst).flow = i->flow;
}

const msfrs_sched_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, nullptr, nullptr, nullptr, nullptr, Save, Restore, Resumed,
};
#endif

const msfrs_param Params[] = {
    {"after", MSFRS_INT, "", "0", 0, 1e9, nullptr, "how often it is right before"},
    {"fault", MSFRS_CHOICE, "", Default, 0, 0, Faults, "what it answers then"},
};

} // namespace

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin),
#ifdef WRONG_AQM
    MSFRS_AQM, MSFRS_DROPS_QUEUED, "wrong-aqm",
#else
    MSFRS_SCHED, MSFRS_HAS_RESERVE, "wrong-sched",
#endif
    "answers what it must not", "none: a test", sizeof(Instance), 0, 0, 0,
    Params, sizeof(Params) / sizeof(*Params), nullptr, 0,
#ifdef WRONG_AQM
    nullptr, &Ops,
#else
    &Ops, nullptr,
#endif
    sizeof(Ops),
#ifndef WRONG_AQM
    1,
#endif
};
