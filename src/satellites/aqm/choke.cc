// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// choke: CHOose and Keep for responsive flows, CHOose and Kill for unresponsive ones.
///
/// Paper: Pan, Prabhakar, Psounis, "CHOKe, a stateless active queue management scheme for approximating fair bandwidth
/// allocation", INFOCOM (2000), figure 1. While the average queue is not below min, an arrival is compared with a
/// packet drawn at random from the queue: of the same flow, both are dropped; otherwise RED decides. The packet that
/// is being transmitted is not in the queue and is never drawn.
///
/// draws=m compares with up to m packets (the paper's section IV); the first match ends it. Flows are distinguished by
/// the host's flow, never by its hash, so flows whose keys collide are not confused.
#include "plugin/describe.h"
#include "satellites/aqm/red.h"

#include <new>

namespace {

struct Instance : msfrs::Red {
    int64_t draws;
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t length)
{
    const auto self = new (inst) Instance();
    self->draws = params[10].i;
    return self->init(*host, params, params[9].i ? 2 : 1, err, length) ? 0 : -1;
}

msfrs_verdict Admit(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now,
                    msfrs_item **const victim)
{
    auto &self = Self(inst);
    self.average(*q, now);
    if (self.zone() != Instance::Zone::Below) {
        for (int64_t n = 0; n < self.draws && q->length > 0; ++n) {
            msfrs_item *const drawn = q->nth(q->ctx, self.dice.below(q->length));
            if (drawn->flow == i->flow) {
                *victim = drawn;
                return MSFRS_DROP_BOTH;
            }
        }
    }
    return self.judge(*i, *q);
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out) { out[0] = c ? 0 : Self(inst).average(); }

const msfrs_param Params[] = {
    msfrs::ModeParam, msfrs::LimitParam, msfrs::PacketParam,
    msfrs::MinParam, msfrs::MaxParam, msfrs::MaxpParam, msfrs::WeightParam, msfrs::TransmissionParam, msfrs::EcnParam,
    msfrs::GentleParam,
    {"draws", MSFRS_INT, "packets", "1", 1, 64, nullptr, "number of queued packets that an arrival is compared with"},
};

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, nullptr, nullptr, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance>(
    "choke", "RED that also drops an arrival together with a queued packet of its flow",
    "Pan, Prabhakar, Psounis, CHOKe, a stateless active queue management scheme (2000)",
    MSFRS_MAY_MARK | MSFRS_DROPS_QUEUED, Ops, Params, msfrs::AverageGauge);
