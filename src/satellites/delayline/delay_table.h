// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Selects the delay of a packet: address prefixes with a delay each, longest prefix first.
#pragma once

#include "config/fields.h"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msfrs::delayline {

using Nanoseconds = int64_t;

/// Source and destination of a packet.
struct Endpoints {
    Family family;
    Address from, to;
};

/// Reads the addresses of an IP packet without link header.
/// \returns nothing if there is no complete IPv4 or IPv6 header
std::optional<Endpoints> ParseEndpoints(const uint8_t *packet, size_t length);

class DelayTable {
public:
    static constexpr Nanoseconds MaxDelay = 10'000'000'000; ///< 10 s: a greater value has a wrong unit
    static constexpr size_t MaxEntries = 4096;

    /// Adds an entry from `[from|to] PREFIX DELAY`, where DELAY is a number with unit us, ms or s. Without `from` and
    /// `to` it applies to both directions.
    /// \param where source and line for the message, e.g. "delays.txt:3"
    /// \throws RuleError
    void add(std::string_view line, const std::string &where);

    /// Reads entries from a file: one per line, `#` begins a comment. \throws RuleError
    void read(std::istream &, const std::string &name);

    /// Index of the entry with the longest prefix that matches either end of the packet; of two equally long ones the
    /// first added. Constant for equal endpoints, so that the index identifies a FIFO.
    std::optional<size_t> find(const Endpoints &) const;

    Nanoseconds delay(size_t index) const { return entries_[index].delay; }
    size_t size() const { return entries_.size(); }

private:
    enum class Side { From, To, Either };
    struct Entry {
        Side side;
        Field::Prefix prefix;
        Nanoseconds delay;
    };

    std::vector<Entry> entries_; ///< longest prefix first
};

} // namespace msfrs::delayline
