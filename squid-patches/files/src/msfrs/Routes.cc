/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "squid.h"
#include "comm/Connection.h"
#include "debug/Stream.h"
#include "ip/Address.h"
#include "msfrs/lib/plugin/loader.h"
#include "msfrs/Routes.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

namespace msfrs::squid
{

namespace
{

/// The bit of a group in sockaddr_nl::nl_groups.
constexpr uint32_t
Bit(const int group)
{
    return uint32_t(1) << (group - 1);
}

/// What may move a connection to another interface. IPv4 does not announce the routes that an interface takes with it.
constexpr auto News = Bit(RTNLGRP_LINK) |
                      Bit(RTNLGRP_IPV4_IFADDR) | Bit(RTNLGRP_IPV4_ROUTE) | Bit(RTNLGRP_IPV4_RULE) |
                      Bit(RTNLGRP_IPV6_IFADDR) | Bit(RTNLGRP_IPV6_ROUTE) | Bit(RTNLGRP_IPV6_RULE);

constexpr uint8_t EcnBits = 3; ///< of a TOS; the kernel routes by the others

int
Open(const uint32_t groups)
{
    const auto fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = groups;
    if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0)
        throw ConfigError(std::string("several msfrs_link need a netlink socket, to ask the kernel by which link a "
                                      "connection leaves: ") + xstrerr(errno) +
                          "; allow AF_NETLINK, or have one msfrs_link");
    return fd;
}

struct Question {
    nlmsghdr header;
    rtmsg route;
    std::array<char, 128> attributes;

    /// room is for two addresses and a number
    void add(const unsigned short type, const void * const value, const size_t size)
    {
        const auto attribute = reinterpret_cast<rtattr *>(reinterpret_cast<char *>(this) + header.nlmsg_len);
        attribute->rta_type = type;
        attribute->rta_len = RTA_LENGTH(size);
        memcpy(RTA_DATA(attribute), value, size);
        header.nlmsg_len += RTA_SPACE(size);
    }

    /// \returns its length in bits
    unsigned char add(const unsigned short type, const Ip::Address &address)
    {
        in_addr four;
        in6_addr six;
        if (address.getInAddr(four)) {
            add(type, &four, sizeof(four));
            return 8*sizeof(four);
        }
        address.getInAddr(six);
        add(type, &six, sizeof(six));
        return 8*sizeof(six);
    }
};

Ip::Address
AddressIn(rtattr * const attribute)
{
    Ip::Address address;
    if (RTA_PAYLOAD(attribute) == sizeof(in_addr))
        address = *static_cast<const in_addr *>(RTA_DATA(attribute));
    else if (RTA_PAYLOAD(attribute) == sizeof(in6_addr))
        address = *static_cast<const in6_addr *>(RTA_DATA(attribute));
    return address;
}

} // namespace

struct Routes::Answer {
    int interface = 0; ///< 0: no route
    Ip::Address from; ///< the local address that the kernel would choose
};

Routes::Routes():
    questions_(Open(0)),
    news_(Open(News))
{
}

Routes::~Routes()
{
    close(questions_);
    close(news_);
}

Routes::Answer
Routes::ask(const Comm::Connection &conn, const Ip::Address &from)
{
    Answer answer;
    Question question{};
    question.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
    question.header.nlmsg_type = RTM_GETROUTE;
    question.header.nlmsg_flags = NLM_F_REQUEST;
    question.route.rtm_family = conn.remote.isIPv4() ? AF_INET : AF_INET6;
    question.route.rtm_tos = conn.tos & ~EcnBits;
    question.route.rtm_dst_len = question.add(RTA_DST, conn.remote);
    if (!from.isAnyAddr())
        question.route.rtm_src_len = question.add(RTA_SRC, from);
    const uint32_t mark = conn.nfmark;
    question.add(RTA_MARK, &mark, sizeof(mark));

    // The kernel answers before send() returns.
    alignas(nlmsghdr) std::array<char, 4096> buf;
    if (send(questions_, &question, question.header.nlmsg_len, 0) < 0)
        return answer;
    const auto size = recv(questions_, buf.data(), buf.size(), 0);
    const auto reply = reinterpret_cast<nlmsghdr *>(buf.data());
    if (size < 0 || !NLMSG_OK(reply, static_cast<size_t>(size)) || reply->nlmsg_type != RTM_NEWROUTE)
        return answer; // an error, such as ENETUNREACH
    int rest = RTM_PAYLOAD(reply);
    const auto route = static_cast<rtmsg *>(NLMSG_DATA(reply));
    for (auto attribute = RTM_RTA(route); RTA_OK(attribute, rest); attribute = RTA_NEXT(attribute, rest)) {
        if (attribute->rta_type == RTA_OIF)
            memcpy(&answer.interface, RTA_DATA(attribute), sizeof(answer.interface));
        else if (attribute->rta_type == RTA_PREFSRC)
            answer.from = AddressIn(attribute);
    }
    return answer;
}

std::string
Routes::interfaceOf(const Comm::Connection &conn)
{
    // The kernel routes from an address of its own only.
    auto answer = ask(conn, conn.flags & COMM_TRANSPARENT ? Ip::Address() : conn.local);
    // Like connect(2), which chooses the local address by a first route, and then routes by that, too.
    if (conn.local.isAnyAddr() && answer.interface > 0 && !answer.from.isAnyAddr())
        answer = ask(conn, answer.from);
    char name[IF_NAMESIZE];
    return answer.interface > 0 && if_indextoname(answer.interface, name) ? name : "";
}

Ip::Address
Routes::sourceOf(const Comm::Connection &fresh)
{
    return ask(fresh, Ip::Address()).from;
}

bool
Routes::changed()
{
    std::array<char, 4096> buf;
    auto changed = false;
    while (recv(news_, buf.data(), buf.size(), 0) >= 0 || errno == ENOBUFS) // what did not fit is news, too
        changed = true;
    return changed;
}

} // namespace msfrs::squid
