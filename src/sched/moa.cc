// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// moa: the minimum-service order arbiter of MSF-RS exactly as in the paper, to compare with; msf.cc is the product's.
///
/// Paper: Tsao, Lai, Tsao, Lin, "On applying fair queuing discipline to schedule requests at access gateway for
/// downlink differential QoS", Computer Networks (2008), section 3.1, equation (1), figure 3.
///
///     SC_i += L / (w_i * UC_i)      for every piece of a response of L bytes, with the UC of that moment   (1)
///     next:  of the class with the least SC, the request that arrived first; of equal classes the one with the
///            greatest w_i * UC_i
///     an idle class that gets a request takes the least SC of the active classes; if all are idle, every SC is 0
///
/// Traffic of a class that no request caused counts as its service (section 6). A continuation, which the paper does not
/// have, arrives anew. The paper has no reserve.
///
/// Cost: a release or a charge is O(log classes); a class that becomes active O(classes).
#include "plugin/describe.h"
#include "sched/heap.h"
#include "sched/item_list.h"
#include "sched/kept.h"

#include <algorithm>
#include <new>
#include <vector>

namespace msfrs::moa {
namespace {

struct ClassState {
    msfrs_class *cls;
    ItemList items;
    uint32_t place; ///< in Instance::queued

    double share() const { return cls->weight * std::max(cls->users, 1u); } ///< w_i * UC_i
};

struct Traits {
    static uint32_t &Place(ClassState &c) { return c.place; }
    static double Key(const ClassState &c) { return *c.cls->service; }
    static bool Before(const ClassState &a, const ClassState &b)
    {
        return a.share() != b.share() ? a.share() > b.share() : a.cls->index < b.cls->index;
    }
};

struct Instance {
    std::vector<ClassState *> all;
    Heap<ClassState, Traits> queued; ///< classes with a backlog
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }

/// SC, UC or the weight of a class may have changed.
void Settle(Instance &self, ClassState &c) { self.queued.settle(c, !c.items.empty()); }

int Init(void *const inst, const msfrs_host *, const msfrs_value *, char *, size_t)
{
    new (inst) Instance();
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

int ClassAdded(void *const inst, msfrs_class *const c)
{
    auto &state = StateOf(c);
    state.cls = c;
    Self(inst).all.push_back(&state);
    return 0;
}

void ClassChanged(void *const inst, msfrs_class *const c, double) { Settle(Self(inst), StateOf(c)); }

void ClassRemoved(void *const inst, msfrs_class *const c)
{
    auto &all = Self(inst).all;
    all.erase(std::find(all.begin(), all.end(), &StateOf(c)));
}

void Append(Instance &self, msfrs_item &i)
{
    auto &cls = StateOf(i.flow->cls);
    cls.items.append(i);
    Settle(self, cls);
}

/// An idle class gets a request.
void Wake(Instance &self, ClassState &waking)
{
    const ClassState *least = nullptr;
    for (const auto c : self.all) {
        if (c != &waking && c->cls->users > 0 && (!least || *c->cls->service < *least->cls->service))
            least = c;
    }
    if (least) {
        *waking.cls->service = *least->cls->service;
        return;
    }
    for (const auto c : self.all)
        *c->cls->service = 0; // none of them is in the heap
}

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    const auto &cls = *i->flow->cls;
    if (cls.backlog == 1 && cls.in_service == 0 && i->attained == 0)
        Wake(self, StateOf(&cls));
    Append(self, *i);
}

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    const auto least = Self(inst).queued.top();
    return least ? least->items.head() : nullptr;
}

void Spend(Instance &self, msfrs_class &c, const int64_t amount)
{
    *c.service = std::max(*c.service + static_cast<double>(amount) / StateOf(&c).share(), 0.0);
    Settle(self, StateOf(&c));
}

void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason)
{
    auto &cls = StateOf(i->flow->cls);
    cls.items.erase(*i);
    Settle(Self(inst), cls);
}

void Picked(void *const inst, msfrs_item *const i, const msfrs_time now)
{
    Removed(inst, i, now, MSFRS_GONE);
    Spend(Self(inst), *i->flow->cls, i->est[0]);
}

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *, const uint32_t resource, const int64_t amount,
             msfrs_time)
{
    if (resource == 0)
        Spend(Self(inst), *f->cls, amount);
}

/// UC may have changed.
void Done(void *const inst, msfrs_item *const i, msfrs_time) { Settle(Self(inst), StateOf(i->flow->cls)); }

void Gauges(void *, const msfrs_class *const c, double *const out) { out[0] = c ? *c->service : 0; }

void Save(void *, const msfrs_move *const move, msfrs_time)
{
    for (uint32_t n = 0; n < move->n_classes; ++n)
        Put(*move, {move->classes[n], nullptr, nullptr}, std::array{*move->classes[n]->service});
}

int Restore(void *, const msfrs_owner *const whose, const double *const figures, const uint32_t n, msfrs_time)
{
    if (!whose->cls || n != 1 || figures[0] < 0)
        return -1;
    *whose->cls->service = figures[0];
    return 0;
}

void Resumed(void *const inst, msfrs_item *const i, const int served, msfrs_time)
{
    if (!served)
        Append(Self(inst), *i);
}

constexpr msfrs_gauge ServiceGauge = {"service", "bytes", "service counter SC of a class"};

const msfrs_sched_ops Ops = {
    Init, Fini, ClassAdded, ClassChanged, ClassRemoved, nullptr, nullptr, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, Done, Gauges, nullptr, Save, Restore, Resumed,
};

} // namespace
} // namespace msfrs::moa

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<msfrs::moa::Instance, msfrs::moa::ClassState, void, msfrs::ItemLinks>(
    "moa", "minimum service first by classes, exactly as in the paper",
    "Tsao et al., On applying fair queuing discipline to schedule requests (2008), section 3.1", 0, msfrs::moa::Ops, {},
    msfrs::moa::ServiceGauge, 1);
