// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Counters of the daemon.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace msfrs::edge {

/// Packets and their bytes from the IP header.
struct Volume {
    uint64_t packets = 0, bytes = 0;

    void add(const uint64_t length)
    {
        ++packets;
        bytes += length;
    }
    Volume &operator+=(const Volume &v)
    {
        packets += v.packets;
        bytes += v.bytes;
        return *this;
    }
    friend bool operator==(const Volume &a, const Volume &b) { return a.packets == b.packets && a.bytes == b.bytes; }
};

/// Histogram of waits of packets, in powers of two of a microsecond.
struct WaitCounts {
    static constexpr size_t Buckets = 26; ///< below 1 us, 2 us, 4 us ... 16.8 s, and beyond

    std::array<uint64_t, Buckets> of{};
    uint64_t sum = 0; ///< ns

    void add(int64_t wait);
    uint64_t count() const;
    /// Upper end of a bucket in seconds; not of the last, which has none.
    static double upperEnd(size_t bucket);
    /// The upper end of the bucket that the quantile q (0 < q <= 1) falls in, in seconds; 0 without waits.
    double quantile(double q) const;
    WaitCounts &operator+=(const WaitCounts &);
};

/// Of a class. At all times: offered = policed + dropped + passed + queued.
struct ClassCounts {
    Volume offered;
    Volume policed; ///< exceeding the rate of their rule
    Volume dropped; ///< by the AQM or the limit
    Volume passed;
    Volume marked;  ///< with congestion experienced; also counted as queued or passed
    Volume queued;  ///< now
    WaitCounts waits;

    ClassCounts &operator+=(const ClassCounts &);
};

/// Of a queue of the kernel.
struct QueueCounts {
    uint64_t overruns = 0; ///< times the kernel reported that it could not deliver packets
    uint64_t unscheduled = 0; ///< packets that passed: undelivered with fail-open, or while the queue was set up
    uint64_t gone = 0;     ///< verdicts for packets that the kernel no longer had
    uint64_t unreadable = 0; ///< packets without a valid IP header
    uint64_t kernelDropped = 0, userDropped = 0; ///< the kernel's counts: queue full, socket full
};

} // namespace msfrs::edge
