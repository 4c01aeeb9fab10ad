/* SPDX-License-Identifier: GPL-2.0-or-later */

#ifndef SQUID_SRC_MSFRS_READING_SOCKETOPTIONS_H
#define SQUID_SRC_MSFRS_READING_SOCKETOPTIONS_H

#include "comm/forward.h"

#include <cstdint>

namespace msfrs::squid
{

/// Makes the kernel report a connection as readable only when that many bytes (positive) are unread, or its stream has
/// ended. Linux limits this to half of the receive buffer.
void SetLowWater(const Comm::Connection &, int bytes);

/// \returns the low-water mark that the kernel has set, bytes, or zero
int LowWater(const Comm::Connection &);

/// \returns the receive buffer of a connection in bytes as the kernel counts them, or zero
int ReceiveBuffer(const Comm::Connection &);

/// The kernel's figures of a connection; 0 where it has none.
struct PathInfo {
    int64_t window = 0; ///< window that the kernel would advertise now, bytes
    int64_t segment = 0; ///< largest segment that the server may send, bytes
    int64_t srtt = 0; ///< smoothed RTT of what we sent, ns
    int64_t latest = 0; ///< recent RTT, ns: of what was received, or of what we sent if that is less
    int64_t least = 0; ///< least RTT of some minutes, ns
    int64_t age = 0; ///< time since data was last received, ns
    uint64_t packets = 0, outOfOrder = 0; ///< received; those that arrived before others sent earlier
    bool counted = false; ///< whether the kernel counts these
};
PathInfo Path(const Comm::Connection &);

/// Sets the SO_RCVBUF of an open connection.
void SetReceiveBuffer(const Comm::Connection &, int bytes);

/// Bounds the window of an open connection. An advertised window is not withdrawn: it shrinks only as it is used.
void SetWindowClamp(const Comm::Connection &, int bytes);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_SOCKETOPTIONS_H */
