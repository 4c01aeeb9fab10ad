// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Common definitions of the multi-resource schedulers: the time an item keeps each resource busy, and a virtual clock
/// that adds such times without rounding.
///
/// An item visits the resources est[1], est[2], ... and then the link, est[0] (a packet is sent when it has been
/// processed). est[0] is in bytes, as everywhere; the others are processing times in Ticks.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>

namespace msfrs {

/// Processing time in units of 10^-4 microseconds: all times of ATFQ's table II are whole numbers of them.
using Ticks = int64_t;
constexpr int64_t TicksPerSecond = 10'000'000'000;

/// 7.8 hours. A longer time on one resource is clamped to it, so that no sum below can overflow.
constexpr Ticks LongestTime = Ticks(1) << 48;

/// L(p, 1..m): processing times in the order of the visits, the link last.
struct Times {
    Ticks on[MSFRS_RESOURCES];

    /// Over resources from..to-1.
    Ticks sum(const uint32_t from, const uint32_t to) const
    {
        Ticks total = 0;
        for (uint32_t j = from; j < to; ++j)
            total += on[j];
        return total;
    }
};

/// Time on the link of an amount of bytes. \param rate bit/s, > 0
inline Ticks LinkTime(const int64_t bytes, const int64_t rate)
{
    constexpr int64_t Bits = 8 * TicksPerSecond;
    if (bytes <= INT64_MAX / Bits)
        return std::min(bytes * Bits / rate, LongestTime);
    return static_cast<Ticks>(std::min<__int128>(static_cast<__int128>(bytes) * Bits / rate, LongestTime));
}

/// \param m number of est[] in use
inline Times TimesOf(const msfrs_item &item, const uint32_t m, const int64_t rate)
{
    Times times{};
    for (uint32_t j = 1; j < m; ++j)
        times.on[j - 1] = std::min(item.est[j], LongestTime);
    times.on[m - 1] = LinkTime(item.est[0], rate);
    return times;
}

/// Idle time of the first resource between two successive packets that pass m resources without waiting in between: the
/// last term of ATFQ's equation (3).
inline Ticks Gap(const Times &before, const Times &after, const uint32_t m)
{
    Ticks gap = 0, leaves = 0, enters = 0;
    for (uint32_t n = 1; n < m; ++n) {
        leaves += before.on[n];
        enters += after.on[n - 1];
        gap = std::max(gap, leaves - enters);
    }
    return gap;
}

/// Virtual time: ticks per unit of weight with 32 binary fractions, so that weights of 2^n are exact. An item adds
/// less than 2^98.
using Stamp = __int128;
constexpr int StampFraction = 32;

/// Virtual time that a tick of service adds to a flow. \param share its class's weight times its own, clamped to 2^-16
/// and 2^32
inline int64_t StampPerTick(const double share)
{
    constexpr double Least = 1.0, Most = static_cast<double>(int64_t(1) << 48);
    const double perTick = std::ldexp(1.0, StampFraction) / share;
    return static_cast<int64_t>(std::llround(std::min(std::max(perTick, Least), Most)));
}

inline Stamp ToStamp(const Ticks ticks, const int64_t perTick) { return static_cast<Stamp>(ticks) * perTick; }

/// Reserves a heap for n flows, so that later calls do not allocate: no exception crosses the ABI.
/// \returns as flow_added does
template <class Heap>
int MakeRoom(Heap &heap, const size_t n)
{
    try {
        heap.reserve(n);
        return 0;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}

/// For gauges.
inline double Microseconds(const Stamp stamp) { return std::ldexp(static_cast<double>(stamp), -StampFraction) * 1e-4; }

} // namespace msfrs
