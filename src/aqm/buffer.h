// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Shared by the AQMs: the buffer, counted in packets or in bytes, and random draws.
#pragma once

#include "plugin/msfrs_plugin.h"

#include <cstdint>
#include <cstdio>

namespace msfrs {

/// The first rows of each parameter table here, in this order. Lengths are given in packets in both modes, so that the
/// same values and defaults serve both.
constexpr msfrs_param ModeParam = {"mode", MSFRS_CHOICE, "", "packets", 0, 0, "packets|bytes",
                                   "unit of the buffer and its thresholds"};
constexpr msfrs_param LimitParam = {"limit", MSFRS_INT, "packets", "0", 1, 1e7, nullptr,
                                    "size of the buffer, B; default: the host's limit, or 1000 if the host has none"};
constexpr msfrs_param PacketParam = {"packet", MSFRS_INT, "bytes", "1500", 1, 65535, nullptr,
                                     "size of a typical packet; with mode=bytes the buffer is limit times this size"};
constexpr msfrs_param EcnParam = {"ecn", MSFRS_BOOL, "", "on", 0, 0, nullptr,
                                  "mark ECN-capable packets instead of dropping them early"};

/// The buffer of B packets or bytes.
struct Buffer {
    bool bytes;
    int64_t packet; ///< size of a typical packet in packets (1) or bytes
    int64_t limit;  ///< B in packets or bytes, > 0

    /// \param params a table's values, of which the first are those above
    /// \returns whether they are allowed; if not, err holds a sentence
    bool init(const msfrs_host &host, const msfrs_value *const params, char *const err, const size_t length)
    {
        constexpr int64_t Default = 1000; // packets
        bytes = params[0].i == 1;
        packet = bytes ? params[2].i : 1;
        if (bytes && !host.exact) {
            std::snprintf(err, length, "mode=bytes needs the size of an item when it arrives, which is unknown for a "
                          "request; allowed here is mode=packets");
            return false;
        }
        if (host.limit && params[1].i > host.limit) {
            std::snprintf(err, length, "limit=%lld would never be reached: the host queues %u packets at most; allowed "
                          "are 1 to %u", static_cast<long long>(params[1].i), host.limit, host.limit);
            return false;
        }
        limit = packet * (params[1].i ? params[1].i : host.limit ? host.limit : Default);
        return true;
    }

    int64_t sizeOf(const msfrs_item &i) const { return bytes ? i.est[0] : 1; }
    int64_t length(const msfrs_queue_view &q) const { return bytes ? q.bytes : q.length; }

    /// Whether i does not fit. An empty item still takes memory: there are never more items than bytes.
    bool full(const msfrs_queue_view &q, const msfrs_item &i) const
    {
        return q.length >= limit || sizeOf(i) > limit - length(q);
    }
};

/// Draws from the host's random source.
struct Dice {
    const msfrs_host *host;

    uint64_t bits() const { return host->random(host->ctx); }
    double uniform() const { return static_cast<double>(bits() >> 11) * 0x1p-53; } ///< [0, 1)
    /// 0..n-1, n > 0
    uint32_t below(const uint32_t n) const { return static_cast<uint32_t>(((bits() >> 32) * n) >> 32); }
};

} // namespace msfrs
