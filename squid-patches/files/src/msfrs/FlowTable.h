/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_FLOWTABLE_H
#define SQUID_SRC_MSFRS_FLOWTABLE_H

#include <utility> // base/ClpMap.h uses it without including it

#include "base/ClpMap.h"
#include "msfrs/Classify.h"
#include "sbuf/Algorithms.h"
#include "sbuf/SBuf.h"

#include <cstdint>

namespace msfrs::squid
{

inline uint64_t
MemoryUsedBy(const Flow &flow)
{
    return sizeof(flow) + flow.user.length();
}

/// The flow of a client address as it was last scheduled: other traffic to the address is charged to the same class and
/// user, even if these depend on more than the address. Bounded; forgets the least recently seen address first.
class FlowTable
{
public:
    /// notes the flow of a request of this client
    void note(const Ip::Address &, const Flow &);

    /// The flow of its latest request; without one, the flow by msfrs_access and msfrs_user for the address alone.
    Flow find(const Ip::Address &);

    /// forgets all, as classes have changed
    void forget();

private:
    static constexpr uint64_t Capacity = 16*1024*1024; ///< bytes, some 60,000 addresses

    ClpMap<SBuf, Flow, MemoryUsedBy> flows_{Capacity}; ///< by the 16 bytes of an address
};

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_FLOWTABLE_H */
