// SPDX-License-Identifier: GPL-2.0-or-later
/// \file
/// One dimension of the classifier: closed ranges cut the dimension into elementary intervals, each of which has
/// the vector of the rules whose range covers it.
#pragma once

#include "edge/match.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace msfrs::edge {

constexpr unsigned BlockRules = 4096; ///< rules of a block: eight lines
constexpr unsigned BlockWords = BlockRules / 64;
using Vector = std::array<uint64_t, BlockWords>;
using VectorId = uint16_t; ///< at most 2 * BlockRules + 1 vectors in a dimension

constexpr unsigned GroupSize = 64; ///< keys looked up in parallel
constexpr unsigned LineWords = 8; ///< of a cache line
constexpr unsigned BlockLines = BlockWords / LineWords;

/// Rows of words without duplicates, each aligned to its size.
template <unsigned Width>
class Distinct {
public:
    struct alignas(8 * Width) Row : std::array<uint64_t, Width> {};

    /// Adds the row unless it exists. \returns its number. Not after seal().
    uint32_t add(const Row &row)
    {
        const auto [entry, fresh] = numbers_.try_emplace(row, static_cast<uint32_t>(rows_.size()));
        if (fresh)
            rows_.push_back(row);
        return entry->second;
    }
    /// Ends construction and frees the memory that only that needs.
    void seal()
    {
        numbers_ = {};
        rows_.shrink_to_fit();
    }
    size_t size() const { return rows_.size(); }
    const Row &operator[](const size_t n) const { return rows_[n]; }
    const Row *data() const { return rows_.data(); }
    size_t bytes() const { return rows_.capacity() * sizeof(Row); }

private:
    struct Hash {
        size_t operator()(const Row &row) const
        {
            uint64_t h = 0;
            for (const auto word : row) {
                h = (h ^ word) * 0x9e3779b97f4a7c15u;
                h ^= h >> 29;
            }
            return h;
        }
    };

    std::vector<Row> rows_;
    std::unordered_map<Row, uint32_t, Hash> numbers_;
};

/// The distinct vectors of a dimension. After a nested interval the vector is the same as before it, so there are fewer
/// vectors than intervals. A vector is a list of lines of 512 bits, and each line is stored once, too: from one
/// interval to the next the vector changes in a bit for each range that begins or ends, so in few of its lines, and
/// n ranges have at most 2n lines and one for each position in the list. Each vector has a summary: bit s is set if
/// any of the 16 bits from 16 s on is, so 32 bits of it stand for a line.
class VectorSet {
public:
    static constexpr size_t Most = 2 * BlockRules + 1, MostLines = 65536; ///< MostLines: a LineId has 16 bits
    using Lines = Distinct<LineWords>;
    using LineId = uint16_t;
    struct alignas(32) Summary {
        uint64_t words[BlockWords / 16];
    };

    /// \param rules 1..BlockRules, bits in use
    explicit VectorSet(const unsigned rules): lines_((rules + 64 * LineWords - 1) / (64 * LineWords)) {}
    /// Adds the vector unless it exists. Bits beyond `rules` are 0. Not after seal().
    /// \returns its number; nothing beyond Most vectors or MostLines lines
    std::optional<VectorId> add(const Vector &);
    void seal();

    size_t size() const { return lists_.size(); }
    unsigned lines() const { return lines_; } ///< of a vector
    uint64_t word(const size_t v, const unsigned w) const
    {
        return distinct_[lists()[v * BlockLines + w / LineWords]][w % LineWords];
    }
    Vector copy(size_t v) const;
    size_t bytes() const;

    const Summary *summaries() const { return summaries_.data(); }
    /// Numbers of the lines of vector v: from [v * BlockLines] on.
    const LineId *lists() const { return reinterpret_cast<const LineId *>(lists_.data()); }

private:
    static constexpr unsigned ListWords = BlockLines * sizeof(LineId) / sizeof(uint64_t);

    unsigned lines_;
    std::vector<Summary> summaries_;
    Distinct<ListWords> lists_;
    Lines distinct_;
};

/// The elementary intervals: interval i is starts[i] .. starts[i + 1] - 1. starts[0] is the least key.
template <class Key>
struct Intervals {
    std::vector<Key> starts;
    std::vector<VectorId> vectors;
};

/// Cuts a dimension at the first key of every range and after its last one: at most 2n + 1 intervals for n ranges
/// (the paper counts 2n - 1, those that a range covers).
/// \param ranges bit i of the vectors says whether ranges[i] covers the interval; at most BlockRules
/// \param last the greatest possible key
/// \tparam Key uint32_t or Address
template <class Key>
Intervals<Key> Cut(const std::vector<Range<Key>> &ranges, Key last, VectorSet &);

/// Maps a key of up to 32 bits to its interval's vector in a fixed number of loads and without a branch: the binary
/// search over the intervals, unrolled into pages of 256 (a multibit trie). An entry holds the index of a page and a
/// mask for the index into it. If a whole page is one interval, the mask is 0 and the page a single entry: that of its
/// vector, with which leaves_ and middle_ begin.
class PageTable {
public:
    /// \param bits of the key: 16 (two levels: 257 pages, so that NoPort has an entry) or 32 (three levels)
    PageTable(const Intervals<uint32_t> &, unsigned bits);
    VectorId find16(const uint32_t key) const { return leaf(top_[key >> 8], key); }
    VectorId find32(const uint32_t key) const
    {
        const uint32_t entry = top_[key >> 16];
        return leaf(middle_[(entry >> 8) + (key >> 8 & entry & 0xff)], key);
    }
    size_t bytes() const;

private:
    VectorId leaf(const uint32_t entry, const uint32_t key) const
    {
        return leaves_[(entry >> 8) + (key & entry & 0xff)];
    }

    std::vector<uint32_t> top_, middle_;
    std::vector<VectorId> leaves_;
};

/// Binary search over the intervals of a dimension too wide for pages.
class SortedStarts {
public:
    explicit SortedStarts(Intervals<Address> intervals): intervals_(std::move(intervals)) {}
    /// found[i] for keys[i], at most GroupSize; several at a time, so that their memory loads overlap.
    void find(const Address *keys, unsigned n, uint32_t *found) const;
    size_t bytes() const;

private:
    Intervals<Address> intervals_;
};

} // namespace msfrs::edge
