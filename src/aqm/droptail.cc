// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// droptail: drops an arrival that does not fit into the buffer, nothing else. The baseline of every AQM. Textbook; no
/// departures. Never marks: a full buffer has no room for the packet, marked or not.
#include "aqm/buffer.h"
#include "plugin/describe.h"

namespace {

int Init(void *const inst, const msfrs_host *const host, const msfrs_value *const params, char *const err,
         const size_t length)
{
    return static_cast<msfrs::Buffer *>(inst)->init(*host, params, err, length) ? 0 : -1;
}

msfrs_verdict Admit(void *const inst, msfrs_item *const i, const msfrs_queue_view *const q, msfrs_time, msfrs_item **)
{
    return static_cast<msfrs::Buffer *>(inst)->full(*q, *i) ? MSFRS_DROP : MSFRS_ACCEPT;
}

const msfrs_param Params[] = {msfrs::ModeParam, msfrs::LimitParam, msfrs::PacketParam};

const msfrs_aqm_ops Ops = {
    Init, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit, nullptr, nullptr, nullptr,
};

} // namespace

MSFRS_EXPORTED_PLUGIN = msfrs::Describe<msfrs::Buffer>(
    "droptail", "drops arrivals that do not fit into the buffer",
    "textbook; the buffer of a router without an AQM", 0, Ops, Params);
