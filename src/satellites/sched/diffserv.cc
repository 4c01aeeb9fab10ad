// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// diffserv: the scheduler of a DiffServ edge router's port, with one queue per class.
///
/// Paper: Lin, Lin, Yang, Lin, "DiffServ edge routers over network processors" (2003), sections "Detailed packet
/// flow" and "Scheduler": deficit round robin by weight (Shreedhar and Varghese, 1996), scanned from the top.
///
///     each time, scan the classes from the highest: the first whose credit covers its head sends, and pays
///     when no backlogged class can send: credit += quantum, for every class; classes without a backlog have none
///
/// The paper has six classes, EF, AF1 to AF4 and BE, each with twice the quantum of the next. Here a class's quantum
/// is its weight times `quantum`, and the classes are scanned by weight, the heaviest first (of equals the one added
/// first): weights of 32, 16, 8, 4, 2 and 1 are the paper's router, and any others are allowed. Names have no meaning,
/// except that with strict=on the class called `ef` goes before all others and needs no credit; police its input.
/// Within a class: first come, first served.
///
/// This is not strict priority: a heavy class that has spent its credit waits until the light ones have spent theirs.
///
/// Costs reported afterwards: the cost of a service beyond its estimate is taken from the credit, which may become a
/// debt; the class sends again once replenishments have paid it, queued or not. While nothing at all is queued, nothing
/// is charged, since no class loses by it.
///
/// Cost: O(classes) per pick, otherwise O(1).
#include "plugin/describe.h"
#include "sched/item_list.h"
#include "sched/kept.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace {

struct ClassState {
    msfrs_class *cls;
    double credit;          ///< bytes
    msfrs::ItemList queue;

    msfrs_item *head() const { return queue.head(); }
    double lacks() const { return static_cast<double>(head()->est[0]) - credit; } ///< bytes missing for the head
    void forfeit() { credit = queue.empty() ? std::min(credit, 0.0) : credit; }
};

struct Instance {
    bool strict;
    double quantum;                     ///< bytes for a weight of 1
    uint64_t backlog;                   ///< items queued
    std::vector<ClassState *> classes;  ///< in the order of the scan
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }

bool GoesFirst(const Instance &self, const ClassState &c)
{
    return self.strict && std::strcmp(c.cls->name, "ef") == 0;
}

void Sort(Instance &self)
{
    std::sort(self.classes.begin(), self.classes.end(), [&](const ClassState *const a, const ClassState *const b) {
        if (GoesFirst(self, *a) != GoesFirst(self, *b))
            return GoesFirst(self, *a);
        return a->cls->weight != b->cls->weight ? a->cls->weight > b->cls->weight : a->cls->index < b->cls->index;
    });
}

int Init(void *const inst, const msfrs_host *, const msfrs_value *const params, char *, size_t)
{
    const auto self = new (inst) Instance();
    self->quantum = static_cast<double>(params[0].i);
    self->strict = params[1].i;
    return 0;
}

void Fini(void *const inst) { Self(inst).~Instance(); }

int ClassAdded(void *const inst, msfrs_class *const c)
{
    const auto state = new (c->state) ClassState();
    state->cls = c;
    Self(inst).classes.push_back(state);
    Sort(Self(inst));
    return 0;
}

void ClassChanged(void *const inst, msfrs_class *, double) { Sort(Self(inst)); }

void ClassRemoved(void *const inst, msfrs_class *const c)
{
    auto &all = Self(inst).classes;
    all.erase(std::find(all.begin(), all.end(), &StateOf(c)));
    StateOf(c).~ClassState();
}

void Enqueued(void *const inst, msfrs_item *const i, msfrs_time)
{
    ++Self(inst).backlog;
    StateOf(i->flow->cls).queue.append(*i);
}

/// Does the number of replenishments at once after which a backlogged class can send; at least one must be backlogged.
void Replenish(Instance &self)
{
    ClassState *next = nullptr;
    double rounds = 0;
    for (const auto c : self.classes) {
        if (!c->head())
            continue;
        const double needs = std::ceil(c->lacks() / c->cls->weight / self.quantum);
        if (!next || needs < rounds) {
            rounds = needs;
            next = c;
        }
    }
    for (const auto c : self.classes) {
        c->credit += rounds * c->cls->weight * self.quantum;
        c->forfeit();
    }
    next->credit = std::max(next->credit, static_cast<double>(next->head()->est[0])); // despite rounding
}

msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
{
    auto &self = Self(inst);
    while (self.backlog) {
        for (const auto c : self.classes) {
            if (c->head() && (GoesFirst(self, *c) || c->lacks() <= 0))
                return c->head();
        }
        Replenish(self);
    }
    return nullptr;
}

/// Updates the state after an item has left its queue.
void Left(Instance &self, msfrs_item &i)
{
    --self.backlog;
    StateOf(i.flow->cls).queue.erase(i);
    StateOf(i.flow->cls).forfeit();
}

void Picked(void *const inst, msfrs_item *const i, msfrs_time)
{
    auto &self = Self(inst);
    auto &c = StateOf(i->flow->cls);
    if (!GoesFirst(self, c))
        c.credit -= static_cast<double>(i->est[0]);
    Left(self, *i);
}

void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason) { Left(Self(inst), *i); }

void Charged(void *const inst, msfrs_flow *const f, msfrs_item *, const uint32_t resource, const int64_t amount,
             msfrs_time)
{
    auto &self = Self(inst);
    auto &c = StateOf(f->cls);
    if (resource != 0 || self.backlog == 0 || GoesFirst(self, c))
        return;
    c.credit -= static_cast<double>(amount);
    c.forfeit();
}

void Gauges(void *, const msfrs_class *const c, double *const out) { out[0] = c ? StateOf(c).credit : 0; }

constexpr uint32_t Keeps = 1; ///< msfrs_plugin::keeps: version of the saved data

void Save(void *const inst, const msfrs_move *const move, msfrs_time)
{
    for (const auto *const c : Self(inst).classes)
        msfrs::Put(*move, {c->cls, nullptr, nullptr}, std::array{c->credit});
}

int Restore(void *, const msfrs_owner *const whose, const double *const figures, const uint32_t n, msfrs_time)
{
    if (!whose->cls || n != 1)
        return -1;
    StateOf(whose->cls).credit = figures[0];
    return 0;
}

void Resumed(void *const inst, msfrs_item *const i, const int served, const msfrs_time now)
{
    if (!served)
        Enqueued(inst, i, now);
}

const msfrs_param Params[] = {
    {"quantum", MSFRS_INT, "bytes", "1500", 1, 1e9, nullptr,
     "credit added to a class of weight 1 at each replenishment"},
    {"strict", MSFRS_BOOL, "", "off", 0, 0, nullptr, "serve the class named ef before all others"},
};

const msfrs_gauge GaugeTable[] = {
    {"credit", "bytes", "bytes that a class may send before the next replenishment; negative: debt"},
};

const msfrs_sched_ops Ops = {
    Init, Fini, ClassAdded, ClassChanged, ClassRemoved, nullptr, nullptr, nullptr, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, nullptr, Gauges, nullptr, Save, Restore, Resumed,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, ClassState, void, msfrs::ItemLinks>(
    "diffserv", "DiffServ edge: deficit round robin between classes, scanned from the heaviest",
    "Lin, Lin, Yang, Lin, DiffServ edge routers over network processors (2003), section Scheduler", MSFRS_FLOW_ORDER,
    Ops, Params, GaugeTable, Keeps);
