// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/excess.h"

#include <algorithm>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

namespace msfrs::edge {

constexpr std::tuple Outside{true, Family::V6, Address{}}; ///< stands for all receivers outside; sorts last

Excess::Excess(std::string path):
    path_(std::move(path)), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))
{
    if (socket_.get() < 0)
        Fail("a socket for reports to " + path_);
}

void Excess::packet(const FlowKey &key, const uint64_t bytes, const FlowRule &users)
{
    const auto &to = key.destination;
    const bool inside = users.isInside(to, key.family);
    const std::lock_guard<std::mutex> lock(mutex_);
    gather(inside ? Receiver(false, key.family, to) : Outside, bytes);
}

std::string Excess::Text(const Receiver &receiver)
{
    if (receiver == Outside)
        return "-";
    FlowName name;
    name.add(std::get<Address>(receiver), std::get<Family>(receiver));
    return AddressText(name.view());
}

/// Called with the lock held.
void Excess::gather(const Receiver &receiver, const uint64_t bytes)
{
    const bool room = gathered_.size() < MostReceivers || gathered_.count(receiver) > 0;
    gathered_[room ? receiver : Outside] += bytes;
}

Excess::Outcome Excess::send(const std::string &datagram) const
{
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path_.copy(to.sun_path, sizeof(to.sun_path) - 1);
    // By name each time: Squid may have recreated the socket.
    if (sendto(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr *>(&to),
               sizeof(to)) >= 0)
        return Outcome::Sent;
    return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? Outcome::Behind : Outcome::Nobody;
}

void Excess::report()
{
    std::map<Receiver, uint64_t> gathered;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        gathered.swap(gathered_);
    }
    constexpr size_t LongestLine = INET6_ADDRSTRLEN + 12; // address, blank, digits of MostBytes, line feed
    for (auto first = gathered.begin(), next = first; first != gathered.end(); first = next) {
        std::string datagram;
        uint64_t inside = 0, outside = 0, over = 0; // bytes; over: beyond the limit of a line
        for (; next != gathered.end() && datagram.size() <= LongestDatagram - LongestLine; ++next) {
            const auto most = std::min(next->second, MostBytes);
            datagram += Text(next->first) + ' ' + std::to_string(most) + '\n';
            (next->first == Outside ? outside : inside) += most;
            over += next->second - most;
        }
        const auto outcome = send(datagram);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (outcome == Outcome::Sent) {
            ++counts_.datagrams;
            counts_.bytes += inside;
            counts_.outsideBytes += outside;
            counts_.lostBytes += over;
            continue;
        }
        counts_.waits += outcome == Outcome::Behind;
        for (; first != gathered.end(); ++first) {
            if (outcome == Outcome::Behind)
                gather(first->first, first->second);
            else
                counts_.lostBytes += first->second;
        }
        return;
    }
}

Excess::Counts Excess::counts() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_;
}

} // namespace msfrs::edge
