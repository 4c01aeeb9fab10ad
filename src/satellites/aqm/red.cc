// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// red: random early detection. See satellites/aqm/red.h for papers, equations and the deviations from them.
///
/// gentle=on (the default, and the variant that the FABA paper compares with) raises the probability from maxp at max
/// to 1 at twice max; gentle=off drops every packet from max on, as in 1993.
#include "plugin/describe.h"
#include "satellites/aqm/red.h"

#include <new>

namespace {

using msfrs::Red;

Red &Self(void *const inst) { return *static_cast<Red *>(inst); }

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t length)
{
    return (new (inst) Red())->init(*host, params, params[9].i ? 2 : 1, err, length) ? 0 : -1;
}

msfrs_verdict Admit(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now,
                    msfrs_item **)
{
    Self(inst).average(*q, now);
    return Self(inst).judge(*i, *q);
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out) { out[0] = c ? 0 : Self(inst).average(); }

const msfrs_param Params[] = {
    msfrs::ModeParam, msfrs::LimitParam, msfrs::PacketParam,
    msfrs::MinParam, msfrs::MaxParam, msfrs::MaxpParam, msfrs::WeightParam, msfrs::TransmissionParam, msfrs::EcnParam,
    msfrs::GentleParam,
};

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, nullptr, nullptr, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Red>(
    "red", "random early detection: drops at random before the buffer is full",
    "Floyd, Jacobson, Random early detection gateways for congestion avoidance (1993)", MSFRS_MAY_MARK, Ops, Params,
    msfrs::AverageGauge);
