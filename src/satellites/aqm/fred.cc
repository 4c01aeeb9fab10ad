// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// fred: flow random early drop. RED with an account of each active flow's buffer occupancy.
///
/// Paper: Lin, Morris, "Dynamics of random early detection", SIGCOMM (1997), sections 4 and 5. For an arrival of flow i
/// with qlen_i queued, avgcq = max(avg / active flows, 1), maxq = min, or 2 while avg >= max:
///
///     qlen_i >= maxq, or avg >= max and qlen_i > 2 avgcq, or qlen_i >= avgcq and strike_i > 1:  strike_i + 1, drop
///     min <= avg < max:  RED's coin, only for a flow with qlen_i >= max(minq, avgcq)
///     avg < min:         accept
///     avg >= max:        accept, since with fewer than two packets the flow is fragile (the two-packet buffer of
///                        section 5, for many flows)
///
/// The average is also updated at departures, so that it follows a draining queue. A flow has state only while it has
/// packets queued: strikes are forgotten with the last one.
///
/// In byte mode all of this is in bytes, and a packet of the paper is `packet` bytes.
#include "plugin/describe.h"
#include "satellites/aqm/red.h"

#include <new>

namespace {

struct FlowState {
    int64_t length;   ///< qlen_i in packets or bytes
    uint32_t packets; ///< packets of the flow in the queue that were admitted here
    uint32_t strikes;
};

struct Instance : msfrs::Red {
    int64_t minq;     ///< in packets or bytes
    uint32_t active;  ///< flows with packets queued
};

Instance &Self(void *const inst) { return *static_cast<Instance *>(inst); }
FlowState &Of(const msfrs_item *const i) { return *static_cast<FlowState *>(i->flow->aqm_state); }

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t length)
{
    const auto self = new (inst) Instance();
    if (!self->init(*host, params, 1, err, length))
        return -1;
    self->minq = params[9].i * self->buffer.packet;
    return 0;
}

msfrs_verdict Judge(Instance &self, const msfrs_item &i, FlowState &f)
{
    const auto packet = static_cast<double>(self.buffer.packet);
    const auto length = static_cast<double>(f.length);
    const double share = self.average() / (self.active ? self.active : 1);
    const double avgcq = share > packet ? share : packet;
    const bool beyond = self.zone() == Instance::Zone::Beyond;
    const double maxq = beyond ? 2 * packet : self.min() > packet ? self.min() : packet;
    if (length >= maxq || (beyond && length > 2 * avgcq) || (length >= avgcq && f.strikes > 1)) {
        if (f.packets > 0) // without queued packets the flow has no state
            ++f.strikes;
        return MSFRS_DROP;
    }
    if (beyond || self.zone() == Instance::Zone::Below) {
        self.restart();
        return MSFRS_ACCEPT;
    }
    const double robust = avgcq > static_cast<double>(self.minq) ? avgcq : static_cast<double>(self.minq);
    return length >= robust ? self.toss(i) : MSFRS_ACCEPT;
}

msfrs_verdict Admit(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now,
                    msfrs_item **)
{
    auto &self = Self(inst);
    auto &f = Of(i);
    self.average(*q, now);
    if (self.buffer.full(*q, *i)) {
        self.restart();
        return MSFRS_DROP;
    }
    const auto verdict = Judge(self, *i, f);
    if (verdict != MSFRS_DROP) {
        self.active += f.packets == 0;
        ++f.packets;
        f.length += self.buffer.sizeOf(*i);
    }
    return verdict;
}

void Leave(Instance &self, const msfrs_item &i)
{
    auto &f = Of(&i);
    f.length -= self.buffer.sizeOf(i);
    if (--f.packets == 0) {
        f = FlowState{};
        --self.active;
    }
}

msfrs_verdict Dequeued(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, const msfrs_time now)
{
    Leave(Self(inst), *i);
    Self(inst).average(*q, now);
    return MSFRS_ACCEPT;
}

void Removed(void *const inst, msfrs_item *const i, const msfrs_queue_view *, msfrs_time, msfrs_reason)
{
    Leave(Self(inst), *i);
}

void Gauges(void *const inst, const msfrs_class *const c, double *const out)
{
    out[0] = c ? 0 : Self(inst).average();
    out[1] = c ? 0 : Self(inst).active;
}

const msfrs_param Params[] = {
    msfrs::ModeParam, msfrs::LimitParam, msfrs::PacketParam,
    msfrs::MinParam, msfrs::MaxParam, msfrs::MaxpParam, msfrs::WeightParam, msfrs::TransmissionParam, msfrs::EcnParam,
    {"minq", MSFRS_INT, "packets", "4", 0, 1e6, nullptr,
     "queued packets below which a flow has no random drops; the paper: 2 "
     "for small buffers, 4 for large ones"},
};

const msfrs_gauge GaugeTable[] = {
    msfrs::AverageGauge,
    {"active", "flows", "flows with packets in the queue; no other flow has state"},
};

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, Dequeued, Removed, Gauges,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<Instance, void, FlowState>(
    "fred", "flow random early drop: RED that limits each flow's share of the buffer",
    "Lin, Morris, Dynamics of random early detection (1997)", MSFRS_MAY_MARK, Ops, Params, GaugeTable);
