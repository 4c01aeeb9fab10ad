// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// red: random early detection. See satellites/aqm/red.h for papers, equations and the deviations from them.
///
/// gentle=on (the default, and the variant that the FABA paper compares with) raises the probability from maxp at max
/// to 1 at twice max; gentle=off drops every packet from max on, as in 1993.
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
    auto &red = Self(inst);
    red.average(*q, now);
    if (red.buffer.full(*q, *i)) {
        red.restart();
        return MSFRS_DROP;
    }
    return red.toss(*i);
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

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
    MSFRS_PLUGIN_MAGIC, MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR, sizeof(struct msfrs_plugin), MSFRS_AQM, MSFRS_MAY_MARK,
    "red", "random early detection: drops at random before the buffer is full",
    "Floyd, Jacobson, Random early detection gateways for congestion avoidance (1993)",
    sizeof(Red), 0, 0, 0,
    Params, sizeof(Params) / sizeof(*Params), &msfrs::AverageGauge, 1, nullptr, &Ops, sizeof(Ops),
};
