// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// The size of a receive buffer for a given receive window.
#pragma once

#include <algorithm>
#include <cstdint>

namespace msfrs {

/// The kernel counts the memory of packets in a receive buffer, and offers a share of the buffer as the window. That
/// share depends on the driver of the interface: on Linux some 5/8 if a packet takes 2 KB, a third if it takes 4 KB
/// (jumbo pages, tunnels). So it is learned from connections. Not in the paper.
class BufferShare {
public:
    /// Adds an observation: a connection offers a window of at most `window` bytes with a buffer of `buffer` bytes, as
    /// the kernel counts; both > 0. The largest recent share counts, since a window grows with the bytes received and
    /// is smaller until then.
    void seen(const int64_t window, const int64_t buffer)
    {
        if (window <= 0 || buffer <= 0)
            return;
        const double now = std::clamp(static_cast<double>(window) / static_cast<double>(buffer), Least, Most);
        seen_ = std::min(seen_ + 1, Memory);
        share_ = now > share_ ? now : share_ + (now - share_) / seen_;
    }
    double share() const { return share_; } ///< window / buffer, 1/16 to 1
    /// \returns the buffer for a window, both in bytes
    int64_t bufferFor(const int64_t window) const
    {
        return static_cast<int64_t>(static_cast<double>(window) / share_);
    }

private:
    static constexpr double Least = 1.0 / 16, Most = 1;
    static constexpr int Memory = 256; ///< smaller shares have a gain of 1/256, or more while there are few observations

    double share_ = 0.625;
    int seen_ = 1; ///< observations, the initial share_ included
};

} // namespace msfrs
