// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/match.h"

#include "config/fields.h"
#include "edge/packet.h"

namespace msfrs::edge {

namespace {

struct ProtocolName {
    const char *name;
    uint32_t number;
};
// Not from the system's table: a rule file must have the same meaning everywhere.
constexpr ProtocolName ProtocolNames[] = {
    {"icmp", 1}, {"igmp", 2}, {"tcp", 6}, {"udp", 17}, {"dccp", 33}, {"gre", 47}, {"esp", 50}, {"ah", 51},
    {"icmpv6", 58}, {"ospf", 89}, {"sctp", 132}, {"udplite", 136},
};

std::string ProtocolsWith(const bool portsOnly)
{
    std::string all;
    for (const auto &p : ProtocolNames) {
        if (!portsOnly || HasPorts(p.number))
            all += (all.empty() ? "" : ", ") + std::string(p.name);
    }
    return all;
}

Range<uint32_t> ProtocolOf(const Field &f)
{
    for (const auto &p : ProtocolNames) {
        if (f.value == p.name)
            return {p.number, p.number};
    }
    const auto n = WholeNumber(f.value, 255);
    if (!n)
        f.refuse("not a protocol; allowed are any, 0 to 255, " + ProtocolsWith(false));
    return {*n, *n};
}

Range<uint32_t> PortsOf(const Fields &fields, const Field &f, const Range<uint32_t> &protocol)
{
    const auto span = f.range(65535, "port");
    const bool any = protocol.first != protocol.last;
    if (!any && !HasPorts(protocol.first))
        f.refuse("protocol=" + Shown(fields.find("protocol")->value) + " has no ports; these have: " +
                 ProtocolsWith(true));
    return span;
}

} // namespace

Match MatchOf(const Fields &fields)
{
    Match match;
    for (const char *const name : {"from", "to"}) {
        const auto f = fields.limiting(name);
        if (!f)
            continue;
        const auto side = f->addresses();
        if (match.family && *match.family != side.family)
            f->refuse(std::string("IPv") + (side.family == Family::V4 ? "4" : "6") + ", and from=" +
                      Shown(fields.find("from")->value) + " is not: no packet is both");
        match.family = side.family;
        (f->name == "from" ? match.source : match.destination) = side.range;
    }
    if (const auto f = fields.limiting("protocol"))
        match.protocol = ProtocolOf(*f);
    if (const auto f = fields.limiting("from-port"))
        match.sourcePort = PortsOf(fields, *f, match.protocol);
    if (const auto f = fields.limiting("to-port"))
        match.destinationPort = PortsOf(fields, *f, match.protocol);
    return match;
}

} // namespace msfrs::edge
