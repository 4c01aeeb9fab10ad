// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// A scheduler, or with -DWRONG_AQM an AQM, that from the n-th time it is asked on answers what it must not.
#include "plugin/msfrs_plugin.h"

namespace {

struct Instance {
    int64_t after, fault, asked;
    msfrs_flow *flow;   ///< the latest that queued
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
enum { Served, Continued, Silence, Past };
constexpr const char *Faults = "served|continued|silence|past", *Default = "served";

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time) { Self(inst).flow = i->flow; }

msfrs_item *Pick(void *const inst, const msfrs_time now, const msfrs_pick mode, msfrs_time *const wakeAt)
{
    auto &self = Self(inst);
    if (mode == MSFRS_PICK_FRESH)
        return self.fault == Continued && Wrong(self) ? self.flow->head : nullptr;
    if (self.fault == Continued || !Wrong(self))
        return self.flow->head;
    if (self.fault == Past)
        *wakeAt = now;
    return self.fault == Served ? self.served : nullptr;
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time) { Self(inst).served = i; }
void Removed(void *, msfrs_item *, msfrs_time, msfrs_reason) {}

const msfrs_sched_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, nullptr, nullptr, nullptr, nullptr,
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
};
