// SPDX-License-Identifier: GPL-2.0-or-later
#include "edge/daemon/excess.h"

#include <algorithm>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

namespace msfrs::edge {

namespace {

std::string Text(const Address &address, const Family family)
{
    FlowName name;
    name.add(address, family);
    return FlowText(name.view());
}

} // namespace

size_t Excess::Hash::operator()(const Receiver &r) const
{
    // Finalizer of splitmix64: hosts of a network differ only in their last bits.
    uint64_t x = r.address.low + 0x9e3779b97f4a7c15 * (r.address.high + static_cast<uint64_t>(r.family));
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

Excess::Excess(std::string path, FlowRule inside):
    path_(std::move(path)), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
    inside_(std::move(inside))
{
    if (socket_.get() < 0)
        Fail("a socket for reports to " + path_);
}

void Excess::packet(const FlowKey &key, const uint64_t bytes)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (inside_.isInside(key.destination, key.family))
        gather({key.destination, key.family}, bytes);
    else
        outside_ += bytes;
}

/// Called with the lock held.
void Excess::gather(const Receiver &receiver, const uint64_t bytes)
{
    const auto known = gathered_.find(receiver);
    if (known != gathered_.end())
        known->second += bytes;
    else if (gathered_.size() < MostReceivers)
        gathered_.emplace(receiver, bytes);
    else
        outside_ += bytes;
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
    Gathered gathered;
    uint64_t outside = 0;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        gathered.swap(gathered_);
        std::swap(outside, outside_);
    }

    Counts now;
    auto outcome = Outcome::Sent;
    std::string datagram;
    uint64_t inside = 0, over = 0; // bytes in the datagram, and those beyond the limit of a line
    auto first = gathered.begin(), next = first;
    const auto flush = [&](const uint64_t others) {
        outcome = send(datagram);
        if (outcome != Outcome::Sent)
            return;
        ++now.datagrams;
        now.bytes += inside;
        now.outsideBytes += others;
        now.lostBytes += over;
        datagram.clear();
        inside = over = 0;
        first = next;
    };
    const auto add = [&](const std::string &name, const uint64_t bytes) {
        const auto most = std::min(bytes, MostBytes);
        over += bytes - most;
        datagram += name + ' ' + std::to_string(most) + '\n';
        return most;
    };
    constexpr size_t LongestLine = INET6_ADDRSTRLEN + 12;
    while (next != gathered.end() && outcome == Outcome::Sent) {
        inside += add(Text(next->first.address, next->first.family), next->second);
        ++next;
        if (datagram.size() > LongestDatagram - 2 * LongestLine) // one more of these, and one of "-"
            flush(0);
    }
    if (outcome == Outcome::Sent && outside > 0) {
        const auto told = add("-", outside);
        flush(told);
        outside = outcome == Outcome::Sent ? 0 : outside;
    } else if (outcome == Outcome::Sent && !datagram.empty()) {
        flush(0);
    }

    const std::lock_guard<std::mutex> lock(mutex_);
    now.waits = outcome == Outcome::Behind;
    for (; first != gathered.end(); ++first) {
        if (outcome == Outcome::Behind)
            gather(first->first, first->second);
        else
            now.lostBytes += first->second;
    }
    (outcome == Outcome::Behind ? outside_ : now.lostBytes) += outside;
    counts_.bytes += now.bytes;
    counts_.outsideBytes += now.outsideBytes;
    counts_.datagrams += now.datagrams;
    counts_.waits += now.waits;
    counts_.lostBytes += now.lostBytes;
}

void Excess::replace(FlowRule inside)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    inside_ = std::move(inside);
}

Excess::Counts Excess::counts() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_;
}

} // namespace msfrs::edge
