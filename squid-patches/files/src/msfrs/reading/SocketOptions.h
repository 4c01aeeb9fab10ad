/* SPDX-License-Identifier: GPL-2.0-or-later */

/* DEBUG: section 97    Request Scheduler (msfrs) */

#ifndef SQUID_SRC_MSFRS_READING_SOCKETOPTIONS_H
#define SQUID_SRC_MSFRS_READING_SOCKETOPTIONS_H

#include "comm/forward.h"

#include <cstdint>

namespace msfrs::squid
{

/// Has the kernel wake us no earlier than so many bytes (positive) wait on a connection, or its stream has ended.
/// Linux takes half of the receive buffer if that is less.
void SetLowWater(const Comm::Connection &, int bytes);

/// \returns how many the kernel will wait for, or zero
int LowWater(const Comm::Connection &);

/// \returns the receive buffer of a connection in bytes as the kernel counts, or zero
int ReceiveBuffer(const Comm::Connection &);

/// What the kernel knows of a connection; zeros where it does not say.
struct PathInfo {
    int64_t window = 0; ///< how much of its receive buffer the kernel would offer as a window by now, bytes
    int64_t segment = 0; ///< the most that a segment of the server may have, bytes
    int64_t srtt = 0; ///< smoothed round trip of what we sent, ns
    int64_t latest = 0; ///< the round trip as of late, ns: of what was received, or of what we sent if that is less
    int64_t least = 0; ///< the least of some minutes, ns
    int64_t age = 0; ///< since something was received, ns
    uint64_t packets = 0, outOfOrder = 0; ///< that were received, and of these before others sent earlier
    bool counted = false; ///< whether the kernel counts these
};
PathInfo Path(const Comm::Connection &);

/// Gives a connection that is there another SO_RCVBUF.
void SetReceiveBuffer(const Comm::Connection &, int bytes);

/// Bounds the window of a connection that is there. What has been announced is not taken back: a window that becomes
/// smaller does so as it is used.
void SetWindowClamp(const Comm::Connection &, int bytes);

} // namespace msfrs::squid

#endif /* SQUID_SRC_MSFRS_READING_SOCKETOPTIONS_H */
