// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Keeps a NeighbourTable equal to the kernel's: one dump, then notifications.
///
/// They are read when an address is looked up, so that no timer or event is needed, and the answer is the present one.
/// Notifications that do not fit into the socket's buffer meanwhile are lost; the kernel reports that, and the table is
/// dumped again. A dump of N entries thus comes after at least as many notifications as the buffer holds (some 200).
#pragma once

#include "neighbour/neighbour_table.h"

#include <memory>
#include <sys/types.h>
#include <vector>

namespace msfrs {

/// The kernel's end. Tests have their own.
class NeighbourSource {
public:
    virtual ~NeighbourSource() = default;
    /// Requests a dump. \returns whether the kernel has accepted it
    virtual bool dump() = 0;
    /// The next datagram, without waiting. \returns its whole length, which may be larger than `size`, or -1 and errno:
    /// EAGAIN, ENOBUFS (some were lost) or another
    virtual ssize_t receive(uint8_t *to, size_t size) = 0;
};

/// rtnetlink(7), which needs no privilege. \throws std::system_error if there is no such socket
std::unique_ptr<NeighbourSource> KernelNeighbours();

class Neighbours {
public:
    explicit Neighbours(std::unique_ptr<NeighbourSource> source): source_(std::move(source)), datagram_(Room) {}

    /// \returns the hardware address of a host; nothing if it is not on a network of this machine, or the kernel does
    /// not know it. The kernel knows that of any host to which it has sent a packet directly, as in a TCP handshake.
    std::optional<MacAddress> find(const HostAddress &host);

private:
    /// Bytes; the kernel makes no larger datagrams of a dump (NLMSG_GOODSIZE is 8 KB, a reader's room at most 32 KB).
    static constexpr size_t Room = 32768;

    void refresh();

    std::unique_ptr<NeighbourSource> source_;
    NeighbourTable table_;
    std::vector<uint8_t> datagram_;
    bool stale_ = true;    ///< a dump is needed
    bool dumping_ = false; ///< its end has not been received
};

} // namespace msfrs
