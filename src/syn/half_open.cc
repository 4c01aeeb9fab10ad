// SPDX-License-Identifier: GPL-2.0-or-later
#include "syn/half_open.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace msfrs::syn {

namespace {

class SocketAddress {
public:
    SocketAddress(const Family family, const Address &address, const uint16_t port)
    {
        if (family == Family::V4) {
            auto &four = reinterpret_cast<sockaddr_in &>(bytes_);
            four.sin_family = AF_INET;
            four.sin_port = htons(port);
            four.sin_addr.s_addr = htonl(static_cast<uint32_t>(address.low));
            length_ = sizeof(four);
            return;
        }
        auto &six = reinterpret_cast<sockaddr_in6 &>(bytes_);
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(port);
        for (unsigned n = 0; n < 16; ++n)
            six.sin6_addr.s6_addr[n] =
                static_cast<uint8_t>((n < 8 ? address.high : address.low) >> (56 - 8 * (n % 8)));
        length_ = sizeof(six);
    }
    const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&bytes_); }
    socklen_t length() const { return length_; }

private:
    sockaddr_storage bytes_{};
    socklen_t length_;
};

/// Gives a socket an address that is not the gateway's. \returns whether it has it
bool Become(const int fd, const Family family, const Address &client)
{
    const int yes = 1;
    const SocketAddress from(family, client, 0);
    return (family == Family::V4 ? setsockopt(fd, SOL_IP, IP_TRANSPARENT, &yes, sizeof(yes))
                                 : setsockopt(fd, SOL_IPV6, IPV6_TRANSPARENT, &yes, sizeof(yes))) == 0 &&
        setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes)) == 0 &&
        bind(fd, from.get(), from.length()) == 0;
}

/// Of an error of connect(). The errors that the network has reported are the client's to see (tcp(7), icmp(7)); with
/// any other, such as too many open files, Squid tries.
Outcome OutcomeOf(const int error)
{
    switch (error) {
    case 0: return Outcome::Answered;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EACCES: return Outcome::Refused; // EACCES: a route `prohibit`, or ICMPv6 "administratively prohibited"
    default: return Outcome::Failed;
    }
}

} // namespace

HalfOpen::HalfOpen(event_base *const base, const bool transparent,
                   std::function<void(const Server &, Outcome)> finished):
    transparent_(transparent), finished_(std::move(finished)), ready_(epoll_create1(EPOLL_CLOEXEC)),
    readable_(base, ready_.get(), EV_READ, [this] { look(); })
{}

std::optional<Outcome> HalfOpen::start(const Server &server, const Address &client)
{
    const SocketAddress to(server.family, server.address, server.port);
    Descriptor made(socket(to.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (made.get() < 0 || (transparent_ && !Become(made.get(), server.family, client)))
        return Outcome::Failed;
    // A client that waits for data to send with it delays the ACK of the handshake, by 200 ms at least; close() then
    // sends a RST.
    const int withData = 1;
    setsockopt(made.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &withData, sizeof(withData));
    const linger reset{1, 0};
    setsockopt(made.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    if (connect(made.get(), to.get(), to.length()) == 0)
        return Outcome::Answered;
    if (errno != EINPROGRESS)
        return OutcomeOf(errno);
    epoll_event wanted{};
    wanted.events = EPOLLOUT;
    wanted.data.fd = made.get();
    if (epoll_ctl(ready_.get(), EPOLL_CTL_ADD, made.get(), &wanted) < 0)
        return Outcome::Failed;
    servers_[made.get()] = server;
    sockets_.emplace(server, std::move(made));
    return {};
}

void HalfOpen::stop(const Server &server)
{
    const auto found = sockets_.find(server);
    if (found == sockets_.end())
        return;
    servers_.erase(found->second.get());
    sockets_.erase(found);
}

void HalfOpen::look()
{
    epoll_event events[64];
    const int n = epoll_wait(ready_.get(), events, std::size(events), 0);
    for (int i = 0; i < n; ++i) {
        const auto found = servers_.find(events[i].data.fd);
        if (found == servers_.end())
            continue;
        int error = 0;
        socklen_t size = sizeof(error);
        if (getsockopt(found->first, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
            error = errno;
        const auto server = found->second;
        stop(server);
        finished_(server, OutcomeOf(error));
    }
}

} // namespace msfrs::syn
