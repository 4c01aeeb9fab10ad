/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "ip/Address.h"
#include "msfrs/FlowTable.h"

namespace msfrs::squid
{

namespace
{

/// A request determines the flow better than an address, but users change, and so do ACLs like time.
constexpr int RememberRequest = 600; // seconds
constexpr int RememberAddress = 60; // seconds

SBuf
Key(const Ip::Address &address)
{
    in6_addr bits;
    address.getInAddr(bits);
    return SBuf(reinterpret_cast<const char *>(bits.s6_addr), sizeof(bits.s6_addr));
}

} // namespace

void
FlowTable::note(const Ip::Address &address, const Flow &flow)
{
    flows_.add(Key(address), flow, RememberRequest);
}

Flow
FlowTable::find(const Ip::Address &address)
{
    const auto key = Key(address);
    if (const auto known = flows_.get(key))
        return *known;
    const auto flow = Classify(address);
    flows_.add(key, flow, RememberAddress);
    return flow;
}

void
FlowTable::forget()
{
    flows_.setMemLimit(0);
    flows_.setMemLimit(Capacity);
}

} // namespace msfrs::squid
