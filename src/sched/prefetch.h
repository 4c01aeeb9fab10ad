// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Fetches what a later call will look at while there is time. With 100,000 flows nothing of a flow or of what it has
/// queued is in the cache, and waiting for memory would be most of what a packet costs.
#ifndef MSFRS_SCHED_PREFETCH_H
#define MSFRS_SCHED_PREFETCH_H

namespace msfrs {

/// Two cache lines: what flows and items have in use. Must be inlined, and so must a function that does nothing else:
/// GCC 12 leaves out calls to what has no effect, and does not count a prefetch as one.
__attribute__((always_inline)) inline void Prefetch(const void *const p)
{
    __builtin_prefetch(p);
    __builtin_prefetch(static_cast<const char *>(p) + 64);
}

} // namespace msfrs

#endif
