// SPDX-License-Identifier: GPL-2.0-or-later
#include "neighbour/neighbours.h"

#include <cerrno>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace msfrs {

namespace {

class Kernel : public NeighbourSource {
public:
    Kernel(): fd_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE))
    {
        sockaddr_nl address{};
        address.nl_family = AF_NETLINK;
        address.nl_groups = 1U << (RTNLGRP_NEIGH - 1);
        if (fd_ >= 0 && bind(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0)
            return;
        const auto error = errno;
        if (fd_ >= 0)
            close(fd_);
        throw std::system_error(error, std::generic_category());
    }

    ~Kernel() override { close(fd_); }
    Kernel(Kernel &&) = delete;

    bool dump() override
    {
        struct {
            nlmsghdr header;
            ndmsg neighbours; // AF_UNSPEC: of both families
        } request{};
        request.header.nlmsg_len = sizeof(request);
        request.header.nlmsg_type = RTM_GETNEIGH;
        request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
        return send(fd_, &request, sizeof(request), 0) == ssize_t(sizeof(request));
    }

    ssize_t receive(uint8_t *const to, const size_t size) override
    {
        for (;;) {
            sockaddr_nl from{};
            socklen_t length = sizeof(from);
            const auto received = recvfrom(fd_, to, size, MSG_TRUNC, reinterpret_cast<sockaddr *>(&from), &length);
            if (received < 0 && errno == EINTR)
                continue;
            if (received < 0 || from.nl_pid == 0) // 0: the kernel itself
                return received;
        }
    }

private:
    int fd_;
};

} // namespace

std::unique_ptr<NeighbourSource> KernelNeighbours()
{
    return std::make_unique<Kernel>();
}

void Neighbours::refresh()
{
    // At most one dump each time: while the kernel refuses it, or hosts come faster than this reads, others have to wait.
    for (auto dumps = 1;;) {
        if (stale_ && !dumping_ && dumps-- > 0 && source_->dump()) {
            table_.clear();
            stale_ = false;
            dumping_ = true;
        }
        const auto size = source_->receive(datagram_.data(), datagram_.size());
        if (size < 0 && errno != ENOBUFS)
            return;
        if (size < 0 || size_t(size) > datagram_.size()) {
            stale_ = true;
            continue;
        }
        const auto outcome = table_.apply(datagram_.data(), size_t(size));
        dumping_ = dumping_ && !outcome.done && !outcome.failed;
        stale_ = stale_ || outcome.failed;
    }
}

std::optional<MacAddress> Neighbours::find(const HostAddress &host)
{
    refresh();
    return table_.find(host);
}

} // namespace msfrs
