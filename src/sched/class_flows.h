// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The operations of a round robin at two levels, between classes and between the flows of a class.
#pragma once

#include "plugin/msfrs_plugin.h"
#include "sched/class_round.h"

namespace msfrs {

/// \tparam Members of flows: Round, or a template with the same calls
/// \tparam FlowTurn state of a flow in Members; derived from Turn
/// \tparam Shares whether the table has the parameter `share`, its second row
template <template <class> class Members, class FlowTurn, bool Shares>
class ClassFlows {
public:
    struct FlowState : FlowTurn {
        msfrs_flow *flow;

        bool queued() const { return flow->backlog > 0; }
    };
    struct ClassState : Turn {
        msfrs_class *cls;
        Members<FlowState> members;

        bool queued() const { return cls->backlog > 0; }
    };
    using Instance = ClassRound<ClassState>;

    static constexpr uint32_t ParamCount = Shares ? 2 : 1;
    static constexpr uint32_t Keeps = 1; ///< msfrs_plugin::keeps: version of the data that Save() puts
    static const msfrs_param Params[2];
    static const msfrs_sched_ops Ops;

    static FlowState &StateOf(const msfrs_flow *const f) { return *static_cast<FlowState *>(f->state); }
    static ClassState &StateOf(const msfrs_class *const c) { return *static_cast<ClassState *>(c->state); }

private:
    static Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }

    static int Init(void *const inst, const msfrs_host *, const msfrs_value *const params, char *, size_t)
    {
        Self(inst).init(params, Shares);
        return 0;
    }

    static int ClassAdded(void *, msfrs_class *const c)
    {
        StateOf(c).cls = c;
        return 0;
    }

    static void ClassRemoved(void *const inst, msfrs_class *const c) { Self(inst).forget(StateOf(c)); }

    static int FlowAdded(void *, msfrs_flow *const f)
    {
        StateOf(f).flow = f;
        return 0;
    }

    static void FlowRemoved(void *, msfrs_flow *const f) { StateOf(f->cls).members.forget(StateOf(f)); }

    static int FlowForgettable(void *, const msfrs_flow *const f) { return StateOf(f).deficit >= 0; }

    static void Enqueued(void *const inst, msfrs_item *const i, msfrs_time)
    {
        Self(inst).enqueued(StateOf(i->flow->cls), StateOf(i->flow), i->flow->backlog == 1);
    }

    static msfrs_item *Pick(void *const inst, msfrs_time, msfrs_pick, msfrs_time *)
    {
        auto &self = Self(inst);
        return self.next([&](ClassState &c) {
            return c.members.select([](const FlowState &f) { return CostOf(*f.flow->head); },
                                    [&](const FlowState &f) { return self.quantum() * f.flow->weight; }).flow->head;
        });
    }

    static void Picked(void *const inst, msfrs_item *const i, msfrs_time)
    {
        Self(inst).left(StateOf(i->flow->cls), StateOf(i->flow), i->flow->backlog == 0, CostOf(*i));
    }

    static void Removed(void *const inst, msfrs_item *const i, msfrs_time, msfrs_reason)
    {
        Self(inst).left(StateOf(i->flow->cls), StateOf(i->flow), i->flow->backlog == 0, 0);
    }

    static void Charged(void *const inst, msfrs_flow *const f, msfrs_item *, const uint32_t resource,
                        const int64_t amount, msfrs_time)
    {
        if (resource == 0)
            Self(inst).charged(StateOf(f->cls), StateOf(f), static_cast<double>(amount));
    }

    static void Gauges(void *, const msfrs_class *const c, double *const out) { out[0] = c ? StateOf(c).deficit : 0; }

    /// Members that are in no round have nothing to save.
    static void Save(void *const inst, const msfrs_move *const move, msfrs_time)
    {
        Self(inst).save(*move);
        for (uint32_t n = 0; n < move->n_classes; ++n) {
            StateOf(move->classes[n]).members.save([&](const FlowState &f, const auto &figures) {
                Put(*move, {nullptr, f.flow, nullptr}, figures);
            });
        }
    }

    static int Restore(void *const inst, const msfrs_owner *const whose, const double *const figures, const uint32_t n,
                       msfrs_time)
    {
        if (whose->cls)
            return Self(inst).restore(StateOf(whose->cls), figures, n);
        if (!whose->flow || n != Members<FlowState>::Figures)
            return -1;
        StateOf(whose->flow->cls).members.restore(StateOf(whose->flow), figures);
        return 0;
    }

    static void Resumed(void *const inst, msfrs_item *const i, const int served, const msfrs_time now)
    {
        if (!served)
            Enqueued(inst, i, now);
    }
};

template <template <class> class Members, class FlowTurn, bool Shares>
const msfrs_param ClassFlows<Members, FlowTurn, Shares>::Params[2] = {QuantumParam, ShareParam};

template <template <class> class Members, class FlowTurn, bool Shares>
const msfrs_sched_ops ClassFlows<Members, FlowTurn, Shares>::Ops = {
    Init, nullptr, ClassAdded, nullptr, ClassRemoved, FlowAdded, FlowRemoved, FlowForgettable, nullptr,
    Enqueued, Pick, Picked, Removed, Charged, nullptr, Gauges, nullptr, Save, Restore, Resumed,
};

} // namespace msfrs
