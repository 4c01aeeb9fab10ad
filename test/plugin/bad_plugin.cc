// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Plugins with one fault each, chosen by -DFAULT_..., for the loader's tests. Without a fault: an AQM that accepts
/// everything.
#include "plugin/msfrs_plugin.h"

namespace {

[[maybe_unused]] msfrs_verdict Admit(void *, msfrs_item *, const msfrs_queue_view *, msfrs_time, msfrs_item **)
{
    return MSFRS_ACCEPT;
}

[[maybe_unused]] const msfrs_aqm_ops Ops = {
#ifndef FAULT_NO_ADMIT
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, Admit,
#endif
};

} // namespace

#ifdef FAULT_NO_SYMBOL
extern "C" __attribute__((visibility("default"))) const int something_else = 1;
#else

extern "C" __attribute__((visibility("default"))) const msfrs_plugin msfrs_plugin = {
#ifdef FAULT_MAGIC
    0x12345678,
#else
    MSFRS_PLUGIN_MAGIC,
#endif
#ifdef FAULT_MAJOR
    MSFRS_ABI_MAJOR + 1, 0,
#elif defined(FAULT_MINOR)
    MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR + 1,
#else
    MSFRS_ABI_MAJOR, MSFRS_ABI_MINOR,
#endif
#ifdef FAULT_TRUNCATED
    16, // the part that a loader may read before it has checked the size
#else
    sizeof(struct msfrs_plugin),
#endif
    MSFRS_AQM, 0, "accept-all", "accepts everything", "none: a test", 0, 0, 0, 0,
    nullptr, 0, nullptr, 0, nullptr, &Ops, sizeof(Ops),
};

#endif
