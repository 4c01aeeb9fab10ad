// SPDX-License-Identifier: GPL-2.0-or-later
#include "neighbour/neighbour_table.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace msfrs {

namespace {

/// States in which the kernel sends to the hardware address of an entry.
constexpr unsigned Valid = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;

/// A header at the beginning of `size` bytes, which need not be aligned; nothing if they are fewer.
template <class T>
std::optional<T> Read(const uint8_t *const from, const size_t size)
{
    T header;
    if (size < sizeof(header))
        return {};
    memcpy(&header, from, sizeof(header));
    return header;
}

/// \param length as in the header of a message or an attribute \returns where the next one begins, at most `size`
size_t Next(const size_t length, const size_t size)
{
    return std::min((length + NLMSG_ALIGNTO - 1) & ~size_t{NLMSG_ALIGNTO - 1}, size);
}

std::optional<HostAddress> HostOf(const unsigned family, const uint8_t *const bytes, const size_t size)
{
    HostAddress host{};
    if (family == AF_INET6 && size == host.size()) {
        std::copy_n(bytes, size, host.begin());
        return host;
    }
    if (family != AF_INET || size != 4)
        return {};
    host[10] = host[11] = 0xff;
    std::copy_n(bytes, size, host.begin() + 12);
    return host;
}

std::optional<MacAddress> MacOf(const uint8_t *const bytes, const size_t size)
{
    MacAddress mac{};
    if (size != mac.size() || bytes[0] & 1) // a group address
        return {};
    std::copy_n(bytes, size, mac.begin());
    return mac == MacAddress{} ? std::nullopt : std::make_optional(mac);
}

} // namespace

std::string TextOf(const MacAddress &mac)
{
    char text[18];
    snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    return text;
}

NeighbourTable::Outcome NeighbourTable::apply(const uint8_t *datagram, size_t size)
{
    Outcome outcome;
    while (const auto header = Read<nlmsghdr>(datagram, size)) {
        const size_t length = header->nlmsg_len;
        if (length < sizeof(nlmsghdr) || length > size)
            break;
        const auto body = datagram + sizeof(nlmsghdr);
        const auto rest = length - sizeof(nlmsghdr);
        if (header->nlmsg_type == NLMSG_DONE)
            outcome.done = true;
        else if (header->nlmsg_type == NLMSG_ERROR)
            outcome.failed = outcome.failed || Read<int>(body, rest).value_or(-1) != 0;
        else if (header->nlmsg_type == RTM_NEWNEIGH || header->nlmsg_type == RTM_DELNEIGH)
            neighbour(body, rest, header->nlmsg_type == RTM_DELNEIGH);
        const auto next = Next(length, size);
        datagram += next;
        size -= next;
    }
    return outcome;
}

void NeighbourTable::neighbour(const uint8_t *message, size_t size, const bool deleted)
{
    const auto header = Read<ndmsg>(message, size);
    if (!header || header->ndm_flags & NTF_PROXY) // an address that this machine answers for
        return;
    std::optional<HostAddress> host;
    std::optional<MacAddress> mac;
    for (auto next = Next(sizeof(ndmsg), size);; next = Next(next, size)) {
        message += next;
        size -= next;
        const auto attribute = Read<rtattr>(message, size);
        if (!attribute || attribute->rta_len < sizeof(rtattr) || attribute->rta_len > size)
            break;
        const auto value = message + sizeof(rtattr);
        const auto length = attribute->rta_len - sizeof(rtattr);
        if (attribute->rta_type == NDA_DST)
            host = HostOf(header->ndm_family, value, length);
        else if (attribute->rta_type == NDA_LLADDR)
            mac = MacOf(value, length);
        next = attribute->rta_len;
    }
    if (!host)
        return;
    const auto known = hosts_.find(*host);
    if (mac && !deleted && header->ndm_state & Valid) {
        if (known != hosts_.end())
            known->second = {*mac, header->ndm_ifindex};
        else if (hosts_.size() < Most)
            hosts_.emplace(*host, Entry{*mac, header->ndm_ifindex});
    } else if (known != hosts_.end() && known->second.interface == header->ndm_ifindex) {
        hosts_.erase(known); // another interface may still have it
    }
}

std::optional<MacAddress> NeighbourTable::find(const HostAddress &host) const
{
    const auto found = hosts_.find(host);
    return found == hosts_.end() ? std::nullopt : std::make_optional(found->second.mac);
}

} // namespace msfrs
