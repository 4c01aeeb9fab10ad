// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// Which delay a packet gets: address prefixes with a delay each, longest prefix first.
#ifndef MSFRS_DELAYLINE_DELAY_TABLE_H
#define MSFRS_DELAYLINE_DELAY_TABLE_H

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
/// \returns nothing for what is neither a whole IPv4 nor a whole IPv6 header
std::optional<Endpoints> ParseEndpoints(const uint8_t *packet, size_t length);

class DelayTable {
public:
    static constexpr Nanoseconds MaxDelay = 10'000'000'000; ///< 10 s: more is a wrong unit
    static constexpr size_t MaxEntries = 4096;

    /// One entry from `[from|to] PREFIX DELAY`, where DELAY is a number with unit us, ms or s. Without `from` and
    /// `to` it holds for both directions.
    /// \param where source and line for the message, e.g. "delays.txt:3"
    /// \throws RuleError
    void add(std::string_view line, const std::string &where);

    /// Entries from a file: one a line, `#` begins a comment. \throws RuleError
    void read(std::istream &, const std::string &name);

    /// Index of the entry with the longest prefix that holds for either end of the packet; of two equally long the
    /// one that was added first. Constant for equal endpoints, so that the index names a FIFO.
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

#endif
