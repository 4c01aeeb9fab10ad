// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Packets inside a delay line. No clock and no I/O: `now` is an argument, packets are moved in and out.
///
/// Each stream (an entry of the delay table) has one constant delay and its own FIFO, so packets of a stream leave in
/// the order of arrival. A heap holds the streams that have packets, ordered by the due time of their head and, if two
/// are due at once, by arrival.
///
/// Invariants: offered = delivered + dropped + held, in packets and in bytes, after every call; held memory (payload
/// plus a fixed overhead per packet) never exceeds the limit; due times within a stream never decrease, even if the
/// caller's clock goes back.
#pragma once

#include "satellites/delayline/delay_table.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace msfrs::delayline {

using Packet = std::vector<uint8_t>;

struct Count {
    uint64_t packets = 0, bytes = 0;
    void add(size_t length)
    {
        ++packets;
        bytes += length;
    }
};

class DelayQueue {
public:
    /// Overhead counted for each held packet in addition to its bytes: the vector, the FIFO's cell, the allocator's
    /// data.
    static constexpr size_t Overhead = 96;

    /// \param limit most memory that packets may hold, in bytes
    explicit DelayQueue(size_t limit): limit_(limit) {}

    /// Accepts a packet; it is due `delay` after `now`.
    /// \param stream any small number; memory grows with the greatest value
    /// \returns whether there was room; if not, the packet is counted as dropped
    bool push(size_t stream, Packet &&, Nanoseconds delay, Nanoseconds now);

    /// Due time of the next packet; nothing if none is held.
    std::optional<Nanoseconds> nextDue() const;

    /// The next packet that is due at `now` or earlier.
    std::optional<Packet> pop(Nanoseconds now);

    const Count &offered() const { return offered_; }
    const Count &delivered() const { return delivered_; }
    const Count &dropped() const { return dropped_; }
    size_t heldPackets() const { return static_cast<size_t>(offered_.packets - delivered_.packets - dropped_.packets); }
    size_t heldMemory() const { return held_; }

private:
    struct Held {
        Nanoseconds due;
        uint64_t arrival;
        Packet packet;
    };
    struct Head {
        Nanoseconds due;
        uint64_t arrival;
        size_t stream;
        bool operator<(const Head &other) const // the heap's top is the greatest: it must be the earliest
        {
            return due != other.due ? due > other.due : arrival > other.arrival;
        }
    };
    void enterHeap(size_t stream);

    size_t limit_, held_ = 0;
    uint64_t arrivals_ = 0;
    std::vector<std::deque<Held>> streams_;
    std::vector<Head> heap_;
    Count offered_, delivered_, dropped_;
};

} // namespace msfrs::delayline
