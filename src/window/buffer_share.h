// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// How large a receive buffer has to be for a window of so many bytes.
#ifndef MSFRS_WINDOW_BUFFER_SHARE_H
#define MSFRS_WINDOW_BUFFER_SHARE_H

#include <cstdint>

namespace msfrs {

/// The kernel counts in a receive buffer what packets take in memory, and offers a share of it as a window. That share
/// is a matter of the interface's driver: on Linux some 5/8 where a packet lies in 2 KB, a third where it takes 4 KB
/// (jumbo pages, tunnels). So it is learned from connections.
class BufferShare {
public:
    /// A connection with a buffer of `buffer` bytes, as the kernel counts, offers at most `window`. The largest share
    /// seen lately counts: a window grows into its buffer, and is too small for it until then.
    void seen(int64_t window, int64_t buffer);
    double share() const { return share_; } ///< from 1/16 to 1
    /// \returns the buffer in bytes for a window of so many
    int64_t bufferFor(int64_t window) const;

private:
    double share_ = 0.625;
    int seen_ = 1; ///< with the one that share_ begins with
};

} // namespace msfrs

#endif
